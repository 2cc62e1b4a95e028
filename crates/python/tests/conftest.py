"""What several tests start from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

#: The repository.
ROOT = Path(__file__).resolve().parents[3]

#: The tables that every sweep has.
TABLES = ["runs.csv", "runs.parquet", "cells.csv", "cells.parquet"]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command, whose path `check` gives."""
    return subprocess.run(
        [os.environ["OUTLAST_COMMAND"], *arguments], check=False, capture_output=True, text=True
    )


def tables(directory: Path) -> dict[str, bytes]:
    """The bytes of the tables in a directory."""
    return {name: (directory / name).read_bytes() for name in TABLES}


@pytest.fixture
def ferry() -> dict[str, Any]:
    """A transfer with one outage."""
    return {
        "link": {
            "rate": "10 Mbit/s",
            "delay": "25 ms",
            "outages": {"process": "single", "start": "500 ms", "length": "4 s"},
        },
        "workload": {"kind": "bulk", "bytes": "2 MB"},
        "outlast": {"gateway": "hold"},
    }


@pytest.fixture
def grid() -> dict[str, Any]:
    """A small sweep with outages at random."""
    return {
        "link": {
            "rate": "10 Mbit/s",
            "outages": {"process": "exponential", "up": "300 ms", "down": "400 ms"},
        },
        "workload": {"kind": "bulk", "bytes": "300 kB"},
        "run": {"deadline": "20 s"},
        "sweep": {
            "repeat": 6,
            "grid": {
                "link.delay": ["2 ms", "20 ms"],
                "outlast.gateway": ["none", "hold"],
            },
        },
    }
