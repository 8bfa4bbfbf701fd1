"""Workers: a crew runs one operation on all shards and returns the results in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeAlias, runtime_checkable

from handful.large.shard import Work
from handful.machine.threads import one_thread


@runtime_checkable
class Crew(Protocol):
    """Runs operations of `Work` by name."""

    def run(self, operation: str, *arguments: Any) -> Iterator[Any]:
        """`operation(shard, *arguments)` for every shard; results come in the order of the shards."""
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

    def run(self, operation: str, *arguments: Any) -> Iterator[Any]:
        """Run here."""
        function = getattr(self._work, operation)
        shards = range(self._work.n_shards)
        if self._workers == 1:
            for shard in shards:
                yield function(shard, *arguments)
            return
        with ThreadPoolExecutor(self._workers) as pool:
            # A few at a time, so that results do not pile up.
            for start in range(0, len(shards), self._workers):
                yield from pool.map(lambda shard: function(shard, *arguments), shards[start : start + self._workers])


def in_process(workers: int = 1) -> Executor:
    """Return an executor that works here, on that many threads; each shard uses one, so sums have a fixed order."""

    @contextmanager
    def open_crew(work: Work) -> Iterator[Crew]:
        with one_thread():
            yield LocalCrew(work, workers)

    return open_crew
