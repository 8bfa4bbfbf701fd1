"""Shards over a Ray cluster, whose nodes need no folder in common; those of a node that dies are labelled elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from handful.errors import ClusterError
from handful.large.decided import DecidedRun
from handful.large.executors import Executor
from handful.large.shard import Work
from handful.machine.ray_cluster import as_completed, connected, remote
from handful.machine.threads import only_one_thread


def on_ray(address: str | None = None) -> Executor:
    """Return an executor that labels shards as Ray tasks; `address` as in `handful.machine.ray_cluster.connected`."""

    def run(work: Work, decided: DecidedRun) -> Generator[int, None, None]:
        with connected(address) as ray:
            # Sent once to each node, where all processes read one copy in shared memory.
            shared = ray.put(work), ray.put(decided)
            submit = remote(ray, label_shard)
            yield from as_completed(ray, (submit(shard, *shared) for shard in range(work.n_shards)), _lost)

    return run


def label_shard(shard: int, work: Work, decided: DecidedRun) -> int:
    """Run on a worker."""
    only_one_thread()
    return work.label(shard, decided)


def _lost(_: Any, error: Exception) -> NoReturn:
    raise ClusterError(
        "a shard was lost on every node that was given it; call again to continue the run. The last loss: "
        + " ".join(str(error).split())
    ) from error
