"""Shards with the actors of a Ray cluster, which read them from the bank, and again elsewhere when a machine dies.

What all need (tilts or prototypes of the living classes) is put into the object store once per pass; a node fetches it
once, however many actors it has. Results are added in the order of the shards, so the answer is that of a run in
process, bit by bit. Every node must see the banks and the run's folder under the same path.
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

# Shards an actor has been handed and not answered: enough that it never waits for the driver.
SHARDS_AHEAD = 2


def on_ray(address: str | None = None, *, actors: int | None = None) -> Executor:
    """Return an executor whose shards live with Ray actors.

    Parameters
    ----------
    address : str, optional
        The cluster's, or `auto`. By default the one this process is connected to, else a new one on this machine,
        which ends with the run.
    actors : int, optional
        How many; by default one for each core of the cluster, at most one for each shard.
    """

    @contextmanager
    def open_crew(work: Work) -> Iterator[Crew]:
        with connected(address) as ray:
            cores = int(ray.cluster_resources().get("CPU", 1))
            yield RayCrew(ray, work, min(actors or max(1, cores), work.n_shards))

    return open_crew


class RayCrew:
    """Actors, shard s with the (s mod n)-th of n."""

    def __init__(self, ray: Any, work: Work, n_actors: int) -> None:
        self._ray, self._n_shards = ray, work.n_shards
        # They reserve half a core: those whose node died must find a place on nodes whose cores are all in use.
        settings = {
            "num_cpus": 0.5,
            "max_restarts": -1,
            "max_task_retries": -1,
            "scheduling_strategy": "SPREAD",
        }
        kind = ray.remote(Worker).options(**settings)
        # Held for as long as the crew: an actor that begins again elsewhere asks for it again.
        self._work = ray.put(work)
        self._actors = [kind.remote(self._work) for _ in range(n_actors)]
        self._sent = self._received = 0

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of the messages: what is put into the object store once per pass, and the results."""
        return self._sent, self._received

    def run(self, operation: str, *arguments: Any) -> Iterator[Any]:
        """Run on the actors; a result is handed on when those of all shards before it have been."""
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
                # Our own errors are sentences to the user; Ray would wrap them in the worker's traceback.
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
    """A dataclass whose tensors travel as arrays."""

    kind: type[Any]
    values: tuple[Any, ...]


def as_arrays(value: Any) -> Any:
    """Tensors as arrays, which travel without being copied; in tuples and dataclasses too."""
    if isinstance(value, Tensor):
        return value.numpy()
    if is_dataclass(value) and not isinstance(value, type):
        return Packed(type(value), tuple(as_arrays(getattr(value, f.name)) for f in fields(value)))
    return _each(value, as_arrays)


def as_tensors(value: Any) -> Any:
    """Undo `as_arrays`. Arrays from the object store are read-only, and nobody writes to them."""
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
