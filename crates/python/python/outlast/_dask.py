"""Sweeps on a Dask cluster. Dask places the tasks, and repeats those of workers that it loses."""

from __future__ import annotations

import hashlib
import importlib
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from outlast import _native
from outlast._errors import SweepError
from outlast._progress import Progress, reporter

if TYPE_CHECKING:
    import distributed

#: Tasks for each thread of the cluster: many enough that all threads end at about the same time.
TASKS_PER_THREAD = 32

#: Runs of a task at most: they are made again if its worker is lost.
LARGEST_BATCH = 100

#: Sweeps that a worker keeps ready.
KEPT_SWEEPS = 4

_plans: OrderedDict[bytes, _native.Plan] = OrderedDict()
_lock = Lock()


def _plan(bundle: bytes) -> _native.Plan:
    """The sweep of a bundle, which a worker reads once."""
    key = hashlib.blake2b(bundle, digest_size=16).digest()
    with _lock:
        plan = _plans.get(key)
        if plan is None:
            plan = _plans[key] = _native.Plan.unbundle(bundle)
            while len(_plans) > KEPT_SWEEPS:
                _plans.popitem(last=False)
    return plan


def simulate_batch(bundle: bytes, turns: list[tuple[int, int]]) -> bytes:
    """What a worker does: some runs of a sweep. They come back as the lines of a journal."""
    return _plan(bundle).carry_out(turns)


def send_sweep(bundle: bytes) -> bytes:
    """A task whose result is the sweep, so that Dask can make it again on whatever worker needs it."""
    return bundle


def carry_out(
    plan: _native.Plan,
    store: _native.Store,
    client: distributed.Client,
    batch: int | None,
    progress: Progress,
) -> None:
    """Has the workers of `client` make the runs that are not in `store`."""
    distributed = _distributed()
    if client.asynchronous:
        raise ValueError("`client` is asynchronous: make it with `Client(..., asynchronous=False)`")
    left = plan.runs - store.done
    if left == 0:
        return
    batches = store.pending(batch or _batch_size(left, client))
    bundle = client.submit(send_sweep, plan.bundle(), pure=False)
    futures = client.map(
        simulate_batch,
        [bundle] * len(batches),
        batches,
        pure=False,
        key=f"outlast-{plan.name or 'sweep'}",
    )
    try:
        with reporter(_shown_by_dask(distributed, futures, progress)) as report:
            for future, lines in distributed.as_completed(futures, with_results=True):
                done = store.append(lines)
                # A worker need not keep what is stored.
                future.release()
                if report is not None:
                    report(done, plan.runs)
    except distributed.scheduler.KilledWorker as error:
        raise SweepError(
            f"{error} Finished runs are kept if `out` was given. Look at the workers' logs and memory, "
            "or make `batch` smaller."
        ) from error
    finally:
        client.cancel(futures)


def _batch_size(runs: int, client: distributed.Client) -> int:
    threads: int = max(1, sum(client.nthreads().values()))
    return max(1, min(LARGEST_BATCH, runs // (threads * TASKS_PER_THREAD)))


def _shown_by_dask(distributed: Any, futures: list[Any], progress: Progress) -> Progress:
    """Shows Dask's own bar, if that was asked for where there are bars."""
    if progress is not True or not distributed.utils.is_kernel():
        return progress
    try:
        display = importlib.import_module("IPython.display").display
        importlib.import_module("ipywidgets")
    except ImportError:
        return progress
    display(distributed.progress(futures, notebook=True))
    return None


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ImportError(
            "`client` needs Dask's scheduler, which is not installed: "
            "`pip install distributed`, or the package as `outlast[dask]`",
            name="distributed",
        ) from error
