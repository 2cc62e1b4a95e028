"""Outlast from Python: scenarios, simulations and sweeps of TCP over links that go away.

>>> import outlast
>>> scenario = outlast.Scenario(
...     link={"rate": "10 Mbit/s", "delay": "25 ms",
...           "outages": {"process": "single", "start": "1 s", "length": "8 s"}},
...     workload={"kind": "bulk", "bytes": "2 MB"},
...     outlast={"gateway": "hold"},
... )
>>> run = outlast.simulate(scenario).runs[0]
>>> run.completed
True
"""

from outlast._errors import (
    KernelError,
    OutlastError,
    Problem,
    ScenarioError,
    SweepError,
    TraceError,
)
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
from outlast._scenario import Scenario, run, simulate
from outlast._sweep import Sweep, SweepResult, sweep
from outlast._table import Table
from outlast._trace import StalledFlow, Trace, TracedOutage, trace

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
    "StalledFlow",
    "SweepError",
    "SweepResult",
    "Table",
    "Trace",
    "TraceError",
    "TracedOutage",
    "Traffic",
    "__version__",
    "run",
    "simulate",
    "sweep",
    "trace",
]
