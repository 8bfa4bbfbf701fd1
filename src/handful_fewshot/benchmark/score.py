"""score: compare answers with the query labels, which nothing else reads.

A query is known if its class is in the support, and unknown if its label is -1. Labels are judged on the known queries,
whatever a method rejects. A method without `Solution.unknown` rejects nothing; its queries are ranked by one minus
their highest probability. A value that a task cannot have is not a number, and is left out of means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int
from handful_fewshot.solution import Solution

# A probability below this counts as this, so that one class ruled out by mistake does not make a mean infinite.
LEAST_PROBABILITY = 1e-12
# A query counts as rejected if the method is surer than this that it is unknown.
REJECTED = 0.5
# Recall at which precision is reported.
RECALL = 0.9


class TaskScores(NamedTuple):
    """How well the queries of each task were labelled."""

    accuracy: Float[Tensor, "task"]  # share of known queries with the right label
    macro_recall: Float[Tensor, "task"]  # recall of each class of the support that occurs, averaged over these classes
    n_predicted: Int[Tensor, "task"]  # classes that at least one query was assigned to, without rejected queries
    presence_precision: Float[Tensor, "task"]  # of the classes predicted, the share that occurs
    presence_recall: Float[Tensor, "task"]  # of the classes that occur, the share predicted
    # `½ Σ_k |û_k - #{n : y_n = k} / |Q||`, the total variation between the predicted and the true proportions: 0 where
    # they agree, 1 where they share no class. The unknown queries count as one more class.
    proportion_error: Float[Tensor, "task"]
    negative_log_likelihood: Float[Tensor, "task"]  # mean of `-ln max(u_{n,y_n}, 10⁻¹²)` over the known queries
    # How well unknown queries are ranked before known ones: the area under the ROC curve, the average precision, and
    # the precision at the highest threshold that finds at least 90% of the unknown queries.
    unknown_auroc: Float[Tensor, "task"]
    unknown_aupr: Float[Tensor, "task"]
    unknown_precision: Float[Tensor, "task"]
    # Of methods that reject: `|mean_Q o_n - #{n : y_n = -1} / |Q||`, and the share of known queries with `o_n > ½`.
    unknown_share_error: Float[Tensor, "task"]
    known_rejected: Float[Tensor, "task"]


def score(solution: Solution, truth: Int[Tensor, "task query"]) -> TaskScores:
    """Compare the answer with the labels of the queries, -1 for unknown; drawn tasks have no padded queries."""
    predictions = solution.predictions
    n_classes = solution.log_assignments.shape[-1]
    known = truth >= 0
    n_known = known.sum(-1)
    labels = truth.where(known, 0)
    right = (predictions == truth).to(torch.float64)
    counts = _counts(labels, known.to(torch.float64), n_classes)
    recalls = _counts(labels, right, n_classes) / counts.clamp(min=1)
    kept = torch.ones_like(known) if solution.unknown is None else solution.unknown <= REJECTED
    present = counts > 0
    predicted = _counts(predictions, kept.to(torch.float64), n_classes) > 0
    both = (present & predicted).sum(-1).to(torch.float64)
    log_p = solution.log_assignments.gather(-1, labels.unsqueeze(-1)).squeeze(-1).to(torch.float64)
    surprise = -log_p.clamp(min=math.log(LEAST_PROBABILITY), max=0).where(known, 0)
    share = (~known).to(torch.float64).mean(-1)
    stated = torch.full_like(share, torch.nan) if solution.unknown is None else solution.unknown.double().mean(-1)
    rejected = stated.nan_to_num(0.0)
    of_classes = ((1 - rejected).unsqueeze(-1) * solution.proportions - counts / truth.shape[-1]).abs().sum(-1)
    auroc, aupr, precision = _detection(_unlikeness(solution), ~known)
    return TaskScores(
        right.sum(-1) / n_known,
        recalls.sum(-1) / present.sum(-1),
        predicted.sum(-1),
        both / predicted.sum(-1),
        both / present.sum(-1),
        (of_classes + (rejected - share).abs()) / 2,
        surprise.sum(-1) / n_known,
        auroc,
        aupr,
        precision,
        (stated - share).abs(),
        (~kept & known).sum(-1) / n_known + 0 * stated,  # not a number for a method that cannot reject
    )


def _unlikeness(solution: Solution) -> Float[Tensor, "task query"]:
    """`o_n`, or `1 - max_k u_nk` for a method that does not reject, as a sum of the others so that no digit is lost."""
    if solution.unknown is not None:
        return solution.unknown
    others = solution.log_assignments.double().exp()
    return others.scatter(-1, solution.predictions.unsqueeze(-1), 0.0).sum(-1)


def _detection(scores: Float[Tensor, "task query"], unknown: Bool[Tensor, "task query"]) -> Float[Tensor, "3 task"]:
    """AUROC, average precision and precision at `RECALL`; not a number without known or without unknown queries."""
    measures = torch.full((3, len(scores)), torch.nan, dtype=torch.float64)
    for t in (unknown.any(-1) & ~unknown.all(-1)).nonzero().flatten().tolist():
        from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score  # takes a while

        truth = unknown[t].cpu().numpy()
        ranked = scores[t].double().cpu().numpy()
        precision, recall, _ = precision_recall_curve(truth, ranked)
        enough = precision[recall >= RECALL - 1e-12][-1]  # 9 of 10 may be rounded to less than 0.9
        areas = roc_auc_score(truth, ranked), average_precision_score(truth, ranked)
        measures[:, t] = torch.tensor([*areas, enough], dtype=torch.float64)
    return measures


def _counts(
    labels: Int[Tensor, "task query"], weights: Float[Tensor, "task query"], n_classes: int
) -> Float[Tensor, "task class"]:
    return weights.new_zeros(len(labels), n_classes).scatter_add_(-1, labels, weights)
