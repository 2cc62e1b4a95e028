"""The notebooks, from their first cell to their last: each judges its own figures."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest
from conftest import ROOT


@pytest.mark.parametrize("file", sorted((ROOT / "examples/notebooks").glob("*.ipynb")))
def test_a_notebook_runs(file: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no figure was drawn"
