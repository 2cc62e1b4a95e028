"""Captures that somebody made: the outages in them, and what each connection lost."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from outlast import _command
from outlast._errors import TraceError
from outlast._results import of
from outlast._table import library

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class StalledFlow:
    """One connection that stood still in an outage; `docs/trace.md` describes the fields."""

    src: str
    dst: str
    noticed_s: float | None
    wasted_s: float
    wasted_most_s: float
    saved_s: float
    saved_most_s: float
    cause: str
    round_trip_s: float | None
    unanswered: int


@dataclass(frozen=True)
class TracedOutage:
    """An outage that a capture shows. Times are in seconds since its first packet."""

    start_s: float
    start_earliest_s: float
    start_latest_s: float
    end_s: float | None
    end_earliest_s: float
    scope: str
    flows: list[StalledFlow]


class Trace:
    """Findings of captures."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.capture: dict[str, Any] = document["capture"]
        """Counts of the capture, and of each of its files what was not read."""
        self.outages: list[TracedOutage] = [_outage(outage) for outage in document["outages"]]

    def to_json(self) -> str:
        """The document that `outlast trace --json` prints."""
        return json.dumps(self._document, indent=2)

    def to_dict(self) -> dict[str, list[Any]]:
        """A row for each connection of each outage, in the columns of `outlast trace --csv`."""
        outage_names = [name for name in TracedOutage.__dataclass_fields__ if name != "flows"]
        names = ["outage", *outage_names, *StalledFlow.__dataclass_fields__]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for number, outage in enumerate(self.outages, 1):
            for flow in outage.flows:
                row = {"outage": number, **asdict(outage), **asdict(flow)}
                for name in names:
                    columns[name].append(row[name])
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_dict` as a `pandas.DataFrame`."""
        frame: pandas.DataFrame = library("pandas", "to_pandas").DataFrame(self.to_dict())
        return frame

    def __repr__(self) -> str:
        packets = self.capture["packets"]
        return f"<outlast.Trace of {packets} packets: {len(self.outages)} outages>"


def _outage(document: dict[str, Any]) -> TracedOutage:
    flows = [of(StalledFlow, flow) for flow in document["flows"]]
    return of(TracedOutage, {**document, "flows": flows})


def trace(*captures: str | os.PathLike[str]) -> Trace:
    """Finds outages in captures, pcap or pcapng, and why each connection stood still.

    Several are merged by their times: both ends of a path, or the files of one capture. The command `outlast` reads
    them, so it has to be in `PATH`, or named in the environment as `OUTLAST_COMMAND`. Raises `TraceError` if it is
    missing, or nothing of the captures can be read.
    """
    if not captures:
        raise TypeError("trace() wants at least one capture")
    files = [os.path.abspath(os.fspath(capture)) for capture in captures]
    arguments = ["trace", "--json", "--", *files]
    return Trace(_command.call(arguments, error=TraceError, needed_for="captures need"))
