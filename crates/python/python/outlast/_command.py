"""The command, for captures and for what runs in guests: an extension module cannot be a guest's first process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from outlast import _native
from outlast._errors import KernelError, OutlastError

#: The variable that names the command; without it, it is looked for in `PATH`.
COMMAND = "OUTLAST_COMMAND"

#: Seconds between two looks at how far the command is.
INTERVAL = 0.2


@contextmanager
def input_file(text: str, name: str, directory: str) -> Iterator[list[str]]:
    """Arguments that have the command read `text`, whose relative paths count from `directory`."""
    with tempfile.TemporaryDirectory(prefix="outlast-") as place:
        file = os.path.join(place, os.path.basename(name) or "scenario.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        yield [file, "--relative-to", os.path.abspath(directory)]


def call(
    arguments: list[str],
    watch: Callable[[], None] | None = None,
    *,
    error: type[OutlastError] = KernelError,
    needed_for: str = "runs on packaged kernels need",
) -> dict[str, Any]:
    """The document that the command prints with `arguments`. Meanwhile `watch` is called again and again.

    A command that has printed a whole document may still have failed: what is wrong stands in there. Without one
    `error` is raised, with what the command has said.
    """
    command = _command(error, needed_for)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        # Ctrl-C is for this process, which then ends the command once: a second signal would have it leave
        # files behind.
        process = subprocess.Popen(
            [command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=said,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    code = process.wait(INTERVAL)
                    break
                except subprocess.TimeoutExpired:
                    if watch is not None:
                        watch()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        out.seek(0)
        said.seek(0)
        message = said.read().decode(errors="replace").strip()
        try:
            document: dict[str, Any] = json.loads(out.read())
        except ValueError:
            raise error(message or f"{command} ended with exit code {code}") from None
    return document


def _command(error: type[OutlastError], needed_for: str) -> str:
    """The command's path, if it is of this version."""
    command = os.environ.get(COMMAND) or shutil.which("outlast")
    if command is None:
        raise error(
            f"{needed_for} the command `outlast`, which is not in PATH: "
            f"install it, or name it in the environment as {COMMAND}"
        )
    try:
        said = subprocess.run(
            [command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as reason:
        raise error(f"the command {command} cannot be run: {reason}") from reason
    version = said.split()[-1] if said.split() else "unknown"
    if version != _native.VERSION:
        raise error(
            f"{command} is Outlast {version}, and this package is {_native.VERSION}: "
            "install one version of both"
        )
    return command
