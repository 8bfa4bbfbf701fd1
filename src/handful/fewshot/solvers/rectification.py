"""Prototype rectification (Liu, Song, Qin, ECCV 2020): let the query pull the support means towards itself.

The query is moved by `ξ = mean(S) - mean(Q)` and labelled by cosine similarity to the support means w. Every class then
averages its points again; points similar to its mean have a larger weight. Two ways to weigh, with sharpness ε:

- as in the paper, over the points of a class: `w'_k = Σ_n a_n z_n / Σ_n a_n`, `a_n = exp(ε cos(z_n, w_k))`; the support
  keeps its labels;
- as in public code (of PADDLE, and of LaplacianShot before it), over the classes of a point: `w'_k = mean_n b_nk z_n`,
  `b_n = softmax_k(ε cos(z_n, w_k))`; the support is labelled like the query. The mean divides by the count, so
  prototypes shrink. If a class gets no point, no prototype of that task moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.numerics.geometry import labelled_moments
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.numerics.vectors import cosines
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Rectified:
    """Prototypes after rectification, and the query moved towards the support; padding is zero."""

    prototypes: Float[Tensor, "task class dim"]
    query: Float[Tensor, "task query dim"]


def rectify(task: TaskBatch, sharpness: float, *, public_code: bool) -> Rectified:
    """Move the query, label it, and average each class again; see above."""
    support = task.zeroed("support")
    prototypes = labelled_moments(support, task.support_labels, task.support_mask, task.n_classes).mean()
    in_support, in_query = task.present("support"), task.present("query")
    means = (
        support.sum(-2) / in_support.sum(-1, keepdim=True),
        task.zeroed("query").sum(-2) / in_query.sum(-1, keepdim=True),
    )
    query = (task.query + (means[0] - means[1]).unsqueeze(-2)).where(in_query.unsqueeze(-1), 0)

    n_tasks, n_support = task.n_tasks, support.shape[1]
    points = torch.cat([support.expand(n_tasks, -1, -1), query], 1)
    mask = torch.cat([in_support.expand(n_tasks, -1), in_query], 1)
    similarity = cosines(points, prototypes)
    labels = similarity.argmax(-1)
    if public_code:
        belongs = _one_hot(labels, mask, task.n_classes)
        weights = softmax(sharpness * similarity).weights.where(belongs, 0) / belongs.sum(-2, keepdim=True)
        everyone_has_points = belongs.any(-2).all(-1)[:, None, None]
        return Rectified((weights.mT @ points).where(everyone_has_points, prototypes), query)
    known = task.support_labels.where(in_support, 0)
    labels = torch.cat([known.expand(n_tasks, -1), labels[:, n_support:]], 1)
    belongs = _one_hot(labels, mask, task.n_classes)
    weights = (sharpness * similarity).where(belongs, -torch.inf).softmax(-2)
    return Rectified(weights.mT @ points, query)


def _one_hot(
    labels: Int[Tensor, "task point"], mask: Bool[Tensor, "task point"], n_classes: int
) -> Bool[Tensor, "task point class"]:
    return (labels.unsqueeze(-1) == torch.arange(n_classes, device=labels.device)) & mask.unsqueeze(-1)
