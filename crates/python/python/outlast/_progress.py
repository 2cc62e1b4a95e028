"""How far a run or a sweep is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, Optional, Union

#: Nothing, a line on standard error, or a function of the runs done and all of them.
Progress = Optional[Union[bool, Callable[[int, int], object]]]

#: Seconds between two lines.
INTERVAL = 0.1


@contextmanager
def reporter(progress: Progress) -> Iterator[Callable[[int, int], object] | None]:
    """What to call after each run."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        line = _Line()
        try:
            yield line
        finally:
            line.end()
    else:
        yield progress


class _Line:
    """A line that is written over again and again."""

    def __init__(self) -> None:
        self._next = 0.0
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + INTERVAL
        self._shown = True
        sys.stderr.write(f"\r{done} of {total} runs")
        sys.stderr.flush()

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\n")
