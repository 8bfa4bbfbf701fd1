"""Alternation: run a step on a batch until each task stands still, and wrap what comes out as a Solution."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor

from handful.frame import Frame
from handful.numerics.fixed_point import fixed_point
from handful.numerics.simplex import SoftLabels
from handful.shapes import Float, Int
from handful.solution import DescriptionLength, Solution
from handful.task import TaskBatch

Problem = TypeVar("Problem")
State = TypeVar("State")


@runtime_checkable
class LoopOptions(Protocol):
    """The options every alternating method has."""

    @property
    def max_iter(self) -> int:
        """Most iterations a task may take."""
        ...

    @property
    def tol(self) -> float:
        """Criterion at which a task stops."""
        ...

    @property
    def record(self) -> bool:
        """Whether to keep a trace."""
        ...


def alternate(
    step: Callable[[Problem, State], tuple[State, SoftLabels]],
    change: Callable[[Problem, State, State], Float[Tensor, "task"]],
    measure: Callable[[TaskBatch, Frame, Float[Tensor, "task query class"]], DescriptionLength],
    problem: Problem,
    state: State,
    *,
    task: TaskBatch,
    frame: Frame,
    options: LoopOptions,
) -> Solution:
    """Iterate `state, u = step(problem, state)`, task by task, and return the last U with all that follows from it.

    Prototypes are the class means over the support and the query assigned by that U; `measure` gives the objective
    there, at the end when asked for, and at each iteration when `options.record` is set.
    """

    def objective(u: SoftLabels, rows: Int[Tensor, "task"]) -> Float[Tensor, "task"]:
        length = measure(task.select(rows), frame.select(rows), u.weights)
        return length.data + length.partition

    outcome = fixed_point(
        step,
        change,
        problem,
        state,
        n_tasks=task.n_tasks,
        device=task.query.device,
        max_iter=options.max_iter,
        tol=options.tol,
        observe=objective if options.record else None,
    )
    u = outcome.answer
    return frame.solution(
        u,
        n_iter=outcome.n_iter,
        converged=outcome.converged,
        trace=outcome.trace,
        find_prototypes=partial(frame.prototypes, u.weights),
        measure=partial(measure, task, frame, u.weights),
    )
