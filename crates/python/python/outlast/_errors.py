"""What the package raises. The compiled module makes these from its own errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class OutlastError(Exception):
    """Anything that the package raises itself."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario or a sweep, and where."""

    message: str
    """What is wrong."""
    file: str
    """The file, or `<dict>` for what was no file."""
    line: int | None
    """Line, from 1; none if the file could not be read."""
    column: int | None
    """Column in characters, from 1."""
    value: str | None
    """What is written there."""
    hint: str | None
    """What is said under the place, such as "did you mean `hold`?"."""
    remedy: str
    """What to do about it."""

    @property
    def allowed(self) -> str:
        """What may stand there."""
        if self.hint is not None and self.hint.startswith("allowed: "):
            return self.hint[len("allowed: ") :]
        for words in ("write one of ", "there may stand "):
            if self.remedy.startswith(words):
                return self.remedy[len(words) :]
        return self.remedy

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.message}"


class ScenarioError(OutlastError, ValueError):
    """A scenario or a sweep that cannot be used, with everything that is wrong with it.

    As text it shows each place as the command does. `file`, `line`, `column`, `value` and
    `allowed` are those of the first problem.
    """

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        # Exceptions that workers raise are pickled, with these arguments.
        super().__init__(text, tuple(problems))
        self.text = text
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __str__(self) -> str:
        return self.text

    @property
    def _first(self) -> Problem | None:
        return self.problems[0] if self.problems else None

    @property
    def file(self) -> str | None:
        """The file of the first problem."""
        return self._first.file if self._first else None

    @property
    def line(self) -> int | None:
        """The line of the first problem, from 1."""
        return self._first.line if self._first else None

    @property
    def column(self) -> int | None:
        """The column of the first problem, in characters and from 1."""
        return self._first.column if self._first else None

    @property
    def value(self) -> str | None:
        """What is written at the place of the first problem."""
        return self._first.value if self._first else None

    @property
    def allowed(self) -> str | None:
        """What may stand at the place of the first problem."""
        return self._first.allowed if self._first else None


class KernelError(OutlastError, RuntimeError):
    """A run on a packaged kernel that was not made.

    The command, the emulator or the kernel is missing, the lab has not what the scenario asks for, or a
    guest was lost. The text is that of the command.
    """


class TraceError(OutlastError, RuntimeError):
    """Captures of which nothing could be read, or a command that is missing. The text is that of the command."""


class SweepError(OutlastError, RuntimeError):
    """A sweep whose runs cannot be stored, sent or gathered."""
