"""Roll call: a head fitted to the support, and joint labels that expect few classes only as far as the query says so.

There is nothing to tune. The support gives a head, its temperature from left-out examples and the chance that each
label is right (`inference.head`). The query gives everything else (`inference.roll_call`): whether it comes from
elsewhere, how many classes are in it, how evenly it is spread over them, and so how strongly an absent class is
held back. Where a query is too uneven for that, each item is labelled alone.

What is left of PADDLE is the idea that presence of a class has a price. PADDLE pays it through the proportions, and
where real batches hold many items of few classes and few of many, large classes swallow their neighbours. Here size is
free: only presence is paid for.

Tasks that share a support share its head. Else every task fits its own, which takes far longer than labelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from handful.inference.frame import Frame, Labels, support_means
from handful.inference.head import Head, fit_head
from handful.inference.roll_call_stack import AgainstHead, label
from handful.methods.method import Method, require
from handful.solution import Solution
from handful.task import TaskBatch


@dataclass(frozen=True)
class RollCallOptions:
    """Options of roll call: when to stop.

    Attributes
    ----------
    max_iter, tol : int, float
        The last stages end when no expected class count changes by more than `tol` items, or after `max_iter`
        iterations.
    """

    max_iter: int = 200
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.max_iter >= 1, "max_iter must be at least 1", self.max_iter)
        require(self.tol >= 0, "tol must be at least 0", self.tol)


def solve(task: TaskBatch, options: RollCallOptions) -> Solution:
    """Fit a head to each support, find the classes present in each query and label it."""
    if len(task.source("support")) > 1:
        return Solution.join([_solved(task.select(slice(t, t + 1)), options) for t in range(task.n_tasks)])
    return _solved(task, options)


def _solved(task: TaskBatch, options: RollCallOptions) -> Solution:
    """Label the queries of tasks that share a support."""
    frame = Frame(task)
    found = label(
        AgainstHead(frame.query, frame.query_mask, head_of(frame)), max_iter=options.max_iter, tol=options.tol
    )
    proportions = (found.expected_counts / task.n_query.unsqueeze(-1)).to(task.dtype)
    labels = Labels(found.log_probabilities, proportions, torch.zeros_like(found.log_probabilities[..., 0]))
    return frame.solution(labels, n_iter=found.n_iter, converged=found.converged, find_prototypes=support_means)


def head_of(frame: Frame) -> Head:
    """Fit a head to the support of a single task, or to the one that all tasks share."""
    task = frame.task
    points, codes = task.support[0], task.support_labels[0]
    if task.support_mask is not None:
        points, codes = points[task.support_mask[0]], codes[task.support_mask[0]]
    return fit_head(points - frame.origin[0], codes, task.n_classes, float(points.square().sum(-1).mean()))


METHOD = Method(
    name="roll_call",
    options=RollCallOptions,
    transform="l2",
    solve=solve,
    citation="handful; after Martin et al., NeurIPS 2022 and Saerens et al. 2002.",
)
