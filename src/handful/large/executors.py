"""Who labels the shards of a run: this process, on one or more threads. For a cluster see `handful.large.on_ray`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TypeAlias

from handful.large.decided import DecidedRun
from handful.large.shard import Work

# Labels all shards and yields their numbers as they are done, in any order; stops when it is closed.
Executor: TypeAlias = Callable[[Work, DecidedRun], Generator[int, None, None]]


def in_process(workers: int = 1) -> Executor:
    """Return an executor that works here, on that many threads; each shard uses one, so sums have a fixed order."""
    return _in_turn if workers == 1 else partial(_on_threads, workers)


def _in_turn(work: Work, decided: DecidedRun) -> Generator[int, None, None]:
    for shard in range(work.n_shards):
        yield work.label(shard, decided)


def _on_threads(workers: int, work: Work, decided: DecidedRun) -> Generator[int, None, None]:
    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(work.label, shard, decided) for shard in range(work.n_shards)]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
