"""Independent tasks, on threads of this process or over a Ray cluster: an executor yields results as they are ready.

A task is a tuple of arguments for one function, which must need nothing else. Tasks are taken only when there is room,
so the caller can still change its plans.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar, runtime_checkable

from handful.errors import ClusterError, HandfulError, OptionError
from handful.machine.extras import import_extra
from handful.machine.threads import one_thread, only_one_thread

# How often Ray retries a task when its machine goes away. Errors of the task itself are not retried: a pure function
# would only fail again.
RETRIES = 5
# Tasks that Ray is given per core: enough that no core is idle, few enough that results do not pile up.
TASKS_PER_CORE = 2

Result = TypeVar("Result")


@runtime_checkable
class Executor(Protocol):
    """Calls a function for every task, and yields the results as they are ready; stops when it is closed.

    If the machines of a task went away on every attempt, `lost(task, error)` replaces its result; by default that is a
    `ClusterError`.
    """

    def __call__(
        self,
        function: Callable[..., Result],
        tasks: Iterable[tuple[Any, ...]],
        lost: Callable[[Any, Exception], Result] | None = None,
        /,
    ) -> Generator[Result, None, None]:
        """Run all tasks."""
        ...


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument of several tasks; each node of a cluster is sent it once, as `packed(value)` if that is given.

    With `own`, every thread has a copy of its own.
    """

    value: Any
    packed: Callable[[Any], Any] | None = None
    own: bool = False


def in_process(workers: int = 1, *, join: bool = True) -> Executor:
    """Return an executor that works in this process: one task after another, or on that many threads.

    Parameters
    ----------
    workers : int
        Tasks at the same time. If there are several, each has one core.
    join : bool
        Whether an executor that is closed waits for what is at work.

    Returns
    -------
    Executor
        Called with a function and its tasks, each a tuple of arguments.

    Examples
    --------
    >>> sorted(in_process(2)(lambda number: number**2, [(1,), (2,), (3,)]))
    [1, 4, 9]
    """
    if workers < 1:
        raise OptionError(f"workers must be at least 1, got {workers}")

    def run(
        function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], lost: Any = None, /
    ) -> Generator[Result, None, None]:
        copies: dict[tuple[int, int], Any] = {}  # by thread and argument

        def argument(one: Any) -> Any:
            if not isinstance(one, Shared) or not one.own or workers == 1:
                return one.value if isinstance(one, Shared) else one
            key = threading.get_ident(), id(one)
            if key not in copies:
                copies[key] = copy.deepcopy(one.value)
            return copies[key]

        def call(task: tuple[Any, ...]) -> Result:
            return function(*map(argument, task))

        if workers == 1:
            yield from map(call, tasks)
            return
        queue = iter(tasks)
        running = set[Future[Result]]()
        with one_thread():
            # Set for the life of a thread: the setting is partly shared, so restoring it would disturb other threads.
            pool = ThreadPoolExecutor(workers, "handful", only_one_thread)
            try:
                while True:
                    running |= {pool.submit(call, task) for task in islice(queue, workers - len(running))}
                    if not running:
                        return
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    while finished:
                        yield finished.pop().result()
            finally:
                pool.shutdown(join, cancel_futures=True)

    return run


def on_ray(address: str | None = None) -> Executor:
    """Return an executor that runs Ray tasks.

    Parameters
    ----------
    address : str, optional
        Address of the cluster, or `auto`. By default the cluster this process is connected to, else a new one on this
        machine, which ends with the work.

    Returns
    -------
    Executor
        Called with a function and its tasks, each a tuple of arguments.

    Examples
    --------
    >>> executor = on_ray("auto")  # connects when it is called
    """

    def run(
        function: Callable[..., Result],
        tasks: Iterable[tuple[Any, ...]],
        lost: Callable[[Any, Exception], Result] | None = None,
        /,
    ) -> Generator[Result, None, None]:
        with connected(address) as ray:
            submit = ray.remote(function).options(num_cpus=1, max_retries=RETRIES).remote
            sent: dict[int, tuple[Shared, Any]] = {}  # with the argument itself, so that its id is not reused

            def argument(one: Any) -> Any:
                if not isinstance(one, Shared):
                    return one
                if id(one) not in sent:
                    sent[id(one)] = one, ray.put(one.packed(one.value) if one.packed else one.value)
                return sent[id(one)][1]

            queue = iter(tasks)
            running = dict[Any, tuple[Any, ...]]()
            while True:
                room = TASKS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(running)
                running |= {submit(*map(argument, task)): task for task in islice(queue, max(0, room))}
                if not running:
                    return
                reference = ray.wait(list(running), num_returns=1)[0][0]
                task = running.pop(reference)
                yield _result(ray, reference, task, lost)

    return run


def _result(ray: Any, reference: Any, task: tuple[Any, ...], lost: Callable[[Any, Exception], Any] | None) -> Any:
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
        raise ClusterError(
            "a part of the work was lost on every node that was given it; call again to continue the run. The last "
            f"loss: {' '.join(str(error).split())}"
        ) from error


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
