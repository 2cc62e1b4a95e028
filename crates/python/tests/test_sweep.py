"""Sweeps: the tables are those of the command, whoever makes the runs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import outlast
import pyarrow.parquet
import pytest
from conftest import ROOT, command, tables
from outlast import _dask, _native


def two_workers() -> distributed.LocalCluster:
    """Two workers in processes of their own, which are replaced if they die."""
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with two_workers() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def write(sweep: dict[str, Any], directory: Path) -> Path:
    """A sweep as a file, with a scenario and a trace beside it."""
    file = directory / "grid.toml"
    file.write_text(outlast._toml.dumps(sweep))
    return file


def made_by_the_command(file: Path, out: Path) -> dict[str, bytes]:
    done = command("sweep", str(file), "--out", str(out))
    assert done.returncode == 0, done.stderr
    return tables(out)


def test_threads_give_the_tables_of_the_command(tmp_path: Path, grid: dict[str, Any]) -> None:
    file = write(grid, tmp_path)
    expected = made_by_the_command(file, tmp_path / "command")
    for threads in (1, 3):
        out = tmp_path / f"python-{threads}"
        result = outlast.sweep(file, threads=threads, out=out)
        assert tables(out) == expected
    # What stays in memory is what is written.
    written = pyarrow.parquet.read_table(out / "runs.parquet").to_pydict()
    assert result.runs.to_dict() == written
    assert outlast.sweep(grid).cells.to_dict() == result.cells.to_dict()


def test_cells_come_in_the_order_of_the_tables(grid: dict[str, Any]) -> None:
    cells = outlast.sweep(grid, outages=True)
    assert cells.cells.to_dict()["outlast.gateway"] == ["none", "hold"] * 2
    assert set(cells.tables) == {"runs", "cells", "outages"}
    with pytest.raises(KeyError, match="flows=True"):
        cells.to_arrow("flows")


def test_a_sweep_goes_on_from_where_the_command_was(tmp_path: Path, grid: dict[str, Any]) -> None:
    file = write(grid, tmp_path)
    expected = made_by_the_command(file, tmp_path / "command")
    out = tmp_path / "half"
    out.mkdir()
    lines = (tmp_path / "command/journal.jsonl").read_text().splitlines(keepends=True)
    (out / "journal.jsonl").write_text("".join(lines[:10]) + lines[10][:30])
    told: list[int] = []
    outlast.sweep(file, out=out, progress=lambda done, total: told.append(done))
    assert told == list(range(10, 25))
    assert tables(out) == expected
    grid["link"]["rate"] = "9 Mbit/s"
    with pytest.raises(outlast.SweepError, match="fresh=True"):
        outlast.sweep(write(grid, tmp_path), out=out)


def test_faulty_cells_are_told_before_anything_is_run(grid: dict[str, Any]) -> None:
    grid["sweep"]["grid"]["link.delay"] = ["2 ms", "9 h"]
    with pytest.raises(outlast.ScenarioError) as caught:
        outlast.sweep(grid)
    assert caught.value.value == '"9 h"'
    assert caught.value.allowed == "0 s to 1 h"


def test_arguments_that_contradict_each_other(grid: dict[str, Any], client: distributed.Client) -> None:
    with pytest.raises(ValueError, match="exclude"):
        outlast.sweep(grid, threads=2, client=client)
    with pytest.raises(ValueError, match="threads = 0"):
        outlast.sweep(grid, threads=0)


def test_a_cluster_gives_the_tables_of_the_command(
    tmp_path: Path, grid: dict[str, Any], client: distributed.Client
) -> None:
    file = write(grid, tmp_path)
    expected = made_by_the_command(file, tmp_path / "command")
    out = tmp_path / "dask"
    told: list[tuple[int, int]] = []
    outlast.sweep(
        file, client=client, batch=5, out=out, progress=lambda done, total: told.append((done, total))
    )
    assert tables(out) == expected
    assert told[-1] == (24, 24) and len(told) == 5
    before = len(told)
    outlast.sweep(file, client=client, out=out, progress=lambda *of: told.append(of))
    assert len(told) == before, "nothing was left to do"


def test_workers_need_no_files_of_the_sweep(tmp_path: Path, grid: dict[str, Any]) -> None:
    place = tmp_path / "here"
    place.mkdir()
    (place / "train.trace").write_text("0 up\n0.1 down\n0.7 up\n5 down\n6 up\n")
    base = {name: grid[name] for name in ("link", "workload", "run")}
    base["link"]["outages"] = {"process": "trace", "file": "train.trace"}
    (place / "base.toml").write_text(outlast._toml.dumps(base))
    sweep = {"sweep": {"scenario": "base.toml", **grid["sweep"]}}
    plan = outlast.Sweep(write(sweep, place))
    bundle = plan._native.bundle()
    shutil.rmtree(place)
    lines = _dask.simulate_batch(bundle, [(0, 2), (5, 6)])
    store = _native.Store(plan._native, str(tmp_path / "journal.jsonl"), False)
    assert store.append(lines) == 3
    assert store.pending(100) == [[(2, 5), (6, 24)]]
    with pytest.raises(outlast.SweepError, match="something else than a run"):
        store.append(b"{}\n")


def test_what_fails_on_a_worker_is_told_with_its_run(
    grid: dict[str, Any], client: distributed.Client
) -> None:
    # The least and the greatest values fit each other; some between them do not.
    grid["workload"] = {
        "kind": "interactive",
        "interval": "1 s",
        "update": "10 kB",
        "duration": "10 s",
    }
    grid["sweep"]["sample"] = {
        "workload.duration": {"distribution": "uniform", "from": "5 s", "to": "20 s"},
        "run.deadline": {"distribution": "uniform", "from": "5 s", "to": "20 s"},
    }
    with pytest.raises(outlast.ScenarioError, match="ends after `deadline"):
        outlast.sweep(grid, client=client)


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path, grid: dict[str, Any]) -> None:
    grid["sweep"]["repeat"] = 50
    file = write(grid, tmp_path)
    expected = made_by_the_command(file, tmp_path / "command")
    out = tmp_path / "dask"
    killed: list[tuple[int, int]] = []

    def kill(done: int, total: int) -> None:
        if not killed:
            victim = pids[0]
            os.kill(victim, signal.SIGKILL)
            killed.append((victim, total - done))

    with two_workers() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        pids = list(client.run(os.getpid).values())
        outlast.sweep(file, client=client, batch=5, out=out, progress=kill)
    [(_, left)] = killed
    assert left >= 100, f"only {left} runs were left: the worker died too late to be missed"
    assert tables(out) == expected


@pytest.mark.parametrize("file", sorted((ROOT / "examples/sweeps").glob("*.toml")))
def test_examples_are_read(file: Path) -> None:
    sweep = outlast.Sweep(file)
    assert sweep.runs == sweep.cells * sweep.repeat
