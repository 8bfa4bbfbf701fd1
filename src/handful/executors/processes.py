"""Independent tasks on processes of this machine, where the threads of one would wait for each other.

An argument that tasks share is written to a temporary file once, and every process reads it once. Results have the
bytes of the other executors.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from handful.errors import ClusterError, OptionError
from handful.executors.executor import Executor, Shared
from handful.machine.threads import only_one_thread

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Result = TypeVar("Result")
# How processes are started: the only way that every system has, and that is safe beside threads.
START = "spawn"
# Arguments that this process has read, by their files.
_read: dict[Path, Any] = {}


class _Stored(NamedTuple):
    """A shared argument in a file."""

    path: Path


def in_processes(workers: int, *, join: bool = True) -> Executor:
    """Return an executor that works in that many processes of this machine, each on one core.

    Starting one takes seconds. A script that calls it must do so below `if __name__ == "__main__":`, because every
    process imports it.

    Parameters
    ----------
    workers : int
        Processes.
    join : bool
        Whether an executor that is closed waits for what is at work.

    Returns
    -------
    Executor
        Called with a function of a module and its tasks, each a tuple of arguments that can be pickled.

    Examples
    --------
    >>> executor = in_processes(4)  # starts them when it is called
    """
    if workers < 1:
        raise OptionError(f"workers must be at least 1, got {workers}")

    def run(
        function: Callable[..., Result],
        tasks: Iterable[tuple[Any, ...]],
        lost: Callable[[Any, Exception], Result] | None = None,
        /,
    ) -> Generator[Result, None, None]:
        with tempfile.TemporaryDirectory(prefix="handful-") as folder:
            stored: dict[int, tuple[Shared, _Stored]] = {}  # with the argument itself, so that its id is not reused

            def argument(one: Any) -> Any:
                if not isinstance(one, Shared):
                    return one
                if id(one) not in stored:
                    path = Path(folder) / str(len(stored))
                    value = one.packed(one.value) if one.packed else one.value
                    path.write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
                    stored[id(one)] = one, _Stored(path)
                return stored[id(one)][1]

            queue = iter(tasks)
            running = dict[Future[Result], tuple[Any, ...]]()
            pool = _pool(workers)
            try:
                while True:
                    for task in islice(queue, workers - len(running)):
                        running[pool.submit(_call, function, tuple(map(argument, task)))] = task
                    if not running:
                        return
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for one in finished:
                        task = running.pop(one)
                        try:
                            result = one.result()
                        except BrokenExecutor as error:
                            if lost is None:
                                raise _ended() from error
                            result = lost(task, error)
                            pool = _pool(workers) if not running else pool
                        yield result
            finally:
                pool.shutdown(join, cancel_futures=True)

    return run


def _pool(workers: int) -> ProcessPoolExecutor:
    # Imported here: most programs start no process, and need not wait for what can.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, get_context(START), only_one_thread)


def _ended() -> ClusterError:
    return ClusterError(
        "a process ended before its work was done: it was killed, memory ran out, or the script that started it has no "
        "`if __name__ == '__main__':`; call again to continue the run"
    )


def _call(function: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    """Call the function in this process."""
    return function(*map(_value, task))


def _value(one: Any) -> Any:
    if not isinstance(one, _Stored):
        return one
    if one.path not in _read:
        _read[one.path] = pickle.loads(one.path.read_bytes())  # of the process that started this one
    return _read[one.path]
