"""Detection: how well a score that should be high for unknown items ranks them before the known ones.

Every measure depends on the score only through the order of the items, and items with equal scores are taken together.
A task without unknown items, or without known ones, has none of them: the value is not a number, and is left out of
means.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from handful.shapes import Bool, Float

# Recall at which precision is reported.
RECALL = 0.9


class Detection(NamedTuple):
    """How well unknown items are separated from known ones, per task.

    Attributes
    ----------
    auroc : Float[Tensor, "task"]
        Probability that an unknown item has a higher score than a known one; a tie counts as half.
    aupr : Float[Tensor, "task"]
        Average precision, `Σ_i (R_i - R_{i-1}) P_i` over the thresholds in decreasing order.
    precision_at_recall : Float[Tensor, "task"]
        Precision at the highest threshold that finds at least 90 % of the unknown items.
    """

    auroc: Float[Tensor, "task"]
    aupr: Float[Tensor, "task"]
    precision_at_recall: Float[Tensor, "task"]


def detection(scores: Float[Tensor, "task query"], unknown: Bool[Tensor, "task query"]) -> Detection:
    """Measure the scores of the items of each task against which of them are unknown.

    Examples
    --------
    >>> found = detection(torch.tensor([[0.9, 0.4, 0.6, 0.1]]), torch.tensor([[True, True, False, False]]))
    >>> [round(float(value), 3) for value in found]
    [0.75, 0.833, 0.667]
    """
    descending, order = scores.sort(-1, descending=True)
    positive = unknown.gather(-1, order)
    last_of_tie = torch.ones_like(positive)
    last_of_tie[:, :-1] = descending[:, :-1] > descending[:, 1:]
    true = positive.cumsum(-1).to(torch.float64)
    false = (~positive).cumsum(-1).to(torch.float64)
    rows = [_measures(*of_task) for of_task in zip(true, false, last_of_tie, strict=True)]
    return Detection(*torch.tensor(rows, dtype=torch.float64).reshape(-1, 3).unbind(-1))


def _measures(
    true: Float[Tensor, "query"], false: Float[Tensor, "query"], last_of_tie: Bool[Tensor, "query"]
) -> tuple[float, float, float]:
    """Return the three measures of a task from its counts of unknown and known items above each score."""
    n_true, n_false = true[-1], false[-1]
    if n_true == 0 or n_false == 0:
        return float("nan"), float("nan"), float("nan")
    true, false = true[last_of_tie], false[last_of_tie]
    recall, precision = true / n_true, true / (true + false)
    zero = recall.new_zeros(1)
    found = torch.diff(recall, prepend=zero)
    # The area under the curve of straight lines between thresholds counts ties as half.
    height = (torch.cat([zero, recall[:-1]]) + recall) / 2
    auroc = (torch.diff(false / n_false, prepend=zero) * height).sum()
    enough = recall >= RECALL - 1e-12  # 9 of 10 may be rounded to less than 0.9
    return float(auroc), float((found * precision).sum()), float(precision[enough][0])
