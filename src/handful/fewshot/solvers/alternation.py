"""iterate: repeat a step on a batch until each task converges, and wrap the last soft labels as a Solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from handful.fewshot.numerics.fixed_point import fixed_point
from handful.fewshot.numerics.simplex import SoftLabels
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import Frame
from handful.shapes import Float, Int


def iterate(
    frame: Frame,
    step: Callable[[Any, Any], tuple[Any, SoftLabels]],
    change: Callable[[Any, Any, Any], Float[Tensor, "task"]],
    problem: Any,
    state: Any,
    options: Any,
    *,
    measure: Callable[[Frame, Float[Tensor, "task query class"]], DescriptionLength],
    find_prototypes: Callable[[Frame, Tensor], Tensor] = Frame.prototypes,
) -> Solution:
    """Iterate `state, u = step(problem, state)` until `change(problem, new, old) ≤ tol`, task by task.

    `options` has `max_iter` and `tol`; if it has `record` and that is set, the objective of every iteration is traced.
    `measure` computes the objective. Prototypes are the class means over the support and the query assigned by u.
    """

    def objective(u: SoftLabels, rows: Int[Tensor, "task"]) -> Float[Tensor, "task"]:
        length = measure(frame.select(rows), u.weights)
        return length.data + length.partition

    outcome = fixed_point(
        step,
        change,
        problem,
        state,
        n_tasks=frame.task.n_tasks,
        device=frame.task.device,
        max_iter=options.max_iter,
        tol=options.tol,
        observe=objective if getattr(options, "record", False) else None,
    )
    return frame.solution(
        outcome.answer,
        n_iter=outcome.n_iter,
        converged=outcome.converged,
        trace=outcome.trace,
        find_prototypes=find_prototypes,
        measure=measure,
    )
