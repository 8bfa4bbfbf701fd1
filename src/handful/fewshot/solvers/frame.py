"""Frame: a batch of tasks as moment-based methods see it, in coordinates whose origin is the support's mean.

Distances do not depend on the origin, but rounding does: products of vectors that share a large offset lose the digits
in which they differ. So the origin is subtracted first, and added back to the prototypes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from handful.fewshot.numerics.distances import half_squared_distances
from handful.fewshot.numerics.fixed_point import Trace, concatenated, fixed_point
from handful.fewshot.numerics.geometry import FeatureSpace, GramSpace, Space, gram_is_cheaper, masked
from handful.fewshot.numerics.lookup import Lookup, moments_of
from handful.fewshot.numerics.moments import Moments, soft_moments
from handful.fewshot.numerics.simplex import SoftLabels, entropy
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float, Int

T = TypeVar("T")

GEOMETRIES = ("auto", "feature", "gram")
# Numbers of support and query in one block when the products of Gram space are computed: these fit a second-level
# cache.
GRAM_BLOCK_NUMBERS = 2_000_000


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
        return moments_of(task.source("support"), task.support_labels, task.support_mask, task.n_classes)

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
        source = self.task.source("query")
        if isinstance(source, Lookup):
            query = source.read().sub_(self.origin.unsqueeze(-2))  # the copy is ours
        else:
            query = source - self.origin.unsqueeze(-2)
        return query if self.query_mask is None else query.where(self.query_mask.unsqueeze(-1), 0)

    def space(self, geometry: str, max_iter: int) -> Space:
        """Return the space of the given geometry, or with `auto` the one that costs less for these shapes."""
        task = self.task
        cheaper = gram_is_cheaper(task.query_slots, task.n_classes, task.dim, max_iter)
        if geometry == "feature" or (geometry == "auto" and not cheaper):
            return FeatureSpace(self.query, self.query_mask, self.support)
        return concatenated([GramSpace.of(b.query, b.query_mask, b.support) for b in self.blocks()])

    def blocks(self) -> Iterator[Frame]:
        """Cut the tasks into blocks: the centred points of one block fit the cache, and are freed with the block."""
        task = self.task
        shared = len(task.source("support")) == 1
        n_points = task.n_classes if isinstance(task.source("support"), Lookup) else task.support_slots
        size = max(1, GRAM_BLOCK_NUMBERS // ((task.query_slots + (0 if shared else n_points)) * task.dim))
        if size >= task.n_tasks:
            yield self
            return
        for start in range(0, task.n_tasks, size):
            block = self.select(slice(start, start + size))
            if shared:
                block.__dict__.update(_uncentred=self._uncentred, origin=self.origin, support=self.support)
            yield block

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

    def select(self, rows: Tensor | slice) -> Frame:
        """Return the frame of the chosen tasks."""
        return Frame(self.task.select(rows))

    def solution(
        self,
        u: SoftLabels | Float[Tensor, "task query class"],
        *,
        n_iter: Int[Tensor, "task"] | int = 1,
        converged: Bool[Tensor, "task"] | None = None,
        trace: Trace | None = None,
        find_prototypes: Callable[[Frame, Tensor], Tensor] | None = None,
        measure: Callable[[Frame, Tensor], DescriptionLength] | None = None,
    ) -> Solution:
        """Wrap the soft labels of the query, or plain weights; a method without a tolerance leaves `converged` out.

        `find_prototypes` and `measure` take a frame and soft labels `u_nk`. They run on first use, on a new frame, so
        the points of this one need not be kept.
        """
        n_tasks, device = self.task.n_tasks, self.task.device
        return Solution(
            log_assignments=self.hide_padding(u.log()),
            proportions=self.proportions(u if isinstance(u, Tensor) else u.weights),
            n_iter=torch.full((n_tasks,), n_iter, device=device) if isinstance(n_iter, int) else n_iter,
            converged=torch.ones(n_tasks, dtype=torch.bool, device=device) if converged is None else converged,
            query_mask=self.query_mask,
            trace=trace,
            find_prototypes=self.later(find_prototypes),
            measure=self.later(measure),
        )

    def later(self, function: Callable[[Frame, Tensor], T] | None) -> Callable[[Tensor], T] | None:
        """Return a function of `ln u_nk` that builds this frame again and calls `function` with it and `u_nk`."""
        return None if function is None else partial(_in_a_frame_of, self.task.unread(), function)

    def hide_padding(self, values: Float[Tensor, "task query class"]) -> Float[Tensor, "task query class"]:
        """Return the values with -inf in the rows of padded queries, which belong to no class."""
        if self.query_mask is None:
            return values
        return values.where(self.query_mask.unsqueeze(-1), -torch.inf)


def _in_a_frame_of(task: TaskBatch, function: Callable[[Frame, Tensor], T], log_u: Tensor) -> T:
    return function(Frame(task), log_u.exp())


def placed(prototypes: Float[Tensor, "#task class dim"], frame: Frame, weights: Tensor) -> Tensor:
    """Return prototypes given relative to the origin in the task's own coordinates."""
    return frame.placed(prototypes)


def support_means(frame: Frame, weights: Tensor) -> Float[Tensor, "task class dim"]:
    """Return the means of the support, for methods whose prototypes do not move."""
    return frame.placed(frame.support.mean())


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
    labels = task.support_labels
    if task.support_mask is not None:
        labels = labels.where(task.support_mask, 0)
    residual = task.support - means.gather(-2, labels.unsqueeze(-1).expand(-1, -1, task.dim))
    squares = residual.square().sum(-1)
    if task.support_mask is not None:
        squares = squares.where(task.support_mask, 0)
    return 0.5 * squares.sum(-1)


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
