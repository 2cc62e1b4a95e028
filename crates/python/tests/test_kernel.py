"""Runs and sweeps on packaged kernels, which the command makes.

Those that boot a kernel want the directory of one in `OUTLAST_KERNEL`, as `outlast kernels get` makes it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import outlast
import pytest
from conftest import command, tables


def small(ferry: dict[str, Any]) -> dict[str, Any]:
    """A transfer of a second or two."""
    ferry["workload"]["bytes"] = "500 kB"
    ferry["link"]["outages"].update(start="200 ms", length="2 s")
    ferry["run"] = {"deadline": "20 s"}
    return ferry


def swept(ferry: dict[str, Any]) -> dict[str, Any]:
    """A sweep of two runs."""
    return {**small(ferry), "sweep": {"grid": {"outlast.gateway": ["none", "hold"]}}}


@pytest.fixture
def kernel() -> str:
    """A kernel that boots here."""
    directory = os.environ.get("OUTLAST_KERNEL")
    if not directory:
        pytest.skip("OUTLAST_KERNEL names no unpacked kernel")
    if not any(shutil.which(f"qemu-system-{name}") for name in ("x86_64", "aarch64")):
        pytest.skip("the emulator qemu-system-x86_64 or qemu-system-aarch64 is not installed")
    return directory


def test_a_missing_kernel_is_named(tmp_path: Path, ferry: dict[str, Any]) -> None:
    missing = tmp_path / "nowhere"
    with pytest.raises(outlast.KernelError, match=r"nowhere: there is no such directory"):
        outlast.run(ferry, kernel=missing)
    with pytest.raises(outlast.KernelError, match=r"nowhere: there is no such directory"):
        outlast.sweep(swept(ferry), kernel=missing)
    with pytest.raises(outlast.KernelError, match=r"outlast kernels get"):
        outlast.sweep(swept(ferry), kernel=tmp_path, out=tmp_path / "out")


def test_a_missing_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ferry: dict[str, Any]
) -> None:
    monkeypatch.delenv("OUTLAST_COMMAND")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(outlast.KernelError, match=r"not in PATH.*OUTLAST_COMMAND"):
        outlast.run(ferry, kernel=tmp_path)
    monkeypatch.setenv("OUTLAST_COMMAND", str(tmp_path / "gone"))
    with pytest.raises(outlast.KernelError, match=r"gone cannot be run"):
        outlast.run(ferry, kernel=tmp_path)


def test_a_command_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ferry: dict[str, Any]
) -> None:
    other = tmp_path / "outlast"
    other.write_text("#!/bin/sh\necho outlast 99.0.0\n")
    other.chmod(0o755)
    monkeypatch.setenv("OUTLAST_COMMAND", str(other))
    with pytest.raises(outlast.KernelError, match=r"is Outlast 99\.0\.0, and this package is"):
        outlast.run(ferry, kernel=tmp_path)


def test_what_the_lab_lacks_is_said_by_the_command(tmp_path: Path, ferry: dict[str, Any]) -> None:
    # The simulator would run it.
    many = {**ferry, "flows": [{"kind": "bulk", "bytes": "1 kB", "count": 2000}]}
    with pytest.raises(outlast.KernelError, match=r"2001 connections"):
        outlast.run(many, kernel=tmp_path)


def test_clients_and_kernels_exclude_each_other(ferry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="`client` and `kernel` exclude each other"):
        outlast.sweep(swept(ferry), kernel="k", client=object())


def test_runs_are_those_of_the_command(tmp_path: Path, kernel: str, ferry: dict[str, Any]) -> None:
    calls: list[tuple[int, int]] = []
    result = outlast.run(
        small(ferry), kernel=kernel, control=True, progress=lambda done, of: calls.append((done, of))
    )
    assert (result.world, result.runs[0].world) == ("kernel", "kernel")
    assert result.kernel is not None and result.runs[0].kernel == result.kernel
    assert result.runs[0].completed and len(result.control) == 1
    rows = result.table().to_dict()
    assert rows["kernel"] == [result.kernel] * 2 and rows["control"] == [False, True]
    assert calls == [(2, 2)]
    file = tmp_path / "ferry.toml"
    file.write_text(outlast.Scenario(small(ferry)).text)
    printed = command("lab", str(file), "--json", "--control", "--kernel", kernel)
    ours, theirs = json.loads(result.to_json()), json.loads(printed.stdout)
    assert ours.keys() == theirs.keys() and ours["runs"][0].keys() == theirs["runs"][0].keys()
    assert ours["kernel"] == theirs["kernel"]
    for document in (ours, theirs):
        # The outage, 0.4 s of transfer, and what it takes to get going.
        assert 2.4 < document["runs"][0]["elapsed_s"] < 3.2
    # Another path of the file is another job for the guest: the microseconds differ, and no more.
    assert ours["runs"][0]["elapsed_s"] == pytest.approx(theirs["runs"][0]["elapsed_s"], rel=0.05)


def test_sweeps_are_those_of_the_command(tmp_path: Path, kernel: str, ferry: dict[str, Any]) -> None:
    calls: list[tuple[int, int]] = []
    sweep = outlast.sweep(
        swept(ferry),
        kernel=kernel,
        out=tmp_path / "ours",
        progress=lambda done, of: calls.append((done, of)),
    )
    runs = sweep.runs.to_dict()
    assert runs["world"] == ["kernel", "kernel"]
    assert runs["kernel"][0] == sweep.cells.to_dict()["kernel"][1]
    assert calls[-1] == (2, 2)
    # The command goes on from there, and has nothing left to do.
    file = tmp_path / "ferry.toml"
    file.write_text(outlast.Sweep(swept(ferry))._native.text)
    before = tables(tmp_path / "ours")
    said = command("sweep", str(file), "--kernel", kernel, "--out", str(tmp_path / "ours"))
    assert said.returncode == 0 and "2 of 2 runs were done before" in said.stderr
    assert tables(tmp_path / "ours") == before
    with pytest.raises(outlast.SweepError, match="this is the simulator"):
        outlast.sweep(swept(ferry), out=tmp_path / "ours")


def test_ctrl_c_ends_the_guest(kernel: str, ferry: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "ferry.toml"
    file.write_text(outlast.Scenario(small(ferry)).replace({"run.repeat": 200}).text)
    code = f"import outlast; outlast.run({str(file)!r}, kernel={kernel!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
