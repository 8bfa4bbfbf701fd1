"""Frame: a batch of tasks as moment-based methods see it, in coordinates whose origin is the support's mean.

Distances do not depend on the origin, rounding does: products of vectors that share a large offset lose the digits
in which they differ. So the origin is moved first, and added back to the prototypes at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from handful.numerics.distances import half_squared_distances
from handful.numerics.entropy import entropy
from handful.numerics.fixed_point import Trace, take
from handful.numerics.geometry import FeatureSpace, GramSpace, Space, gram_is_cheaper, masked
from handful.numerics.moments import Moments, labelled_moments, soft_moments
from handful.numerics.simplex import SoftLabels
from handful.shapes import Bool, Float, Int
from handful.solution import DescriptionLength, Solution
from handful.task import TaskBatch

GEOMETRIES = ("auto", "feature", "gram")


@dataclass(frozen=True)
class Frame:
    """Centred query points and support moments; the support's points are summed once and not seen again."""

    query: Float[Tensor, "task query dim"]
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]
    support: Moments
    origin: Float[Tensor, "#task dim"]

    @classmethod
    def of(cls, task: TaskBatch) -> Frame:
        """Sum the support by class and move the origin to its mean."""
        points = task.support
        if task.support_mask is not None:
            points = points.where(task.support_mask.unsqueeze(-1), 0)
        support = labelled_moments(points, task.support_labels, task.support_mask, task.n_classes)
        origin = support.sums.sum(-2) / support.mass.sum(-1, keepdim=True)
        query = task.query - origin.unsqueeze(-2)
        if task.query_mask is not None:
            query = query.where(task.query_mask.unsqueeze(-1), 0)
        return cls(query, task.query_mask, task.n_query.to(query.dtype), support.about(origin), origin)

    def space(self, geometry: str, max_iter: int) -> Space[Any]:
        """Return the geometry asked for, or the one that costs less for these shapes."""
        if geometry == "auto":
            n_query, dim = self.query.shape[1:]
            n_classes = self.support.mass.shape[-1]
            geometry = "gram" if gram_is_cheaper(n_query, n_classes, dim, max_iter) else "feature"
        if geometry == "gram":
            return GramSpace.of(self.query, self.query_mask, self.support)
        return FeatureSpace(self.query, self.query_mask, self.support)

    def prototypes(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class dim"]:
        """`w_k = (Σ_Q u_nk z_n + Σ_S y_nk z_n) / (Σ_Q u_nk + c_k)`, in the task's own coordinates."""
        query = soft_moments(self.query, masked(weights, self.query_mask))
        return self.placed((self.support + query).mean())

    def placed(self, prototypes: Float[Tensor, "#task class dim"]) -> Float[Tensor, "task class dim"]:
        """Return centred prototypes in the task's own coordinates, one set a task."""
        return (prototypes + self.origin.unsqueeze(-2)).expand(len(self.query), -1, -1)

    def proportions(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class"]:
        """`û_k = (1/|Q|) Σ_Q u_nk`."""
        return masked(weights, self.query_mask).sum(-2) / self.n_query.unsqueeze(-1)

    def select(self, rows: Tensor) -> Frame:
        """Return the frame of the chosen tasks."""
        return take(self, rows, len(self.query))

    def solution(
        self,
        u: SoftLabels,
        *,
        n_iter: Int[Tensor, "task"] | int = 1,
        converged: Bool[Tensor, "task"] | None = None,
        trace: Trace | None = None,
        find_prototypes: Callable[[], Tensor] | None = None,
        measure: Callable[[], DescriptionLength] | None = None,
    ) -> Solution:
        """Wrap the soft labels of the query; without `converged` the method has no tolerance to miss."""
        n_tasks, device = len(self.query), self.query.device
        return Solution(
            log_assignments=self.hide_padding(u.log()),
            proportions=self.proportions(u.weights),
            n_iter=torch.full((n_tasks,), n_iter, device=device) if isinstance(n_iter, int) else n_iter,
            converged=torch.ones(n_tasks, dtype=torch.bool, device=device) if converged is None else converged,
            query_mask=self.query_mask,
            trace=trace,
            find_prototypes=find_prototypes,
            measure=measure,
        )

    def hide_padding(self, values: Float[Tensor, "task query class"]) -> Float[Tensor, "task query class"]:
        """-inf in the rows of padded queries: they belong nowhere."""
        if self.query_mask is None:
            return values
        return values.where(self.query_mask.unsqueeze(-1), -torch.inf)


def data_length(task: TaskBatch, frame: Frame, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task"]:
    """`Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖² + Σ_Q u_nk ln u_nk`, at the prototypes that belong to U."""
    fit = data_fit(task, frame, weights, frame.prototypes(weights))
    return fit - entropy(masked(weights, frame.query_mask)).sum(-1)


def data_fit(
    task: TaskBatch,
    frame: Frame,
    weights: Float[Tensor, "task query class"],
    prototypes: Float[Tensor, "task class dim"],
) -> Float[Tensor, "task"]:
    """`Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖²`, support rows clamped to their labels; w in the task's coordinates."""
    centred = prototypes - frame.origin.unsqueeze(-2)
    u = masked(weights, frame.query_mask)
    of_query = (u * half_squared_distances(frame.query, centred)).sum((-2, -1))
    # Around its own means the support costs a constant; moving a prototype away from them costs the rest.
    means = frame.support.mean()
    away = 0.5 * (frame.support.mass * (means - centred).square().sum(-1)).sum(-1)
    return of_query + away + _support_scatter(task, means + frame.origin.unsqueeze(-2))


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
