"""Roll call: a head fitted to the support, and joint labels that assume few classes only if the query supports it.

There is nothing to tune. The support gives a head, its temperature from left-out examples and the chance that each
label is right (`inference.head`). The query gives everything else (`inference.roll_call`): whether it comes from
elsewhere, how many classes are in it, how evenly it is spread over them, and so how strongly an absent class is
held back. Where a query is too uneven for that, each item is labelled alone. Items that look like none of the classes
are recognised by comparing them with classes that were left out of the support (`inference.open_roll_call`).

One idea of PADDLE is kept: a class that is present has a cost. In PADDLE the cost depends on the proportions. In real
batches, with many items of few classes and few items of many, large classes then take items from similar small ones.
Here the size of a class has no effect: only its presence has a cost.

Tasks that share a support share its head. Else every task fits its own, which takes far longer than labelling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.inference.frame import Frame, Labels, support_means
from handful.inference.head import fit_head
from handful.inference.open_roll_call import REJECTED, label_open
from handful.inference.roll_call_stack import AgainstHead
from handful.inference.strangers import fit_strangers
from handful.methods.method import Method, require
from handful.shapes import Float, Int
from handful.solution import Solution
from handful.task import TaskBatch

# So that a query of unknown items alone has proportions too.
LEAST_COUNT = 1e-12


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
    points, codes, square_norm = support_of(frame)
    head = fit_head(points, codes, task.n_classes, square_norm)
    strangers = fit_strangers(head, points, codes)
    found = label_open(
        AgainstHead(frame.query, frame.query_mask, head), strangers, max_iter=options.max_iter, tol=options.tol
    )
    called, unknown = found.called, found.unknown
    if strangers is None:
        # Nothing is rejected; the least certain queries come first.
        unknown = (1 - called.log_probabilities.amax(-1).double().exp()).clamp(min=0) / 2
        unknown = unknown if frame.query_mask is None else unknown.where(frame.query_mask, 0)
    else:
        # Without evidence for something unknown nothing is rejected.
        unknown = torch.where(found.is_open.unsqueeze(-1), unknown, unknown.clamp(max=REJECTED))
    counts = called.expected_counts
    labels = Labels(
        called.log_probabilities,
        (counts / counts.sum(-1, keepdim=True).clamp(min=LEAST_COUNT)).to(task.dtype),
        torch.zeros_like(called.log_probabilities[..., 0]),
    )
    solution = frame.solution(labels, n_iter=called.n_iter, converged=called.converged, find_prototypes=support_means)
    return replace(solution, unknown=unknown.to(task.dtype))


def support_of(frame: Frame) -> tuple[Float[Tensor, "point dim"], Int[Tensor, "point"], float]:
    """Return the support of a single task, or the one that all tasks share: points, labels, mean squared norm."""
    task = frame.task
    points, codes = task.support[0], task.support_labels[0]
    if task.support_mask is not None:
        points, codes = points[task.support_mask[0]], codes[task.support_mask[0]]
    return points - frame.origin[0], codes, float(points.square().sum(-1).mean())


METHOD = Method(
    name="roll_call",
    options=RollCallOptions,
    transform="l2",
    solve=solve,
    rejects=True,
    citation="handful; after Martin et al., NeurIPS 2022 and Saerens et al. 2002.",
)
