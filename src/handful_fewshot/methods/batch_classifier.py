"""The model of `BatchClassifier`: a head fitted to the support, and which classes are in the query.

There is nothing to tune. The support gives a head, its temperature from left-out examples and the chance that each
label is right. The query gives everything else: whether it comes from elsewhere, which classes are
in it, whether few classes describe it at all, and where they moved. Items that look like none of the classes are
recognised by comparing them with classes that were left out of the support.

Two ideas of PADDLE are kept: a class that is present has a cost, and class positions move with the query. In PADDLE the
cost depends on the proportions. In real batches, with many items of few classes and few items of many, large classes
then take items from similar small ones. Here the size of a class has no effect: only its presence has a cost.

Tasks that share a support share its head. Else every task fits its own, which takes far longer than labelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from handful.estimators import Answer, BatchClassifier
from handful.fitted import FittedModel
from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# So that a query of unknown items alone has proportions too, and no logarithm is infinite.
LEAST = 1e-30


@dataclass(frozen=True)
class BatchClassifierOptions(Options):
    """None: there is nothing to tune."""


def solve(task: TaskBatch, options: BatchClassifierOptions) -> Solution:
    """Fit a head to each support, find the classes present in each query and label it."""
    if len(task.support) > 1:
        return Solution.join([_solved(task.select(slice(t, t + 1))) for t in range(task.n_tasks)])
    return _solved(task)


def _solved(task: TaskBatch) -> Solution:
    """Label the queries of tasks that share a support; every query is a group of its own."""
    frame = Frame(task)
    real = task.present("support")[0]
    in_query = task.present("query")
    points = task.support[0][real].cpu().numpy()
    # As they are: whoever solves a task has transformed its features.
    catalogue = FittedModel.of(points, task.support_labels[0][real].cpu().numpy(), transform="raw")
    task_of = in_query.nonzero()[:, 0].cpu().numpy()
    answer = BatchClassifier.of(catalogue).infer(task.query[in_query].cpu().numpy(), task_of)
    log_q = torch.full((*in_query.shape, task.n_classes), -torch.inf, dtype=task.dtype, device=task.device)
    log_q[in_query] = torch.from_numpy(np.log(np.maximum(answer.probabilities, LEAST))).to(log_q)
    unknown = torch.zeros(in_query.shape, dtype=task.dtype, device=task.device)
    unknown[in_query] = torch.from_numpy(_unknown(answer)).to(unknown)
    counts = answer.expected_counts
    shares = torch.from_numpy(counts / np.maximum(counts.sum(1, keepdims=True), LEAST)).to(log_q)
    ones = torch.ones(task.n_tasks, dtype=torch.int64, device=task.device)
    return Solution(
        log_q,
        shares,
        ones,
        ones > 0,
        task.query_mask,
        find_prototypes=frame.placed(frame.support.mean()),
        unknown=unknown,
    )


def _unknown(answer: Answer) -> Float[np.ndarray, "item"]:
    """Chances to be unknown, below one half if the support cannot tell."""
    if np.isnan(answer.unknown).any():
        # The least certain queries come first.
        return np.asarray((1 - answer.probabilities.max(1)).clip(min=0) / 2)
    return answer.unknown


METHOD = Method(
    "batch_classifier",
    BatchClassifierOptions,
    "l2",
    solve,
    "handful; after Martin et al., NeurIPS 2022 and Saerens et al. 2002.",
    rejects=True,
)
