"""Shards over a Ray cluster: the same function, called elsewhere. Every node must see the items under the same path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from handful.errors import HandfulError
from handful.features.backbone import Backbone
from handful.features.extract import Compute, Executor, Shard, ShardFeatures
from handful.features.extras import import_extra

# Times a shard is tried again when the machine under it goes away. Errors of the shard itself are not retried: a pure
# function would only fail again.
RETRIES = 5
# Shards handed out for each core: enough that none waits for the next, few enough that results do not pile up.
SHARDS_PER_CORE = 2


def on_ray(address: str | None = None) -> Executor:
    """Return an executor that runs shards as Ray tasks.

    Parameters
    ----------
    address : str, optional
        The cluster's, or `auto`. By default the one this process is connected to, else a new one on this machine,
        which ends with the extraction.
    """

    def run(compute: Compute, backbone: Backbone, shards: Iterable[Shard]) -> Iterator[ShardFeatures]:
        ray = import_extra("ray", "ray")
        connected = address is None and ray.is_initialized()
        if not connected:
            local = {} if address else {"include_dashboard": False}
            ray.init(address=address or "local", log_to_driver=False, **local)
        try:
            yield from _run(ray, compute, backbone, shards)
        finally:
            if not connected:
                ray.shutdown()

    return run


def _run(ray: Any, compute: Compute, backbone: Backbone, shards: Iterable[Shard]) -> Iterator[ShardFeatures]:
    # The backbone travels once to each node, not once a shard.
    shared = ray.put(backbone)
    task = ray.remote(compute_shard).options(num_cpus=1, max_retries=RETRIES)
    waiting = iter(shards)
    running: list[Any] = []
    while True:
        room = SHARDS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(running)
        running += [task.remote(compute, shared, shard) for shard in islice(waiting, max(0, room))]
        if not running:
            return
        finished, running = ray.wait(running, num_returns=1)
        try:
            result = ray.get(finished[0])
        except ray.exceptions.RayTaskError as error:
            # Our own errors are sentences to the user; Ray would wrap them in the worker's traceback.
            raise error.cause if isinstance(error.cause, HandfulError) else error from None
        yield result


def compute_shard(compute: Compute, backbone: Backbone, shard: Shard) -> ShardFeatures:
    """Run on a worker."""
    return compute(backbone, shard)
