"""Workers of a Ray cluster: a task is a Ray task on one core, which Ray gives to another node if its own is lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from handful.errors import HandfulError
from handful.machine.extras import import_extra
from handful.workers.task import Arguments, Result, Shared, Workers, died

# Tasks that Ray is given per core: enough that no core is idle, few enough that results do not pile up.
TASKS_PER_CORE = 2
# How often Ray retries a task when its machine goes away: more often than a process dies here, nodes of clusters are
# taken back.
RETRIES = 5


def on_ray(address: str | None = None) -> Workers:
    """Return workers of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Address of the cluster, or `auto`. By default the cluster this process is connected to, else a new one on this
        machine, which ends with the work.

    Returns
    -------
    Workers
        Called with a function and its tasks, each a tuple of arguments.

    Examples
    --------
    >>> workers = on_ray("auto")  # connects when it is called
    """
    return partial(_on_ray, address)


def _on_ray(
    address: str | None,
    function: Callable[..., Result],
    tasks: Iterable[Arguments],
    lost: Callable[[Arguments, Exception], Result] | None = None,
    /,
) -> Generator[Result, None, None]:
    with connected(address) as ray:
        submit = ray.remote(function).options(num_cpus=1, max_retries=RETRIES).remote
        sent: dict[int, tuple[Shared, Any]] = {}  # with the argument itself, so that its id is not reused

        def argument(one: Any) -> Any:
            if not isinstance(one, Shared):
                return one
            if id(one) not in sent:
                sent[id(one)] = one, ray.put(one.sent)
            return sent[id(one)][1]

        queue = iter(tasks)
        running = dict[Any, Arguments]()
        while True:
            room = TASKS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(running)
            running |= {submit(*map(argument, task)): task for task in islice(queue, max(0, room))}
            if not running:
                return
            reference = ray.wait(list(running), num_returns=1)[0][0]
            yield _result(ray, reference, running.pop(reference), lost)


def _result(ray: Any, reference: Any, task: Arguments, lost: Callable[[Arguments, Exception], Any] | None) -> Any:
    errors = ray.exceptions
    gone = (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError)
    try:
        return ray.get(reference)
    except errors.RayTaskError as error:
        # Our own errors are sentences for the user; Ray would wrap them in the worker's traceback.
        raise error.cause if isinstance(error.cause, HandfulError) else error from None
    except gone as error:
        if lost is not None:
            return lost(task, error)
        raise died(error) from error


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Yield the module `ray`, connected; `address` as in `on_ray`, where a new cluster ends with the block."""
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
