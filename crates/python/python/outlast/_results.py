"""What came of the runs of a scenario; `docs/result-format.md` describes the fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from outlast._table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from outlast import _native

T = TypeVar("T")


@dataclass(frozen=True)
class Outage:
    """An outage that began before the end of a run."""

    start_s: float
    length_s: float | None
    resume_s: float | None
    half_second_s: float | None = None
    first_five_seconds_share: float | None = None


@dataclass(frozen=True)
class DroppedPackets:
    """Packets that a link dropped, both ways, by reason."""

    queue_full: int
    loss: int
    link_down: int
    flushed: int
    in_flight: int


@dataclass(frozen=True)
class Flow:
    """One connection of a run that has several."""

    completed: bool
    intact: bool | None
    begin_s: float
    elapsed_s: float
    resume_s: list[float | None]
    timeouts: int | None
    retransmitted_bytes: int | None
    user_timeout_abort: bool
    error: str | None
    bytes_received: int
    updates: int | None
    workload: str
    direction: str | None
    bytes: int | None
    congestion: str
    sack: bool
    timestamps: bool
    profile: str | None = None
    kernel: str | None = None
    half_second_s: list[float | None] | None = None
    first_five_seconds_share: list[float | None] | None = None


@dataclass(frozen=True)
class Traffic:
    """What a source of other traffic sent, and what came through."""

    sent_packets: int
    received_packets: int


@dataclass(frozen=True)
class Hop:
    """What a further link did."""

    injected_packets: int
    dropped_packets: DroppedPackets


@dataclass(frozen=True)
class Run:
    """One run, and what it was made with."""

    completed: bool
    intact: bool | None
    elapsed_s: float
    ideal_s: float | None
    utilisation: float | None
    outages: list[Outage]
    timeouts: int | None
    retransmitted_bytes: int | None
    injected_packets: int
    user_timeout_abort: bool
    error: str | None
    bytes_received: int | None
    updates: int | None
    ideal_updates: int | None
    dropped_packets: DroppedPackets | None
    world: str
    seed: int
    workload: str
    direction: str | None
    bytes: int | None
    downlink_bits_per_s: int | None
    uplink_bits_per_s: int | None
    round_trip_s: float
    deadline_s: float
    ip: str
    gateway: str
    mobile: str
    fixed: str
    indicators: str
    configured_rate: str
    user_timeout_s: float | None
    congestion: str
    sack: bool
    timestamps: bool
    injected_bytes: int | None = None
    profile: str | None = None
    kernel: str | None = None
    flows: list[Flow] | None = None
    traffic: list[Traffic] | None = None
    hops: list[Hop] | None = None

    def __repr__(self) -> str:
        what = "completed" if self.completed else self.error or "not completed"
        return f"<outlast.Run seed {self.seed}: {what}, {self.elapsed_s:.3f} s>"


class Result:
    """All runs of one scenario."""

    def __init__(self, native: _native.RunResults) -> None:
        self._native = native
        document = json.loads(native.to_json())
        self.scenario: str = document["scenario"]
        self.world: str = document["world"]
        self.kernel: str | None = document.get("kernel")
        """Release of the packaged kernel, if it was run on one."""
        self.runs: list[Run] = [_run(run) for run in document["runs"]]
        self.control: list[Run] = [_run(run) for run in document.get("control", [])]

    def to_json(self) -> str:
        """The document that `outlast sim --json` prints, or `outlast lab --kernel`."""
        return self._native.to_json()

    def table(self, name: str = "runs", *, control: bool | None = None) -> Table:
        """The table `name`: "runs", "outages" or "flows".

        The column `control` is true for the runs without Outlast, which are the last ones. With `control=True` the
        table has them alone, with `control=False` the others alone.
        """
        if name not in ("runs", "outages", "flows"):
            raise ValueError(f'there is no table "{name}"; there are "runs", "outages" and "flows"')
        return Table(self._native.table(name, control))

    def to_arrow(self, name: str = "runs") -> pyarrow.Table:
        """The table `name` as a `pyarrow.Table`, without a copy."""
        return self.table(name).to_arrow()

    def to_pandas(self, name: str = "runs", **options: Any) -> pandas.DataFrame:
        """The table `name` as a `pandas.DataFrame`."""
        return self.table(name).to_pandas(**options)

    def to_polars(self, name: str = "runs") -> polars.DataFrame:
        """The table `name` as a `polars.DataFrame`."""
        return self.table(name).to_polars()

    def plot(self, ax: Any = None) -> Any:
        """Draws the time from the end of each outage to the first new byte, without and with Outlast.

        An empty triangle is an outage after which no byte came for so long, until the next one or the end of the run.
        Without outages, the runs' times are drawn. `ax` are axes of Matplotlib, made if there are none, and returned.
        """
        from outlast import _plot

        return _plot.draw(self, ax)

    def _repr_html_(self) -> str:
        from outlast import _plot

        return _plot.html_of(self)

    def __repr__(self) -> str:
        completed = sum(run.completed for run in self.runs)
        return f"<outlast.Result of {self.scenario!r}: {completed} of {len(self.runs)} runs completed>"


def of(kind: Callable[..., T], document: dict[str, Any]) -> T:
    """A `kind` of the fields of a document."""
    # A later version of the command may have more fields.
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in document.items() if name in known})


def _run(document: dict[str, Any]) -> Run:
    document = dict(document)
    document["outages"] = [of(Outage, outage) for outage in document["outages"]]
    drops = document["dropped_packets"]
    document["dropped_packets"] = None if drops is None else of(DroppedPackets, drops)
    for name, kind in (("flows", Flow), ("traffic", Traffic)):
        if name in document:
            document[name] = [of(kind, each) for each in document[name]]
    if "hops" in document:
        document["hops"] = [
            Hop(hop["injected_packets"], of(DroppedPackets, hop["dropped_packets"]))
            for hop in document["hops"]
        ]
    return of(Run, document)
