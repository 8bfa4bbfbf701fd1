"""Alternation: iterate a step on a batch until each task converges, and wrap the result as a Solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor

from handful.fewshot.numerics.fixed_point import Outcome, fixed_point
from handful.fewshot.numerics.simplex import SoftLabels
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import Frame
from handful.shapes import Float, Int

AnyProblem = TypeVar("AnyProblem")
AnyState = TypeVar("AnyState")
Measure = Callable[[Frame, Float[Tensor, "task query class"]], DescriptionLength]


@runtime_checkable
class LoopOptions(Protocol):
    """The options every alternating method has."""

    @property
    def max_iter(self) -> int:
        """Maximum number of iterations per task."""
        ...

    @property
    def tol(self) -> float:
        """Tolerance at which a task stops."""
        ...

    @property
    def record(self) -> bool:
        """Whether to keep a trace."""
        ...


def alternate(
    step: Callable[[AnyProblem, AnyState], tuple[AnyState, SoftLabels]],
    change: Callable[[AnyProblem, AnyState, AnyState], Float[Tensor, "task"]],
    measure: Measure,
    problem: AnyProblem,
    state: AnyState,
    *,
    frame: Frame,
    options: LoopOptions,
) -> Outcome[SoftLabels]:
    """Iterate `state, u = step(problem, state)`, task by task; the objective is traced when `options.record` is set."""

    def objective(u: SoftLabels, rows: Int[Tensor, "task"]) -> Float[Tensor, "task"]:
        length = measure(frame.select(rows), u.weights)
        return length.data + length.partition

    return fixed_point(
        step,
        change,
        problem,
        state,
        n_tasks=frame.task.n_tasks,
        device=frame.task.device,
        max_iter=options.max_iter,
        tol=options.tol,
        observe=objective if options.record else None,
    )


def as_solution(frame: Frame, outcome: Outcome[SoftLabels], measure: Measure) -> Solution:
    """Return the solution at the last U.

    Prototypes are the class means over the support and the query assigned by that U. `measure` computes the objective
    there, on first use.
    """
    return frame.solution(
        outcome.answer,
        n_iter=outcome.n_iter,
        converged=outcome.converged,
        trace=outcome.trace,
        find_prototypes=Frame.prototypes,
        measure=measure,
    )
