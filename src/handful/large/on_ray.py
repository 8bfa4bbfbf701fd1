"""Shards on the actors of a Ray cluster, which read them from the bank; if a machine dies, another reads them again.

What all need (tilts, or PADDLE's prototypes) is put into the object store once per pass; a node fetches it
once, however many actors it has. Results are added in the order of the shards, so the answer is bit for bit that of a
run in one process. Every node must see the banks and the run's folder under the same path.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.errors import HandfulError
from handful.large.crew import Crew, Executor
from handful.large.shard import Work
from handful.machine.ray_cluster import connected

# Shards queued at an actor: enough that it never waits for the driver.
SHARDS_AHEAD = 2


def on_ray(address: str | None = None, *, actors: int | None = None) -> Executor:
    """Return an executor whose shards are processed by Ray actors.

    Parameters
    ----------
    address : str, optional
        Address of the cluster, or `auto`. By default the cluster this process is connected to, else a new one on this
        machine, which ends with the run.
    actors : int, optional
        How many; by default one per core of the cluster, at most one per shard.
    """

    @contextmanager
    def open_crew(work: Work) -> Iterator[Crew]:
        with connected(address) as ray:
            cores = int(ray.cluster_resources().get("CPU", 1))
            yield RayCrew(ray, work, min(actors or max(1, cores), work.n_shards))

    return open_crew


class RayCrew:
    """n actors; shard s belongs to actor s mod n."""

    def __init__(self, ray: Any, work: Work, n_actors: int) -> None:
        self._ray, self._n_shards = ray, work.n_shards
        # They reserve half a core: after a node died, its actors must fit on nodes whose cores are all in use.
        settings = {
            "num_cpus": 0.5,
            "max_restarts": -1,
            "max_task_retries": -1,
            "scheduling_strategy": "SPREAD",
        }
        kind = ray.remote(Worker).options(**settings)
        # Kept as long as the crew exists: an actor that restarts elsewhere needs it again.
        self._work = ray.put(work)
        self._actors = [kind.remote(self._work) for _ in range(n_actors)]
        self._sent = self._received = 0

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of the messages: what is put into the object store once per pass, and the results."""
        return self._sent, self._received

    def run(self, operation: str, *arguments: Any) -> Iterator[Any]:
        """Run on the actors; results are yielded in the order of the shards."""
        message = as_arrays(arguments)
        self._sent += message_bytes(message)
        shared = self._ray.put(message)
        ahead = SHARDS_AHEAD * len(self._actors)
        waiting: dict[int, Any] = {}
        for shard in range(self._n_shards):
            for later in range(shard, min(shard + ahead, self._n_shards)):
                if later not in waiting:
                    actor = self._actors[later % len(self._actors)]
                    waiting[later] = actor.run.remote(operation, later, shared)
            try:
                result = self._ray.get(waiting.pop(shard))
            except self._ray.exceptions.RayTaskError as error:
                # Our own errors are sentences for the user; Ray would wrap them in the worker's traceback.
                raise error.cause if isinstance(error.cause, HandfulError) else error from None
            self._received += message_bytes(result)
            yield as_tensors(result)


class Worker:
    """The actor: `Work`, on one thread."""

    def __init__(self, work: Work) -> None:
        torch.set_num_threads(1)
        self._work = work

    def run(self, operation: str, shard: int, message: Any) -> Any:
        """Run one operation on one shard."""
        return as_arrays(getattr(self._work, operation)(shard, *as_tensors(message)))


class Packed(NamedTuple):
    """A dataclass whose tensors are sent as arrays."""

    kind: type[Any]
    values: tuple[Any, ...]


def as_arrays(value: Any) -> Any:
    """Convert tensors to arrays, which are sent without being copied; in tuples and dataclasses too."""
    if isinstance(value, Tensor):
        return value.numpy()
    if is_dataclass(value) and not isinstance(value, type):
        return Packed(type(value), tuple(as_arrays(getattr(value, f.name)) for f in fields(value)))
    return _each(value, as_arrays)


def as_tensors(value: Any) -> Any:
    """Undo `as_arrays`. Arrays from the object store are read-only, and nothing writes to them."""
    if isinstance(value, np.ndarray):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(value)
    if isinstance(value, Packed):
        return value.kind(*as_tensors(value.values))
    return _each(value, as_tensors)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(value, tuple):
        return value
    parts = [change(part) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def message_bytes(message: Any) -> int:
    """Length of a message as it is sent: the pickle, and the buffers beside it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)
