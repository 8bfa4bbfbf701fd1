"""The loop: iterate a step for many tasks at once, and stop each task on its own.

A task that has converged keeps the answer it had at that point; the other tasks cannot change it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
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
    largest = max((*leaves(problem), *leaves(state)), key=len)
    n_tasks = len(largest)
    device = largest.device
    rows = torch.arange(n_tasks, device=device)  # which tasks of the batch are still in `state`
    running = torch.ones(n_tasks, dtype=torch.bool, device=device)  # and which of those have not stopped
    n_iter = torch.full((n_tasks,), max_iter, device=device)
    converged = torch.zeros(n_tasks, dtype=torch.bool, device=device)
    finished: list[tuple[Tensor, AnyAnswer]] = []
    columns: list[tuple[Tensor, Tensor, float]] = []
    start = time.perf_counter()

    for iteration in range(1, max_iter + 1):
        previous = state
        state, answer = step(problem, previous)
        if tol > 0 or observe is not None:
            moved = change(problem, state, previous)
            if observe is not None:
                seen = observe(answer, rows)
                last = columns[-1][:2] if columns else (seen, moved)
                observed, moves = (
                    x.index_put((rows[running],), y[running]) for x, y in zip(last, (seen, moved), strict=True)
                )
                columns.append((observed, moves, time.perf_counter() - start))
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
                    problem = take(problem, running, len(rows))
                    state = take(state, running, len(rows))
                    rows = rows[running]
                    running = running[running]
    if bool(running.any()):  # without a copy if none has stopped
        finished.append((rows[running], answer if bool(running.all()) else take(answer, running, len(rows))))
    trace = None
    if columns:
        all_observed, all_moves, seconds = zip(*columns, strict=True)
        times = torch.tensor(seconds, dtype=torch.float64)
        trace = Trace(torch.stack(all_observed, -1), torch.stack(all_moves, -1), times)
    return Outcome(merged(finished), n_iter, converged, trace)


def leaves(tree: object) -> Iterator[Tensor]:
    """Yield all tensors of a nested dataclass."""
    if isinstance(tree, Tensor):
        yield tree
    elif dataclasses.is_dataclass(tree):
        for field in dataclasses.fields(tree):
            yield from leaves(getattr(tree, field.name))


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
