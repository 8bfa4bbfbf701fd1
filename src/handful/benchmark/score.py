"""score: compare answers with the query labels, which nothing else reads."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful.solution import Solution

# A probability below this counts as this, so that one class ruled out by mistake does not make a mean infinite.
LEAST_PROBABILITY = 1e-12


class Scores(NamedTuple):
    """How well the queries of each task were labelled.

    Attributes
    ----------
    accuracy : Float[Tensor, "task"]
        Share of queries with the right label.
    macro_recall : Float[Tensor, "task"]
        Recall of each class that occurs, averaged over these classes.
    n_predicted : Int[Tensor, "task"]
        Number of classes that at least one query was assigned to.
    presence_precision, presence_recall : Float[Tensor, "task"]
        Of the classes predicted, the share that occurs; of those that occur, the share predicted.
    proportion_error : Float[Tensor, "task"]
        `½ Σ_k |û_k - #{n : y_n = k} / |Q||`, the total variation between the predicted and the true proportions: 0
        where they agree, 1 where they share no class.
    negative_log_likelihood : Float[Tensor, "task"]
        `-(1/|Q|) Σ_n ln max(u_{n,y_n}, 10⁻¹²)`, in nats.
    """

    accuracy: Float[Tensor, "task"]
    macro_recall: Float[Tensor, "task"]
    n_predicted: Int[Tensor, "task"]
    presence_precision: Float[Tensor, "task"]
    presence_recall: Float[Tensor, "task"]
    proportion_error: Float[Tensor, "task"]
    negative_log_likelihood: Float[Tensor, "task"]


def score(solution: Solution, truth: Int[Tensor, "task query"]) -> Scores:
    """Compare the answer with the labels of the queries; drawn tasks have no padded queries.

    Examples
    --------
    >>> from handful import TaskBatch, solve
    >>> task = TaskBatch.single([[0.0], [9.0], [99.0]], [0, 1, 2], [[1.0], [0.5], [8.0], [9.5]], n_classes=3)
    >>> scores = score(solve("nearest_prototype", task), torch.tensor([[0, 0, 0, 1]]))
    >>> [round(float(value), 3) for value in scores[:6]]
    [0.75, 0.833, 2.0, 1.0, 1.0, 0.25]
    """
    predictions = solution.predictions
    n_classes = solution.log_assignments.shape[-1]
    right = (predictions == truth).to(torch.float64)
    counts = _counts(truth, torch.ones_like(right), n_classes)
    present, predicted = counts > 0, _occurs(predictions, n_classes)
    recalls = _counts(truth, right, n_classes) / counts.clamp(min=1)
    both = (present & predicted).sum(-1).to(torch.float64)
    log_p = solution.log_assignments.gather(-1, truth.unsqueeze(-1)).squeeze(-1).to(torch.float64)
    return Scores(
        right.mean(-1),
        recalls.sum(-1) / present.sum(-1),
        predicted.sum(-1),
        both / predicted.sum(-1),
        both / present.sum(-1),
        (solution.proportions - counts / truth.shape[-1]).abs().sum(-1) / 2,
        -log_p.clamp(min=math.log(LEAST_PROBABILITY), max=0).mean(-1),
    )


def _counts(
    labels: Int[Tensor, "task query"], weights: Float[Tensor, "task query"], n_classes: int
) -> Float[Tensor, "task class"]:
    return weights.new_zeros(len(labels), n_classes).scatter_add_(-1, labels, weights)


def _occurs(labels: Int[Tensor, "task query"], n_classes: int) -> Bool[Tensor, "task class"]:
    return torch.zeros(len(labels), n_classes, dtype=torch.bool).scatter_(-1, labels, True)
