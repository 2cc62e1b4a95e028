"""Scenarios, from files or from Python's values, and their runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Callable, Union

from outlast import _command, _native, _toml
from outlast._progress import Progress, reporter
from outlast._results import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: What messages call a scenario that was given as Python's values.
DICT = "<dict>"

#: A scenario, or what one is made from: a file's path, or tables.
ScenarioLike = Union["Scenario", str, "os.PathLike[str]", Mapping[str, Any]]


class Scenario:
    """An experiment that was found to be sound: a link, what is done over it, with what help.

    `Scenario("ferry.toml")` reads a file, `Scenario({...})` and `Scenario(link={...},
    workload={...})` take the same tables as Python's values, and `Scenario.parse(text)` takes the
    text of a file. `docs/scenario-file.md` describes every key. Relative paths in tables and texts
    count from `directory`.

    Raises `ScenarioError` with everything that is wrong.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        directory: str | os.PathLike[str] = ".",
        **tables: Any,
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            if tables:
                raise TypeError("a scenario is a file or tables, not both; see Scenario.replace")
            self._native = _native.Scenario.load(os.fspath(source))
        else:
            text = _toml.dumps({**(source or {}), **tables})
            self._native = _native.Scenario.parse(text, DICT, os.fspath(directory))

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "scenario.toml",
        directory: str | os.PathLike[str] = ".",
    ) -> Scenario:
        """A scenario from the text of a file, which messages call `name`."""
        return cls._of(_native.Scenario.parse(text, name, os.fspath(directory)))

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._native = native
        return scenario

    @property
    def name(self) -> str:
        """Its name: what it says, or the file's without its extension."""
        return self._native.name

    @property
    def repeat(self) -> int:
        """How many runs it has."""
        return self._native.repeat

    @property
    def seed(self) -> int:
        """The seed of the first run; each later one has the next number."""
        return self._native.seed

    @property
    def text(self) -> str:
        """The text of its file, which `outlast sim` and `outlast lab` read, too."""
        return self._native.text

    @property
    def directory(self) -> str:
        """From where relative paths in it count."""
        return os.fspath(self._native.directory)

    def to_dict(self) -> dict[str, Any]:
        """Its tables, as its file has them."""
        tables: dict[str, Any] = tomllib.loads(self.text.lstrip("\ufeff"))
        return tables

    def replace(self, changes: Mapping[str, Any] | None = None, /, **tables: Any) -> Scenario:
        """This scenario with other values.

        Keys are paths such as `"link.delay"`, or whole tables; None takes a key away.
        `scenario.replace({"link.delay": "5 ms", "outlast.gateway": "hold"})`
        """
        document = self.to_dict()
        for path, value in {**(changes or {}), **tables}.items():
            _put(document, path, value)
        return Scenario(document, directory=self.directory)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return (self.to_dict(), self.directory) == (other.to_dict(), other.directory)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[..., Scenario], tuple[str, str, str]]:
        return _restored, (self.text, self._native.file, self.directory)

    def __repr__(self) -> str:
        return f"<outlast.Scenario {self.name!r}>"


def _run_on_kernel(
    native: _native.Scenario, control: bool, progress: Progress, kernel: str
) -> Result:
    options = ["--control"] if control else []
    read = _command.input_file(native.text, native.file, os.fspath(native.directory))
    with reporter(progress) as report, read as file:
        document = _command.call(["lab", *file, "--kernel", kernel, "--json", *options])
        if report is not None:
            total = native.repeat * (2 if control else 1)
            report(total, total)
    return Result(_native.RunResults.parse(json.dumps(document)))


def _restored(text: str, name: str, directory: str) -> Scenario:
    return Scenario.parse(text, name=name, directory=directory)


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    """Replaces what is at a path; tables of a list are numbered from 1, as in sweep files."""
    *tables, key = path.split(".")
    place: Any = document
    for table in tables:
        if isinstance(place, list):
            if not (table.isdigit() and 1 <= int(table) <= len(place)):
                raise KeyError(f"`{path}`: the list has {len(place)} tables, numbered from 1")
            place = place[int(table) - 1]
        else:
            place = place.setdefault(table, {})
    if not isinstance(place, dict):
        raise KeyError(f"`{path}` is not below a table")
    if value is None:
        place.pop(key, None)
    else:
        place[key] = value


def scenario_of(source: ScenarioLike) -> Scenario:
    """The scenario that `source` is or describes."""
    return source if isinstance(source, Scenario) else Scenario(source)


def simulate(
    scenario: ScenarioLike,
    *,
    control: bool = False,
    progress: Progress = None,
    kernel: str | os.PathLike[str] | None = None,
) -> Result:
    """Simulates all runs of a scenario, in virtual time.

    `scenario` is a `Scenario`, a file's path or tables. With `control` each run is made again
    without Outlast. `progress` is True for a line on standard error, or is called with the number of
    runs done and of all. The interpreter's lock is released; Ctrl-C ends it.

    With `kernel` the command's lab runs it on the packaged kernel in that directory, as
    `outlast lab --kernel` does. Raises `KernelError` if that cannot be done.
    """
    native = scenario_of(scenario)._native
    if kernel is not None:
        return _run_on_kernel(native, control, progress, os.fspath(kernel))
    with reporter(progress) as report:
        return Result(_native.run(native, control, report))


def run(
    scenario: ScenarioLike,
    *,
    control: bool = False,
    progress: Progress = None,
    kernel: str | os.PathLike[str] | None = None,
) -> Result:
    """An alias of `simulate`, by the name that it had first. The command's `outlast run` is a daemon."""
    return simulate(scenario, control=control, progress=progress, kernel=kernel)
