"""Methods that accept their own labels of the query a few at a time, one task after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from handful.fewshot.solution import Solution
from handful.fewshot.task import TaskBatch
from handful.shapes import Float, Int


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
        support, query = own.support[0].double().cpu()[in_support], own.query[0].double().cpu()[in_query]
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
