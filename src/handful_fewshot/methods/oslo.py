"""OSLO: open-set likelihood optimisation (Boudiaf, Bennequin, Tami, et al., CVPR 2023).

Each query has soft labels `z_nk` and an inlierness `ξ_n`, which says how much it belongs to any class. With
`L_nk = cos(x_n, w_k)`, starting at the support means w and at `z_nk = 1/K`, each step computes

    ξ_n = σ( Σ_k z_nk L_nk / λ_s ),     z_n = softmax_k( ξ_n L_nk / λ_z ),
    w_k = ( Σ_S y_nk x_n + Σ_Q ξ_n z_nk x_n ) / ( Σ_S y_nk + Σ_Q ξ_n z_nk ).

A query is unknown with `o_n = 1 - ξ_n`, of the last step; ξ is a relaxed yes or no, not a calibrated probability. Its
labels, given that it has a class, are `softmax_k( L_nk / λ_z )` at the last prototypes.

In the first step ξ is the mean of all K cosines, whose differences between queries vanish as K grows: the method is
made for five classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.geometry import masked, soft_moments
from handful_fewshot.numerics.vectors import cosines, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class OsloOptions(Options):
    """Options of OSLO.

    **Assumes** that cosines to a known class are positive, and that those of an unknown item are all negative:
    centred features, few classes. **Use it** with about five classes and queries that fit none of them. **Do not
    use it** with many classes. The mean of `Solution.unknown` is a rough estimate of the unknown share. **Cost.**
    4|Q|Kd per step.
    """

    inlier_temperature: float = above(0, 0.05)  # λ_s
    label_temperature: float = above(0, 0.1)  # λ_z
    max_iter: int = at_least(1, 2)


def solve(task: TaskBatch, options: OsloOptions) -> Solution:
    """Take the steps in the task's own coordinates, since a cosine needs its origin; then label the query."""
    frame = Frame(task)
    query = task.zeroed("query")
    support = frame.support.about(-frame.origin)
    prototypes = support.mean()
    z = torch.full_like(query[..., :1], 1 / task.n_classes).expand(-1, -1, task.n_classes)
    for _ in range(options.max_iter):
        similarity = cosines(query, prototypes)
        logits = (z * similarity).sum(-1, keepdim=True) / options.inlier_temperature
        xi = logits.sigmoid()
        z = softmax(xi * similarity / options.label_temperature).weights
        prototypes = (support + soft_moments(query, masked(xi * z, task.query_mask))).mean()
    closed = softmax(cosines(query, prototypes) / options.label_temperature)
    unknown = (-logits).sigmoid().squeeze(-1)  # 1 - ξ would lose digits
    return frame.solution(closed, n_iter=options.max_iter, find_prototypes=prototypes, unknown=unknown)


METHOD = Method(
    "oslo",
    OsloOptions,
    "task_cl2n",
    solve,
    "Boudiaf, Bennequin, Tami, Toubhans, Piantanida, Hudelot, Ben Ayed. Open-Set Likelihood Maximization for "
    "Few-Shot Learning. CVPR 2023.",
    rejects=True,
)
