"""Captures: the outages in them, as objects and as rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import outlast
import pytest
from conftest import command


@pytest.fixture
def captures(tmp_path: Path, ferry: dict[str, Any]) -> list[Path]:
    """Both ends of a link that went away, without Outlast."""
    ferry["outlast"] = {"gateway": "none"}
    file = tmp_path / "ferry.toml"
    file.write_text(outlast.Scenario(ferry).text)
    made = command("sim", str(file), "--capture", str(tmp_path / "captures"))
    assert made.returncode == 0, made.stderr
    return sorted((tmp_path / "captures").iterdir())


def test_what_is_found_is_what_the_command_says(captures: list[Path]) -> None:
    trace = outlast.trace(*captures)
    [outage] = trace.outages
    assert outage.start_s == pytest.approx(0.5, abs=0.2)
    assert outage.end_s is not None and outage.end_s >= 4.4
    [flow] = outage.flows
    assert flow.wasted_most_s > 0.5 and flow.cause == "back-off"
    files = [str(capture) for capture in captures]
    printed = command("trace", "--json", *files)
    assert json.loads(trace.to_json()) == json.loads(printed.stdout)
    rows = list(csv.DictReader(io.StringIO(command("trace", "--csv", *files).stdout)))
    columns = trace.to_dict()
    assert list(columns) == list(rows[0])
    assert columns["src"] == [row["src"] for row in rows]
    frame = trace.to_pandas()
    assert list(frame["cause"]) == [flow.cause]


def test_what_cannot_be_read_is_said(
    tmp_path: Path, captures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture\n")
    with pytest.raises(outlast.TraceError, match="notes.txt"):
        outlast.trace(text)
    with pytest.raises(TypeError, match="at least one capture"):
        outlast.trace()
    monkeypatch.delenv("OUTLAST_COMMAND")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(outlast.TraceError, match="OUTLAST_COMMAND"):
        outlast.trace(captures[0])
