#!/usr/bin/env python3
"""Draws how soon transfers resumed after outages, by kernel: docs/compare-kernels.md.

Takes directories of finished sweeps (`outlast sweep --out`), and writes kernels.svg.
"""

import csv
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def resumes(directory):
    """Release of the kernel, and the resume time of each seed."""
    with open(Path(directory) / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    kernel = rows[0]["kernel"] or "simulator"
    return kernel, {row["seed"]: float(row["resume_first_s"]) for row in rows if row["resume_first_s"]}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    all_of = [resumes(directory) for directory in sys.argv[1:]]
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for kernel, times in all_of:
        ordered = sorted(times.values())
        shares = [(index + 1) / len(ordered) for index in range(len(ordered))]
        median = statistics.median(ordered)
        axes.step(ordered, shares, where="post", label=f"{kernel}: {len(ordered)} runs, median {median:.3f} s")
    axes.set(xlabel="from link-up to new data [s]", ylabel="share of outages", xlim=(0, None), ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig("kernels.svg")
    # A seed has the same outage on each kernel: pairs show what distributions hide.
    (_, first), *others = all_of
    for kernel, times in others:
        pairs = [times[seed] - first[seed] for seed in first.keys() & times.keys()]
        if pairs:
            later = sum(difference > 0 for difference in pairs)
            print(
                f"{kernel} against {all_of[0][0]}: median difference {statistics.median(pairs):+.4f} s, "
                f"later in {later} of {len(pairs)} pairs"
            )


if __name__ == "__main__":
    main()
