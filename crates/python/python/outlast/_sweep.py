"""Sweeps: a scenario many times, each time with other values, here or on a Dask cluster."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from outlast import _command, _dask, _native, _toml
from outlast._progress import Progress, reporter
from outlast._scenario import DICT, Scenario
from outlast._table import Table

if TYPE_CHECKING:
    import distributed
    import pandas
    import polars
    import pyarrow


class Sweep:
    """A sweep of which every cell was found to be sound.

    `Sweep("hold.toml")` reads a sweep file, `Sweep({...})` takes the same tables as Python's values:
    those of a scenario, and `"sweep"`. `docs/sweep-file.md` describes them.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        /,
        *,
        directory: str | os.PathLike[str] = ".",
    ) -> None:
        self._read(source, os.fspath(directory), simulated=True)

    def _read(
        self, source: str | os.PathLike[str] | Mapping[str, Any], directory: str, *, simulated: bool
    ) -> None:
        if isinstance(source, Mapping):
            tables = {
                name: table.to_dict() if isinstance(table, Scenario) else table
                for name, table in source.items()
            }
            text = _toml.dumps(tables)
            self._native = _native.Plan.parse(text, DICT, directory, simulated)
        else:
            self._native = _native.Plan.load(os.fspath(source), simulated)

    @classmethod
    def _for_kernel(
        cls, source: str | os.PathLike[str] | Mapping[str, Any], directory: str
    ) -> Sweep:
        """A sweep that the simulator need not be able to run."""
        sweep = cls.__new__(cls)
        sweep._read(source, directory, simulated=False)
        return sweep

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "sweep.toml",
        directory: str | os.PathLike[str] = ".",
    ) -> Sweep:
        """A sweep from the text of a file, which messages call `name`."""
        sweep = cls.__new__(cls)
        sweep._native = _native.Plan.parse(text, name, os.fspath(directory), True)
        return sweep

    @property
    def name(self) -> str:
        """Its name: the file's without its extension."""
        return self._native.name

    @property
    def cells(self) -> int:
        """How many cells its grid has."""
        return self._native.cells

    @property
    def repeat(self) -> int:
        """How often each cell is run."""
        return self._native.repeat

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self._native.runs

    def __repr__(self) -> str:
        return f"<outlast.Sweep {self.name!r}: {self.cells} cells, {self.runs} runs>"


#: A sweep, or what one is made from: a file's path, or tables.
SweepLike = Union[Sweep, str, "os.PathLike[str]", Mapping[str, Any]]


class SweepResult:
    """The tables of a finished sweep, as `docs/sweep-file.md` describes them."""

    def __init__(self, sweep: Sweep, tables: dict[str, Table], corrupt: int) -> None:
        self.sweep = sweep
        self.tables = tables
        """All tables by their names: "runs", "cells" and, if asked for, "outages" and "flows"."""
        self.corrupt = corrupt
        """Runs in which what arrived is not what was sent."""

    @property
    def runs(self) -> Table:
        """A row for each run."""
        return self.tables["runs"]

    @property
    def cells(self) -> Table:
        """A row for each cell."""
        return self.tables["cells"]

    def table(self, name: str = "runs") -> Table:
        """The table `name`."""
        if name in self.tables:
            return self.tables[name]
        if name in ("outages", "flows"):
            raise KeyError(f'the table "{name}" was not asked for: sweep(..., {name}=True)')
        raise KeyError(f'there is no table "{name}"; there are {", ".join(self.tables)}')

    def to_arrow(self, name: str = "runs") -> pyarrow.Table:
        """The table `name` as a `pyarrow.Table`, without a copy."""
        return self.table(name).to_arrow()

    def to_pandas(self, name: str = "runs", **options: Any) -> pandas.DataFrame:
        """The table `name` as a `pandas.DataFrame`."""
        return self.table(name).to_pandas(**options)

    def to_polars(self, name: str = "runs") -> polars.DataFrame:
        """The table `name` as a `polars.DataFrame`."""
        return self.table(name).to_polars()

    def __repr__(self) -> str:
        return f"<outlast.SweepResult of {self.sweep.name!r}: {len(self.runs)} runs>"


