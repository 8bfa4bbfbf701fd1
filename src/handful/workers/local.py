"""Workers of this machine: processes of loky, which comes with joblib and scikit-learn.

When a process dies, loky gives up the whole pool. What was at work then is tried again in a new one, task by task, so
that one task that always kills its process is known, and the others are not lost with it. When the process that started
a pool dies, its workers end by themselves.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from handful.errors import OptionError
from handful.machine.threads import only_one_thread
from handful.workers.task import ATTEMPTS, Arguments, Result, Shared, Workers, died, value_of

if sys.platform == "win32":
    import _winapi
if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

# How often a worker looks whether the process that started it is alive. [seconds; work]
BETWEEN_LOOKS = 1.0
# Arguments that this process has read, by their files.
_read: dict[Path, Any] = {}


class _Stored(NamedTuple):
    """A shared argument in a file."""

    path: Path


def here(processes: int = 1) -> Workers:
    """Return workers of this machine: this process alone, or several others with one core each.

    Parameters
    ----------
    processes : int
        Tasks at the same time. With one, the tasks run in this process, one after another. Starting others takes
        seconds.

    Returns
    -------
    Workers
        Called with a function and its tasks, each a tuple of arguments.

    Examples
    --------
    >>> list(here()(lambda number: number**2, [(1,), (2,), (3,)]))
    [1, 4, 9]
    """
    if processes < 1:
        raise OptionError(f"there must be at least 1 worker, got {processes}")
    if processes == 1:
        return _one_by_one
    return partial(_in_processes, processes)


def _one_by_one(
    function: Callable[..., Result], tasks: Iterable[Arguments], lost: Any = None, /
) -> Generator[Result, None, None]:
    del lost
    for task in tasks:
        yield function(*map(value_of, task))


def _in_processes(
    processes: int,
    function: Callable[..., Result],
    tasks: Iterable[Arguments],
    lost: Callable[[Arguments, Exception], Result] | None = None,
    /,
) -> Generator[Result, None, None]:
    waiting = _Waiting(iter(tasks))
    running = dict[Future[Result], Arguments]()
    with tempfile.TemporaryDirectory(prefix="handful-") as folder:
        stored = _Store(Path(folder))
        pool = _pool(processes)
        try:
            while True:
                broken: BrokenExecutor | None = None
                for task in waiting.taken(len(running), processes):
                    running[pool.submit(_call, function, tuple(map(stored.argument, task)))] = task
                if not running:
                    return
                for one in wait(running, return_when=FIRST_COMPLETED)[0]:
                    error = one.exception()
                    if isinstance(error, BrokenExecutor):
                        broken = error
                        continue
                    del running[one]
                    yield one.result()
                if broken is None:
                    continue
                pool.shutdown(kill_workers=True)
                pool = _pool(processes)
                for task in [*running.values()]:
                    if waiting.suspect(task):
                        continue
                    if lost is None:
                        raise died(broken) from broken
                    yield lost(task, broken)
                running = {}
        finally:
            pool.shutdown(kill_workers=True)


class _Waiting:
    """Tasks to be started: those whose worker died, one by one, and then all others."""

    def __init__(self, queue: Iterator[Arguments]) -> None:
        self._queue = queue
        self._suspects = deque[Arguments]()
        self._deaths = dict[int, tuple[Arguments, int]]()  # with the task itself, so that its id is not reused

    def taken(self, running: int, processes: int) -> Iterator[Arguments]:
        """Take as many as there is room for."""
        if not self._suspects:
            yield from islice(self._queue, processes - running)
        elif not running:
            yield self._suspects.popleft()

    def suspect(self, task: Arguments) -> bool:
        """Note that the worker of a task died; return whether it is tried again."""
        _, deaths = self._deaths.get(id(task), (task, 0))
        self._deaths[id(task)] = task, deaths + 1
        if deaths + 1 >= ATTEMPTS:
            return False
        self._suspects.append(task)
        return True


class _Store:
    """Shared arguments in files of a folder, each written once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stored: dict[int, tuple[Shared, _Stored]] = {}  # with the argument itself, so that its id is not reused

    def argument(self, one: Any) -> Any:
        """Return what is sent to a process."""
        if not isinstance(one, Shared):
            return one
        if id(one) not in self._stored:
            path = self._folder / str(len(self._stored))
            path.write_bytes(pickle.dumps(one.sent, pickle.HIGHEST_PROTOCOL))
            self._stored[id(one)] = one, _Stored(path)
        return self._stored[id(one)][1]


def _pool(processes: int) -> ProcessPoolExecutor:
    # Imported here: most programs start no process, and need not wait for what can.
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(processes, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    """Run this process on one core, and end it with the one that started it."""
    only_one_thread()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended."""
    if sys.platform == "win32":  # a process keeps the number of its parent there, whatever becomes of it
        with suppress(OSError):
            _winapi.WaitForSingleObject(_winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent), _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(BETWEEN_LOOKS)
    os._exit(1)


def _call(function: Callable[..., Result], task: Arguments) -> Result:
    """Call the function in this process."""
    return function(*map(_value, task))


def _value(one: Any) -> Any:
    if not isinstance(one, _Stored):
        return one
    if one.path not in _read:
        _read[one.path] = pickle.loads(one.path.read_bytes())  # of the process that started this one
    return _read[one.path]
