"""Shards over a Ray cluster: the same function, run remotely. Every node must see the items under the same path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from handful.extraction.backbone import Backbone
from handful.extraction.extract import Compute, Executor, Shard, ShardFeatures
from handful.machine.ray_cluster import as_completed, connected, remote


def on_ray(address: str | None = None) -> Executor:
    """Return an executor that runs shards as Ray tasks; `address` as in `handful.machine.ray_cluster.connected`."""

    def run(compute: Compute, backbone: Backbone, shards: Iterable[Shard]) -> Iterator[ShardFeatures]:
        with connected(address) as ray:
            # The backbone is sent once to each node, not once per shard.
            shared = ray.put(backbone)
            submit = remote(ray, compute_shard)
            yield from as_completed(ray, (submit(compute, shared, shard) for shard in shards))

    return run


def compute_shard(compute: Compute, backbone: Backbone, shard: Shard) -> ShardFeatures:
    """Run on a worker."""
    return compute(backbone, shard)
