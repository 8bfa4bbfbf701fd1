"""Frame: a batch of tasks as moment-based methods see it, in coordinates whose origin is the support's mean.

Distances do not depend on the origin, but rounding does: products of vectors that share a large offset lose the digits
in which they differ. So the origin is subtracted first, and added back to the prototypes at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from handful.fewshot.numerics.fixed_point import Trace, concatenated, fixed_point
from handful.fewshot.numerics.geometry import (
    FeatureSpace,
    GramSpace,
    Moments,
    Space,
    gram_is_cheaper,
    labelled_moments,
    masked,
    soft_moments,
)
from handful.fewshot.numerics.simplex import SoftLabels, entropy
from handful.fewshot.numerics.vectors import half_squared_distances
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float, Int

T = TypeVar("T")

GEOMETRIES = ("auto", "feature", "gram")


@dataclass(frozen=True, eq=False)
class Frame:
    """A view of tasks in centred coordinates; the support's points are summed by class and not used again.

    Everything is computed on first use, so a method pays only for what it needs.
    """

    task: TaskBatch

    @property
    def query_mask(self) -> Bool[Tensor, "task query"] | None:
        """As in the task."""
        return self.task.query_mask

    @cached_property
    def n_query(self) -> Float[Tensor, "task"]:
        """|Q| of each task, in the dtype of the features."""
        return self.task.n_query.to(self.task.dtype)

    @cached_property
    def _uncentred(self) -> Moments:
        task = self.task
        return labelled_moments(task.zeroed("support"), task.support_labels, task.support_mask, task.n_classes)

    @cached_property
    def origin(self) -> Float[Tensor, "#task dim"]:
        """Mean of the support."""
        return self._uncentred.sums.sum(-2) / self._uncentred.mass.sum(-1, keepdim=True)

    @cached_property
    def support(self) -> Moments:
        """Moments of the support about the origin."""
        return self._uncentred.about(self.origin)

    @cached_property
    def query(self) -> Float[Tensor, "task query dim"]:
        """Query points about the origin; padding is zero."""
        return masked(self.task.query - self.origin.unsqueeze(-2), self.query_mask)

    def space(self, geometry: str, max_iter: int) -> Space:
        """Return the space of the given geometry, or with `auto` the one that costs less for these shapes."""
        task = self.task
        cheaper = gram_is_cheaper(task.query_slots, task.n_classes, task.dim, max_iter)
        if geometry == "feature" or (geometry == "auto" and not cheaper):
            return FeatureSpace(self.query, self.query_mask, self.support)
        # Points are read once for each product: a block of tasks whose points fit the cache, then the next.
        n_points = task.query_slots + (0 if len(task.support) == 1 else task.support_slots)
        frames = map(Frame, task.blocks(n_points * task.dim))
        return concatenated([GramSpace.of(part.query, part.query_mask, part.support) for part in frames])

    def prototypes(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class dim"]:
        """`w_k = (Σ_Q u_nk z_n + Σ_S y_nk z_n) / (Σ_Q u_nk + c_k)`, in the task's own coordinates."""
        query = soft_moments(self.query, masked(weights, self.query_mask))
        return self.placed((self.support + query).mean())

    def placed(self, prototypes: Float[Tensor, "#task class dim"]) -> Float[Tensor, "task class dim"]:
        """Return centred prototypes in the task's own coordinates, one set per task."""
        return (prototypes + self.origin.unsqueeze(-2)).expand(self.task.n_tasks, -1, -1)

    def proportions(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class"]:
        """`û_k = (1/|Q|) Σ_Q u_nk`."""
        return masked(weights, self.query_mask).sum(-2) / self.n_query.unsqueeze(-1)

    def complexity_weight(self, given: float | None) -> Float[Tensor, "task"]:
        """λ of each task: the given one, or |Q|."""
        return self.n_query if given is None else torch.full_like(self.n_query, given)

    def solution(
        self,
        u: SoftLabels | Float[Tensor, "task query class"],
        *,
        n_iter: Int[Tensor, "task"] | int = 1,
        converged: Bool[Tensor, "task"] | None = None,
        trace: Trace | None = None,
        find_prototypes: Tensor | Callable[[Frame, Tensor], Tensor] | None = None,
        measure: Callable[[Frame, Tensor], DescriptionLength] | None = None,
    ) -> Solution:
        """Wrap the soft labels of the query, or plain weights; a method without a tolerance leaves `converged` out.

        `find_prototypes` are prototypes in the task's own coordinates, or, like `measure`, a function of a frame and of
        `u_nk`. Functions run on first use, on a new frame, so the points of this one need not be kept.
        """
        n_tasks, device, log_u = self.task.n_tasks, self.task.device, u.log()
        if self.query_mask is not None:  # padding belongs to no class
            log_u = log_u.where(self.query_mask.unsqueeze(-1), -torch.inf)
        later = partial(partial, _in_a_frame_of, self.task)
        return Solution(
            log_assignments=log_u,
            proportions=self.proportions(u if isinstance(u, Tensor) else u.weights),
            n_iter=torch.full((n_tasks,), n_iter, device=device) if isinstance(n_iter, int) else n_iter,
            converged=torch.ones(n_tasks, dtype=torch.bool, device=device) if converged is None else converged,
            query_mask=self.query_mask,
            trace=trace,
            find_prototypes=later(find_prototypes) if callable(find_prototypes) else find_prototypes,
            measure=None if measure is None else later(measure),
        )


def _in_a_frame_of(task: TaskBatch, function: Callable[[Frame, Tensor], T], weights: Tensor) -> T:
    return function(Frame(task), weights)


def data_length(frame: Frame, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task"]:
    """`Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖² + Σ_Q u_nk ln u_nk`, at the prototypes that belong to U."""
    fit = data_fit(frame, weights, frame.prototypes(weights))
    return fit - entropy(masked(weights, frame.query_mask)).sum(-1)


def data_fit(
    frame: Frame, weights: Float[Tensor, "task query class"], prototypes: Float[Tensor, "task class dim"]
) -> Float[Tensor, "task"]:
    """`Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖²`, support rows clamped to their labels; w in the task's coordinates."""
    centred = prototypes - frame.origin.unsqueeze(-2)
    u = masked(weights, frame.query_mask)
    of_query = (u * half_squared_distances(frame.query, centred)).sum((-2, -1))
    # The scatter of the support about its own means is a constant; the rest is the cost of prototypes away from them.
    means = frame.support.mean()
    away = 0.5 * (frame.support.mass * (means - centred).square().sum(-1)).sum(-1)
    return of_query + away + _support_scatter(frame.task, means + frame.origin.unsqueeze(-2))


def _support_scatter(task: TaskBatch, means: Float[Tensor, "#task class dim"]) -> Float[Tensor, "#task"]:
    """`Σ_S ½‖z_n - z̄_{y_n}‖²`."""
    real = task.present("support")
    labels = task.support_labels.where(real, 0).unsqueeze(-1).expand(-1, -1, task.dim)
    squares = (task.support - means.gather(-2, labels)).square().sum(-1)
    return 0.5 * squares.where(real, 0).sum(-1)


def iterate(
    frame: Frame,
    step: Callable[[Any, Any], tuple[Any, SoftLabels]],
    change: Callable[[Any, Any, Any], Float[Tensor, "task"]],
    problem: Any,
    state: Any,
    options: Any,
    *,
    measure: Callable[[Frame, Float[Tensor, "task query class"]], DescriptionLength] | None = None,
    find_prototypes: Tensor | Callable[[Frame, Tensor], Tensor] = Frame.prototypes,
) -> Solution:
    """Iterate `state, u = step(problem, state)` until `change(problem, new, old) ≤ tol`, task by task.

    `options` has `max_iter` and `tol`; if it has `record` and that is set, the objective of every iteration, which
    `measure` computes, is traced. Prototypes are the class means over the support and the query assigned by u.
    """

    def objective(u: SoftLabels, rows: Int[Tensor, "task"]) -> Float[Tensor, "task"]:
        assert measure is not None
        length = measure(Frame(frame.task.select(rows)), u.weights)
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
