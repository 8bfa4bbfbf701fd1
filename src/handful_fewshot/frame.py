"""What methods share: a frame, tasks in coordinates whose origin is the support's mean; a loop; one task at a time.

Distances do not depend on the origin, but rounding does: products of vectors that share a large offset lose the digits
in which they differ. So the origin is subtracted first, and added back to the prototypes at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful_fewshot.numerics.fixed_point import Trace, fixed_point
from handful_fewshot.numerics.geometry import (
    Moments,
    Space,
    labelled_moments,
    masked,
    soft_moments,
)
from handful_fewshot.numerics.vectors import SoftLabels, entropy, half_squared_distances
from handful_fewshot.solution import DescriptionLength, Solution
from handful_fewshot.task import TaskBatch

T = TypeVar("T")


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

    @property
    def support_points(self) -> Float[Tensor, "#task support dim"]:
        """Support points about the origin; padding is zero."""
        return masked(self.task.support - self.origin.unsqueeze(-2), self.task.support_mask)

    @cached_property
    def query(self) -> Float[Tensor, "task query dim"]:
        """Query points about the origin; padding is zero."""
        return masked(self.task.query - self.origin.unsqueeze(-2), self.query_mask)

    def space(self) -> Space:
        """Return queries and support in as few coordinates as they need."""
        return Space(self.query, self.query_mask, self.support).in_few_coordinates()

    def prototypes(self, weights: Float[Tensor, "task query class"]) -> Float[Tensor, "task class dim"]:
        """`w_k = (Σ_Q u_nk z_n + Σ_S y_nk z_n) / (Σ_Q u_nk + c_k)`, in the task's own coordinates."""
        query = soft_moments(self.query, masked(weights, self.query_mask))
        return self.placed((self.support + query).mean())

    @cached_property
    def names(self) -> Float[Tensor, "task class dim"]:
        """t_k: vectors of the names of the classes; without names, the means of the support stand for them."""
        names = self.task.names
        return self.placed(self.support.mean()) if names is None else names.expand(self.task.n_tasks, -1, -1)

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
        unknown: Float[Tensor, "task query"] | None = None,
    ) -> Solution:
        """Wrap the soft labels of the query, or plain weights; a method without a tolerance leaves `converged` out.

        `find_prototypes` are prototypes in the task's own coordinates, or, like `measure`, a function of a frame and of
        `u_nk`. Functions run on first use, on a new frame, so the points of this one need not be kept. With `unknown`,
        `u_nk` are given that query n has a class, and proportions are `Σ_n (1 - o_n) u_nk / Σ_n (1 - o_n)`.
        """
        n_tasks = self.task.n_tasks
        device = self.task.device
        log_u = u.log()
        if self.query_mask is not None:  # padding belongs to no class
            log_u = log_u.where(self.query_mask.unsqueeze(-1), -torch.inf)
        weights = u if isinstance(u, Tensor) else u.weights
        proportions = self.proportions(weights)
        if unknown is not None:
            unknown = unknown.where(self.task.present("query"), 0)
            # If every query is rejected for certain, all count equally.
            kept = (1 - unknown).clamp(min=torch.finfo(unknown.dtype).eps).unsqueeze(-1)
            masses = masked(kept * weights, self.query_mask).sum(-2)
            proportions = masses / masses.sum(-1, keepdim=True)
        later = partial(partial, _in_a_frame_of, self.task)
        return Solution(
            log_assignments=log_u,
            proportions=proportions,
            n_iter=torch.full((n_tasks,), n_iter, device=device) if isinstance(n_iter, int) else n_iter,
            converged=torch.ones(n_tasks, dtype=torch.bool, device=device) if converged is None else converged,
            query_mask=self.query_mask,
            trace=trace,
            find_prototypes=later(find_prototypes) if callable(find_prototypes) else find_prototypes,
            measure=None if measure is None else later(measure),
            unknown=unknown,
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


class OneTask(NamedTuple):
    """A task without padding, in double precision and on the CPU."""

    support: Float[Tensor, "support dim"]
    support_labels: Int[Tensor, "support"]
    query: Float[Tensor, "query dim"]
    n_classes: int


# `ln u_nk`, the number of iterations, and whether they converged.
OneAnswer: TypeAlias = tuple[Float[Tensor, "query class"], int, bool]


def solve_each(solve_one: Callable[[OneTask, Any], OneAnswer], task: TaskBatch, options: Any) -> Solution:
    """Solve the tasks one by one."""
    shape = (task.n_tasks, task.query.shape[1], task.n_classes)
    log_assignments = torch.full(shape, -torch.inf, dtype=task.query.dtype)
    proportions = torch.empty(task.n_tasks, task.n_classes, dtype=task.query.dtype)
    ends = []
    for t in range(task.n_tasks):
        own = task.select(slice(t, t + 1))
        in_support = slice(None) if own.support_mask is None else own.support_mask[0].cpu()
        in_query = slice(None) if own.query_mask is None else own.query_mask[0].cpu()
        support = own.support[0].double().cpu()[in_support]
        query = own.query[0].double().cpu()[in_query]
        labels = own.support_labels[0].cpu()[in_support]
        log_u, n_iter, converged = solve_one(OneTask(support, labels, query, task.n_classes), options)
        log_assignments[t, in_query] = log_u.to(task.query.dtype)
        proportions[t] = log_u.exp().mean(0).to(task.query.dtype)
        ends.append((n_iter, converged))
    device = task.query.device
    return Solution(
        log_assignments=log_assignments.to(device),
        proportions=proportions.to(device),
        n_iter=torch.tensor([n_iter for n_iter, _ in ends], device=device),
        converged=torch.tensor([converged for _, converged in ends], device=device),
        query_mask=task.query_mask,
    )


def first_of_each_class(labels: Int[Tensor, "point"], keys: tuple[Tensor, ...], most: int) -> Int[Tensor, "chosen"]:
    """Return the positions of the `most` points of each class with the smallest key; later keys decide ties."""
    order = torch.from_numpy(np.lexsort([*(key.numpy() for key in reversed(keys)), labels.numpy()]))
    counts = torch.bincount(labels)
    rank_in_class = torch.arange(len(order)) - (counts.cumsum(0) - counts)[labels[order]]
    return order[rank_in_class < most]
