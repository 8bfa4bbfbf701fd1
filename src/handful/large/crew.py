"""Workers: a crew runs one operation on all shards and returns the sum of the results, added in a fixed tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from handful.large.shard import Work
from handful.large.tree_sum import Piece, TreeSum
from handful.machine.threads import one_thread

# Called with the number of shards that are done.
Report: TypeAlias = Callable[[int], None]


@runtime_checkable
class Crew(Protocol):
    """Runs operations of `Work` by name."""

    def add_up(self, operation: str, *arguments: Any, report: Report | None = None) -> Any:
        """`Σ_shard operation(shard, *arguments)`; `report` is called with how many shards are done, in between."""
        ...

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes sent to the workers and received from them so far."""
        ...


Executor: TypeAlias = Callable[[Work], AbstractContextManager[Crew]]


class LocalCrew:
    """Shards in this process, on one or more threads; nothing is sent."""

    def __init__(self, work: Work, workers: int) -> None:
        self._work, self._workers = work, workers

    @property
    def traffic(self) -> tuple[int, int]:
        """Nothing."""
        return 0, 0

    def add_up(self, operation: str, *arguments: Any, report: Report | None = None) -> Any:
        """Run here."""
        total = TreeSum(self._work.n_shards)
        function = partial(_run, getattr(self._work, operation), arguments)
        for done, piece in enumerate(in_threads(function, range(self._work.n_shards), self._workers), start=1):
            total.put(piece)
            if report is not None:
                report(done)
        return total.whole()


def in_threads(function: Callable[[int], Piece], shards: Sequence[int], workers: int) -> Iterator[Piece]:
    """Apply a function to all shards, on that many threads; results come in the order of the shards."""
    if workers == 1:
        yield from map(function, shards)
        return
    with ThreadPoolExecutor(workers) as pool:
        # A few at a time, so that results do not pile up.
        for start in range(0, len(shards), workers):
            yield from pool.map(function, shards[start : start + workers])


def _run(operation: Callable[..., Any], arguments: tuple[Any, ...], shard: int) -> Piece:
    return Piece(0, shard, operation(shard, *arguments))


def in_process(workers: int = 1) -> Executor:
    """Return an executor that works here, on that many threads; each shard uses one, so sums have a fixed order."""

    @contextmanager
    def open_crew(work: Work) -> Iterator[Crew]:
        with one_thread():
            yield LocalCrew(work, workers)

    return open_crew
