"""Runs: what comes of them, as objects and as tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import outlast
import pandas
import polars
import pyarrow
import pytest
from conftest import command


def test_the_control_stalls_and_hold_does_not(ferry: dict[str, Any]) -> None:
    result = outlast.run(ferry, control=True)
    held, plain = result.runs[0].outages[0], result.control[0].outages[0]
    assert held.resume_s is not None and held.resume_s < 0.1
    assert plain.resume_s is not None and plain.resume_s > 0.5
    assert (result.runs[0].gateway, result.control[0].gateway) == ("hold", "none")


def test_results_are_those_of_the_command(tmp_path: Path, ferry: dict[str, Any]) -> None:
    ferry["run"] = {"repeat": 2}
    file = tmp_path / "ferry.toml"
    file.write_text(outlast.Scenario(ferry).text)
    printed = command("sim", str(file), "--json", "--control")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == json.loads(outlast.run(file, control=True).to_json())


def test_tables_say_what_the_runs_say(ferry: dict[str, Any]) -> None:
    ferry["run"] = {"repeat": 3}
    ferry["flows"] = [{"kind": "bulk", "bytes": "100 kB", "begin": "100 ms"}]
    result = outlast.run(ferry)
    frame = result.to_pandas()
    assert list(frame["seed"]) == [run.seed for run in result.runs]
    assert list(frame["elapsed_s"]) == [run.elapsed_s for run in result.runs]
    outages = result.to_polars("outages")
    assert outages["start_s"].to_list() == [
        outage.start_s for run in result.runs for outage in run.outages
    ]
    flows = result.table("flows").to_dict()
    assert flows["flow"] == [1, 2] * 3
    assert result.runs[0].flows is not None
    assert flows["bytes_received"][:2] == [flow.bytes_received for flow in result.runs[0].flows]


def test_tables_are_taken_over_without_copies(ferry: dict[str, Any]) -> None:
    table = outlast.run(ferry).table()

    def places(taken: pyarrow.Table) -> list[int]:
        chunks = (chunk for column in taken.columns for chunk in column.chunks)
        return [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer]

    first, second = table.to_arrow(), table.to_arrow()
    assert places(first) == places(second)
    assert first.schema == pyarrow.schema(table)
    expected = first.to_pydict()
    del table, second
    assert first.to_pydict() == expected == polars.DataFrame(first).to_dict(as_series=False)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, ferry: dict[str, Any]) -> None:
    table = outlast.run(ferry).table()
    for library in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install pandas.*outlast\[pandas\]"):
        table.to_pandas()
    with pytest.raises(ImportError, match=r"outlast\[polars\]"):
        table.to_polars()
    with pytest.raises(ImportError, match=r"outlast\[arrow\]"):
        table.to_arrow()
    assert table.to_dict()["completed"] == [True]


def test_progress_is_told_after_each_run(ferry: dict[str, Any]) -> None:
    ferry["run"] = {"repeat": 2}
    told: list[tuple[int, int]] = []
    outlast.run(ferry, control=True, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def refuse(done: int, total: int) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        outlast.run(ferry, progress=refuse)


#: A scenario that takes much longer than anyone waits.
ENDLESS = """
import outlast, threading
tables = {
    "link": {"rate": "1 Gbit/s", "delay": "1 ms"},
    "workload": {"kind": "bulk", "bytes": "900 GB"},
    "run": {"deadline": "24 h"},
}
"""


@pytest.mark.parametrize(
    "call",
    ["outlast.run(tables)", "outlast.sweep({**tables, 'sweep': {'repeat': 4}}, threads=1)"],
)
def test_ctrl_c_ends_a_run(call: str) -> None:
    # Another thread speaks while the simulation goes on.
    begun = "threading.Timer(0.3, lambda: print('begun', flush=True)).start()"
    script = f"{ENDLESS}\n{begun}\n{call}\n"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert process.returncode in (1, -signal.SIGINT)


def test_the_interpreters_lock_is_released(ferry: dict[str, Any]) -> None:
    ferry["workload"]["bytes"] = "60 MB"
    scenario = outlast.Scenario(ferry)
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.002):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    outlast.run(scenario)
    ended = time.monotonic()
    over.set()
    thread.join()
    # With the lock held, the thread would not tick at all in between.
    during = [each for each in ticks if begun < each < ended]
    assert len(during) >= 3, f"{len(during)} ticks in {ended - begun:.3f} s"


def test_pandas_frames_have_types(ferry: dict[str, Any]) -> None:
    frame = outlast.run(ferry).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["completed"].dtype == bool
    assert frame["elapsed_s"].dtype == "float64"


def test_simulate_is_the_name_and_run_an_alias(ferry: dict[str, Any]) -> None:
    assert outlast.simulate(ferry).to_json() == outlast.run(ferry).to_json()
    assert outlast.run.__doc__ is not None and "simulate" in outlast.run.__doc__


def test_a_table_says_which_runs_are_the_control(ferry: dict[str, Any]) -> None:
    ferry["run"] = {"repeat": 2}
    result = outlast.simulate(ferry, control=True)
    frame = result.to_pandas()
    assert list(frame["control"]) == [False, False, True, True]
    assert list(frame["gateway"]) == ["hold", "hold", "none", "none"]
    assert list(frame["seed"]) == [run.seed for run in [*result.runs, *result.control]]
    means = frame.groupby("control")["elapsed_s"].mean()
    assert means[False] < means[True]
    for wanted, runs in ((False, result.runs), (True, result.control)):
        rows = result.table(control=wanted).to_dict()
        assert rows["elapsed_s"] == [run.elapsed_s for run in runs]
        assert rows["control"] == [wanted] * 2
    assert result.to_pandas("outages")["control"].tolist() == [False, False, True, True]


def test_a_result_draws_each_first_byte(
    monkeypatch: pytest.MonkeyPatch, ferry: dict[str, Any]
) -> None:
    import matplotlib

    matplotlib.use("agg")
    ferry["run"] = {"repeat": 2}
    result = outlast.simulate(ferry, control=True)
    ax = result.plot()
    drawn = {points.get_label(): points.get_offsets() for points in ax.collections}
    assert sorted(drawn) == ["hold", "without Outlast"]
    for label, runs in (("hold", result.runs), ("without Outlast", result.control)):
        times = [outage.resume_s for run in runs for outage in run.outages]
        assert [float(point[1]) for point in drawn[label]] == pytest.approx(times)
    assert result.plot(ax) is ax
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib.*outlast\[plot\]"):
        result.plot()


def test_what_never_resumed_is_drawn_as_such(ferry: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("agg")
    ferry["outlast"] = {"gateway": "none"}
    ferry["run"] = {"deadline": "4600 ms"}
    ax = outlast.simulate(ferry).plot()
    labels = [points.get_label() for points in ax.collections]
    assert "without Outlast: not resumed" in labels
    del ferry["link"]["outages"]
    assert outlast.simulate(ferry).plot().get_ylabel() == "time (s)"


def test_a_notebook_shows_a_row_for_each_run(ferry: dict[str, Any]) -> None:
    scenario = outlast.Scenario({**ferry, "name": "<b>ferry</b>", "run": {"repeat": 12}})
    shown = outlast.simulate(scenario, control=True)._repr_html_()
    assert shown.count("<tr>") == 1 + 20 and "and 4 more" in shown
    assert "without Outlast" in shown and "<td>hold</td>" in shown
    assert "<b>ferry" not in shown and "&lt;b&gt;ferry&lt;/b&gt;" in shown