def sweep(
    source: SweepLike,
    /,
    *,
    threads: int | None = None,
    client: distributed.Client | None = None,
    batch: int | None = None,
    out: str | os.PathLike[str] | None = None,
    outages: bool = False,
    flows: bool = False,
    fresh: bool = False,
    progress: Progress = None,
    directory: str | os.PathLike[str] = ".",
    kernel: str | os.PathLike[str] | None = None,
) -> SweepResult:
    """Carries a sweep out, and returns its tables.

    `source` is a sweep file's path, its tables as Python's values, or a `Sweep`. The runs are made in
    `threads` threads, by default as many as there are processors, or by the workers of a Dask
    `client`, in tasks of `batch` runs each. The tables do not depend on it, to the byte.

    With `out` finished runs are kept in that directory, from which an interrupted sweep goes on, and
    the tables are written there as CSV and Parquet, as `outlast sweep --out` does. `fresh` forgets
    what is there. `outages` and `flows` ask for further tables. `progress` is True for a line on
    standard error (with a client in a notebook, Dask's own bar), or is called with the number of runs
    done and of all.

    With `kernel` the command carries each run out on the packaged kernel in that directory, as
    `outlast sweep --kernel` does. Raises `KernelError` if that cannot be done.
    """
    if client is not None and kernel is not None:
        raise ValueError("`client` and `kernel` exclude each other: guests run on this machine")
    if isinstance(source, Sweep):
        plan = source
    elif kernel is not None:
        plan = Sweep._for_kernel(source, os.fspath(directory))
    else:
        plan = Sweep(source, directory=directory)
    if client is not None and threads is not None:
        raise ValueError("`threads` and `client` exclude each other: a Dask worker has its own threads")
    if threads is not None and threads < 1:
        raise ValueError(f"`threads = {threads}` is not 1 or more")
    if batch is not None and batch < 1:
        raise ValueError(f"`batch = {batch}` is not 1 or more")
    details = [name for name, wanted in (("outages", outages), ("flows", flows)) if wanted]
    if kernel is not None:
        options = [f"--{name}" for name in details] + (["--fresh"] if fresh else [])
        if threads is not None:
            options += ["--threads", str(threads)]
        arguments = ["--kernel", os.fspath(kernel), *options]
        if out is not None:
            return _sweep_on_kernel(plan, os.fspath(out), details, arguments, progress)
        with tempfile.TemporaryDirectory(prefix="outlast-sweep-") as place:
            return _sweep_on_kernel(plan, place, details, arguments, progress)
    if out is not None:
        os.makedirs(out, exist_ok=True)
        return _sweep(plan, os.fspath(out), True, details, threads, client, batch, fresh, progress)
    with tempfile.TemporaryDirectory(prefix="outlast-sweep-") as place:
        return _sweep(plan, place, False, details, threads, client, batch, fresh, progress)


def _sweep(
    plan: Sweep,
    place: str,
    kept: bool,
    details: list[str],
    threads: int | None,
    client: distributed.Client | None,
    batch: int | None,
    fresh: bool,
    progress: Progress,
) -> SweepResult:
    native = plan._native
    store = _native.Store(native, os.path.join(place, "journal.jsonl"), fresh)
    if client is not None:
        _dask.carry_out(native, store, client, batch, progress)
    else:
        with reporter(progress) as report:
            total = native.runs
            store.simulate(threads, None if report is None else lambda done: report(done, total))
    if kept:
        store.write(place, details)
    return _gathered(plan, store, details)


def _sweep_on_kernel(
    plan: Sweep, place: str, details: list[str], arguments: list[str], progress: Progress
) -> SweepResult:
    native = plan._native
    journal = os.path.join(place, "journal.jsonl")
    read = _command.input_file(native.text, native.file, os.fspath(native.directory))
    with reporter(progress) as report, read as file:

        def watch() -> None:
            if report is not None:
                report(_lines(journal), native.runs)

        document = _command.call(["sweep", *file, "--out", place, "--json", *arguments], watch)
        watch()
    store = _native.Store(native, journal, False, document["kernel"])
    return _gathered(plan, store, details)


def _lines(journal: str) -> int:
    """Runs in a journal that another process writes."""
    try:
        with open(journal, "rb") as file:
            return max(0, sum(1 for _ in file) - 1)
    except FileNotFoundError:
        return 0


def _gathered(plan: Sweep, store: _native.Store, details: list[str]) -> SweepResult:
    tables, corrupt = store.tables(details)
    if corrupt:
        warnings.warn(
            f"in {corrupt} runs what arrived is not what was sent", RuntimeWarning, stacklevel=4
        )
    return SweepResult(plan, {name: Table(table) for name, table in tables.items()}, corrupt)
