"""Frame: a batch of tasks as moment-based methods see it, in coordinates whose origin is the support's mean.

Distances do not depend on the origin, rounding does: products of vectors that share a large offset lose the digits
in which they differ. So the origin is moved first, and added back to the prototypes at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from handful.numerics.distances import half_squared_distances
from handful.numerics.entropy import entropy
from handful.numerics.fixed_point import Trace
from handful.numerics.geometry import FeatureSpace, GramSpace, Space, gram_is_cheaper, masked
from handful.numerics.moments import Moments, labelled_moments, soft_moments
from handful.numerics.simplex import SoftLabels
from handful.shapes import Bool, Float, Int
from handful.solution import DescriptionLength, Solution
from handful.task import TaskBatch

GEOMETRIES = ("auto", "feature", "gram")
# Numbers of support and query in one block when the products of Gram space are formed: what fits a second-level cache.
BLOCK_NUMBERS = 1_000_000


@dataclass(frozen=True, eq=False)
class Frame:
    """A view of tasks in centred coordinates; the support's points are summed by class and not seen again.

    Everything is computed at first use, so that what a method does not need costs nothing.
    """

    task: TaskBatch

    @property
    def query_mask(self) -> Bool[Tensor, "task query"] | None:
        """As in the task."""
        return self.task.query_mask

    @cached_property
    def n_query(self) -> Float[Tensor, "task"]:
        """|Q| of each task, in the dtype of the features."""
        return self.task.n_query.to(self.task.query.dtype)

    @cached_property
    def _uncentred(self) -> Moments:
        points = self.task.support
        if self.task.support_mask is not None:
            points = points.where(self.task.support_mask.unsqueeze(-1), 0)
        return labelled_moments(points, self.task.support_labels, self.task.support_mask, self.task.n_classes)

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
        query = self.task.query - self.origin.unsqueeze(-2)
        return query if self.query_mask is None else query.where(self.query_mask.unsqueeze(-1), 0)

    def space(self, geometry: str, max_iter: int) -> Space[Any]:
        """Return the geometry asked for, or the one that costs less for these shapes."""
        if geometry == "auto":
            n_query, dim = self.task.query.shape[1:]
            cheaper = gram_is_cheaper(n_query, self.task.n_classes, dim, max_iter)
            geometry = "gram" if cheaper else "feature"
        if geometry == "gram":
            return self._gram_space()
        return FeatureSpace.of(self.query, self.query_mask, self.support)

    def _gram_space(self) -> GramSpace:
        """Form the products block by block: centred points are used while they are in the cache, and not kept."""
        task = self.task
        n_query = task.query.shape[1]
        space = GramSpace.empty(task.n_tasks, n_query, task.n_classes, task.query_mask, like=task.query)
        size = max(1, BLOCK_NUMBERS // ((n_query + task.support.shape[1]) * task.dim))
        # One buffer for all blocks: fresh memory would cost more than the subtraction that fills it.
        buffer = task.query.new_empty(min(size, task.n_tasks), n_query, task.dim)
        for start in range(0, task.n_tasks, size):
            rows = slice(start, min(start + size, task.n_tasks))
            block = self if len(task.support) == 1 else Frame(task.select(rows))
            centred = torch.sub(task.query[rows], block.origin.unsqueeze(-2), out=buffer[: rows.stop - start])
            if task.query_mask is not None:
                centred.masked_fill_(~task.query_mask[rows].unsqueeze(-1), 0)
            space.fill(rows, centred, block.support)
        return space

    def prototypes(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class dim"]:
        """`w_k = (Σ_Q u_nk z_n + Σ_S y_nk z_n) / (Σ_Q u_nk + c_k)`, in the task's own coordinates."""
        query = soft_moments(self.query, masked(weights, self.query_mask))
        return self.placed((self.support + query).mean())

    def placed(self, prototypes: Float[Tensor, "#task class dim"]) -> Float[Tensor, "task class dim"]:
        """Return centred prototypes in the task's own coordinates, one set a task."""
        return (prototypes + self.origin.unsqueeze(-2)).expand(self.task.n_tasks, -1, -1)

    def proportions(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class"]:
        """`û_k = (1/|Q|) Σ_Q u_nk`."""
        return masked(weights, self.query_mask).sum(-2) / self.n_query.unsqueeze(-1)

    def select(self, rows: Tensor | slice) -> Frame:
        """Return the frame of the chosen tasks."""
        return Frame(self.task.select(rows))

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
        n_tasks, device = self.task.n_tasks, self.task.query.device
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


def data_length(frame: Frame, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task"]:
    """`Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖² + Σ_Q u_nk ln u_nk`, at the prototypes that belong to U."""
    fit = data_fit(frame, weights, frame.prototypes(weights))
    return fit - entropy(masked(weights, frame.query_mask)).sum(-1)


def data_fit(
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
