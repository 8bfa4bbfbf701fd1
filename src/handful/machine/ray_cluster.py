"""What all work over Ray shares: a cluster to run on, tasks that are retried, results as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from handful.errors import HandfulError
from handful.machine.extras import import_extra

# How often a task is retried when its machine goes away. Errors of the task itself are not retried: a pure function
# would only fail again.
RETRIES = 5
# Tasks submitted per core: enough that no core is idle, few enough that results do not pile up and that the caller can
# still change its plans.
TASKS_PER_CORE = 2


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Yield the module `ray`, connected.

    Parameters
    ----------
    address : str, optional
        Address of the cluster, or `auto`. By default the cluster this process is connected to, else a new one on this
        machine, which ends with the block.
    """
    ray = import_extra("ray", "ray")
    if address is None and ray.is_initialized():
        yield ray
        return
    local = {} if address else {"include_dashboard": False}
    ray.init(address=address or "local", log_to_driver=False, **local)
    try:
        yield ray
    finally:
        ray.shutdown()


def remote(ray: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that submits a call to one core of the cluster and returns a reference to the result."""
    submit: Callable[..., Any] = ray.remote(function).options(num_cpus=1, max_retries=RETRIES).remote
    return submit


def as_completed(
    ray: Any, references: Iterable[Any], lost: Callable[[Any, Exception], Any] | None = None
) -> Iterator[Any]:
    """Yield results in the order in which they are ready.

    `references` is consumed lazily, a few per core at a time: it should submit as it goes, as `map` does. If the
    machines of a task went away on every attempt, `lost(reference, error)` replaces its result; without `lost` the
    error is raised.
    """
    gone = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.ObjectLostError,
        ray.exceptions.OutOfMemoryError,
    )
    waiting = iter(references)
    running: list[Any] = []
    while True:
        room = TASKS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(running)
        running += islice(waiting, max(0, room))
        if not running:
            return
        finished, running = ray.wait(running, num_returns=1)
        try:
            result = ray.get(finished[0])
        except ray.exceptions.RayTaskError as error:
            # Our own errors are sentences for the user; Ray would wrap them in the worker's traceback.
            raise error.cause if isinstance(error.cause, HandfulError) else error from None
        except gone as error:
            if lost is None:
                raise
            result = lost(finished[0], error)
        yield result
