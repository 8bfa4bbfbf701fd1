"""Tasks: a function and its arguments, of which some are shared; and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from handful.errors import ClusterError

# How often a task is tried whose worker dies. Errors of the task itself are not tried again: a pure function would only
# fail again.
ATTEMPTS = 3

Result = TypeVar("Result")
Arguments = tuple[Any, ...]


@runtime_checkable
class Workers(Protocol):
    """Calls a function for every task, and yields the results as they are ready; stops when it is closed.

    Tasks are taken only when there is room, so the caller can still change its plans. If the worker of a task died on
    every attempt, `lost(task, error)` replaces its result; by default that is a `ClusterError`.
    """

    def __call__(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Arguments],
        lost: Callable[[Arguments, Exception], Result] | None = None,
        /,
    ) -> Generator[Result, None, None]:
        """Run all tasks."""
        ...


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument of several tasks; every process is given it once, as `packed(value)` if that is given."""

    value: Any
    packed: Callable[[Any], Any] | None = None

    @property
    def sent(self) -> Any:
        """What another process is given."""
        return self.packed(self.value) if self.packed else self.value


def value_of(argument: Any) -> Any:
    """Return what a task of this process is called with."""
    return argument.value if isinstance(argument, Shared) else argument


def died(error: Exception) -> ClusterError:
    """Return the error for a task whose worker died on every attempt."""
    return ClusterError(
        "a worker died on every attempt at one task: it was killed, or memory ran out; what is finished is kept, so "
        f"call again, with fewer workers if memory is short. The last loss: {' '.join(str(error).split())}"
    )
