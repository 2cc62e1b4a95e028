"""Outlast from Python: scenarios, simulations and sweeps of TCP over links that go away.

>>> import outlast
>>> scenario = outlast.Scenario(
...     link={"rate": "10 Mbit/s", "delay": "25 ms",
...           "outages": {"process": "single", "start": "1 s", "length": "8 s"}},
...     workload={"kind": "bulk", "bytes": "2 MB"},
...     outlast={"gateway": "hold"},
... )
>>> run = outlast.run(scenario).runs[0]
>>> run.completed
True
"""

from outlast._errors import KernelError, OutlastError, Problem, ScenarioError, SweepError
from outlast._native import VERSION as __version__
from outlast._results import (
    DroppedPackets,
    Flow,
    Hop,
    Outage,
    Result,
    Run,
    Traffic,
)
from outlast._scenario import Scenario, run
from outlast._sweep import Sweep, SweepResult, sweep
from outlast._table import Table

__all__ = [
    "DroppedPackets",
    "Flow",
    "Hop",
    "KernelError",
    "Outage",
    "OutlastError",
    "Problem",
    "Result",
    "Run",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepError",
    "SweepResult",
    "Table",
    "Traffic",
    "__version__",
    "run",
    "sweep",
]
