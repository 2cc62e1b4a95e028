"""Results as pictures, and as a table in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from outlast._table import library

if TYPE_CHECKING:
    from outlast._results import Result, Run

#: Colours that people with any kind of colour vision tell apart (Okabe and Ito).
CONTROL, HELPED = "#d55e00", "#0072b2"

#: A first byte that comes at once has a place on a logarithmic axis, too.
SHORTEST_S = 1e-3

#: Rows of a notebook's table.
MOST_ROWS = 20


def _sides(result: Result) -> list[tuple[str, str, list[Run]]]:
    """Name, colour and runs of each side, those without Outlast first."""
    help_ = result.runs[0] if result.runs else None
    names = [] if help_ is None else [help_.gateway, help_.mobile, help_.fixed]
    named = ", ".join(dict.fromkeys(name for name in names if name != "none"))
    sides = [("without Outlast", CONTROL, result.control), (named or "without Outlast", HELPED, result.runs)]
    return [side for side in sides if side[2]]


def draw(result: Result, ax: Any) -> Any:
    """The picture of `Result.plot`."""
    pyplot = library("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = pyplot.subplots()
    sides = _sides(result)
    has_outages = any(run.outages for _, _, runs in sides for run in runs)
    for place, (name, colour, runs) in enumerate(sides):
        ups, downs = ([], []), ([], [])  # type: tuple[list[float], list[float]], tuple[list[float], list[float]]
        for number, run in enumerate(runs):
            # Runs of the two sides stand beside each other.
            at = number + 1 + 0.15 * (2 * place - len(sides) + 1)
            if not has_outages:
                ups[0].append(at)
                ups[1].append(run.elapsed_s)
                continue
            ends = [outage.start_s for outage in run.outages[1:]] + [run.elapsed_s]
            for outage, end in zip(run.outages, ends):
                if outage.resume_s is not None:
                    ups[0].append(at)
                    ups[1].append(max(outage.resume_s, SHORTEST_S))
                    continue
                # It had until the next outage, or the end of the run, unless all was there before the link was back.
                left = end - outage.start_s - (outage.length_s or float("inf"))
                if left > 0:
                    downs[0].append(at)
                    downs[1].append(max(left, SHORTEST_S))
        ax.scatter(*ups, color=colour, label=name, s=18)
        if downs[0]:
            ax.scatter(*downs, color=colour, label=f"{name}: not resumed", s=36, marker="^", facecolors="none")
    if has_outages:
        ax.set_yscale("log")
        ax.set_ylabel("first byte after the outage (s)")
    else:
        ax.set_ylabel("time (s)")
    ax.set_xlabel("run")
    ax.set_title(result.scenario)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    return ax


def _seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"


def html_of(result: Result) -> str:
    """The table of `Result._repr_html_`: one row for each run."""
    head = ["", "seed", "completed", "time (s)", "outages", "worst resume (s)", "timeouts", "retransmitted (B)"]
    rows = []
    for name, _, runs in _sides(result):
        for run in runs:
            resumed = [outage.resume_s for outage in run.outages]
            worst = None if None in resumed else max((time for time in resumed if time is not None), default=None)
            completed = "yes" if run.completed else run.error or "no"
            counts = [run.timeouts, run.retransmitted_bytes]
            counted = ["—" if count is None else f"{count:,}" for count in counts]
            cells = [name, str(run.seed), completed, _seconds(run.elapsed_s), str(len(resumed)), _seconds(worst)]
            rows.append([*cells, *counted])
    shown = rows[:MOST_ROWS]

    def row(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row("td", cells) for cells in shown)
    more = f"<p>and {len(rows) - len(shown)} more</p>" if len(rows) > len(shown) else ""
    caption = f"<caption>{html.escape(result.scenario)}</caption>"
    return f"<table>{caption}<thead>{row('th', head)}</thead><tbody>{body}</tbody></table>{more}"
