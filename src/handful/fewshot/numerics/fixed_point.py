"""The loop: iterate a step for many tasks at once, and stop each task on its own.

A task that has converged keeps the answer it had at that point; the other tasks cannot change it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int

AnyProblem = TypeVar("AnyProblem")
AnyState = TypeVar("AnyState")
AnyAnswer = TypeVar("AnyAnswer")
Tree = TypeVar("Tree")

# Removing finished tasks means copying the others, so wait until this share of the batch is done.
COMPACT_SHARE = 0.25


@dataclass(frozen=True)
class Trace:
    """What happened at each iteration; a task that has stopped repeats its last value in later columns."""

    observed: Float[Tensor, "task iteration"]
    change: Float[Tensor, "task iteration"]
    seconds: Float[Tensor, "iteration"]  # wall-clock since the start of the loop, whole batch


@dataclass(frozen=True)
class Outcome(Generic[AnyAnswer]):
    """The answer of every task, how many iterations it took, and whether it met the tolerance."""

    answer: AnyAnswer
    n_iter: Int[Tensor, "task"]
    converged: Bool[Tensor, "task"]
    trace: Trace | None


def fixed_point(
    step: Callable[[AnyProblem, AnyState], tuple[AnyState, AnyAnswer]],
    change: Callable[[AnyProblem, AnyState, AnyState], Float[Tensor, "task"]],
    problem: AnyProblem,
    state: AnyState,
    *,
    n_tasks: int,
    device: torch.device,
    max_iter: int,
    tol: float,
    observe: Callable[[AnyAnswer, Int[Tensor, "task"]], Float[Tensor, "task"]] | None = None,
) -> Outcome[AnyAnswer]:
    """Iterate `state, answer = step(problem, state)` until `change(problem, new, old) ≤ tol`, task by task.

    Problem and state are nested dataclasses of tensors. Every tensor has a leading task axis, of length one if all
    tasks share it; in the answer, every task axis has full length. `step` and `change` are pure functions, row by row
    in the task axis. `tol=0` runs exactly `max_iter` iterations and does not compute the criterion.
    `observe(answer, rows)` returns one number per task to record at each iteration; `rows` are the positions in the
    batch of its tasks.
    """
    rows = torch.arange(n_tasks, device=device)  # which tasks of the batch are still in `state`
    running = torch.ones(n_tasks, dtype=torch.bool, device=device)  # and which of those have not stopped
    n_iter = torch.full((n_tasks,), max_iter, device=device)
    converged = torch.zeros(n_tasks, dtype=torch.bool, device=device)
    finished: list[tuple[Tensor, AnyAnswer]] = []
    trace = _Recorder(n_tasks) if observe is not None else None

    for iteration in range(1, max_iter + 1):
        previous = state
        state, answer = step(problem, previous)
        if tol > 0 or trace is not None:
            moved = change(problem, state, previous)
            if trace is not None and observe is not None:
                trace.add(rows[running], observe(answer, rows)[running], moved[running])
            stops = running & (moved <= tol) if tol > 0 else torch.zeros_like(running)
            if bool(stops.any()):
                n_iter[rows[stops]] = iteration
                converged[rows[stops]] = True
                finished.append((rows[stops], take(answer, stops, len(rows))))
                running = running & ~stops
                if not bool(running.any()):
                    break
                # The answer need not be cut: the next iteration makes a new one.
                if iteration < max_iter and float(running.float().mean()) <= 1 - COMPACT_SHARE:
                    problem, state = take(problem, running, len(rows)), take(state, running, len(rows))
                    rows, running = rows[running], running[running]
    if bool(running.any()):  # without a copy if none has stopped
        finished.append((rows[running], answer if bool(running.all()) else take(answer, running, len(rows))))
    return Outcome(merged(finished), n_iter, converged, trace.trace() if trace is not None else None)


def take(tree: Tree, rows: Tensor | slice, n_tasks: int) -> Tree:
    """Keep the chosen tasks in every tensor of a nested dataclass; a tensor without `n_tasks` rows is shared and kept.

    `rows` is a mask over the tasks, their positions, or a slice of them.
    """
    if isinstance(tree, Tensor):
        return cast(Tree, _in_its_order(lambda x: x[rows], tree) if len(tree) == n_tasks else tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = {f.name: take(getattr(tree, f.name), rows, n_tasks) for f in dataclasses.fields(tree)}
        return type(tree)(**fields)
    return tree


def _in_its_order(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Apply a function of the leading axis; matrices stored column by column stay so."""
    if all(x.ndim == 3 and not x.is_contiguous() and x.mT.is_contiguous() for x in tensors):
        return function(*(x.mT for x in tensors)).mT
    return function(*tensors)


def concatenated(trees: list[Tree]) -> Tree:
    """Join nested dataclasses along the task axis; fields that are not tensors must be the same in all of them."""
    first = trees[0]
    if len(trees) == 1:
        return first
    if isinstance(first, Tensor):
        return cast(Tree, _in_its_order(lambda *parts: torch.cat(parts), *cast(list[Tensor], trees)))
    if not dataclasses.is_dataclass(first) or isinstance(first, type):
        return first
    fields = {f.name: concatenated([getattr(tree, f.name) for tree in trees]) for f in dataclasses.fields(first)}
    return type(first)(**fields)


def merged(pieces: list[tuple[Tensor, AnyAnswer]]) -> AnyAnswer:
    """Join the answers of disjoint rows, in the order of the rows."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = torch.argsort(torch.cat([rows for rows, _ in pieces]))
    return take(concatenated([answer for _, answer in pieces]), order, len(order))


class _Recorder:
    """Collects the columns of a `Trace`."""

    def __init__(self, n_tasks: int) -> None:
        self._start = time.perf_counter()
        self._seconds: list[float] = []
        self._columns: list[tuple[Tensor, Tensor]] = []
        self._n_tasks = n_tasks

    def add(self, rows: Tensor, observed: Tensor, change: Tensor) -> None:
        self._seconds.append(time.perf_counter() - self._start)
        empty = (observed.new_zeros(self._n_tasks), change.new_zeros(self._n_tasks))
        observed_last, change_last = (x.clone() for x in (self._columns[-1] if self._columns else empty))
        observed_last[rows], change_last[rows] = observed, change
        self._columns.append((observed_last, change_last))

    def trace(self) -> Trace:
        observed, change = zip(*self._columns, strict=True)
        return Trace(
            torch.stack(observed, -1), torch.stack(change, -1), torch.tensor(self._seconds, dtype=torch.float64)
        )
