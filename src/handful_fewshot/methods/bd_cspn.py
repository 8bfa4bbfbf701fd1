"""BD-CSPN: prototype rectification (Liu, Song, Qin, ECCV 2020).

One pass, no iteration. The query is moved by `ξ = mean(S) - mean(Q)` and labelled by cosine similarity to the support
means w_k; each class then averages its labelled and pseudo-labelled points again,

    w'_k = Σ_n a_n z_n / Σ_n a_n,     a_n = exp(ε cos(z_n, w_k)) over the points of class k,

and the moved query is labelled by `softmax_k( τ cos(z_n, w'_k) )`, τ = 10. The BD-CSPN of PADDLE's tables differs in
three ways, all available with `public_code`. Weights are over the classes of a point,
`b_n = softmax_k(ε cos(z_n, w_k))`, with the support labelled like the query, and `w'_k = mean_n b_nk z_n`: the mean
divides by the count, so prototypes shrink; if a class gets no point, no prototype of that task moves. The original
query, not the moved one, is labelled by Euclidean distance. And features are raw, because the result of their
normalisation is discarded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, at_least
from handful_fewshot.numerics.geometry import labelled_moments
from handful_fewshot.numerics.vectors import cosines, half_squared_distances, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# τ in the soft labels; it sets their confidence and does not change which class comes first.
COSINE_SCALE = 10.0


@dataclass(frozen=True)
class BDCSPNOptions(Options):
    """Options of BD-CSPN.

    **Assumes** that support and query have the same mean: true when classes occur about equally often in both,
    false when few of the classes are present. **Use it** for balanced queries. PADDLE's tables have
    `public_code=True`, `sharpness=50.0` and the transform `raw`. **Cost.** 2(|S|+|Q|)Kd, once.
    """

    # ε, how strongly points similar to their prototype outweigh the others: 10 in LaplacianShot's code for this step;
    # PADDLE's configurations use 50, and 30 for one encoder.
    sharpness: float = at_least(0, 10.0)
    public_code: bool = False  # weigh points and label the query as PADDLE's public code does


def rectify(
    task: TaskBatch, sharpness: float, *, public_code: bool
) -> tuple[Float[Tensor, "task class dim"], Float[Tensor, "task query dim"]]:
    """Move the query, label it, and average each class again; return prototypes and the moved query, padding zero."""
    n_tasks = task.n_tasks
    support = task.zeroed("support")
    in_query = task.present("query").unsqueeze(-1)
    moments = labelled_moments(support, task.support_labels, task.support_mask, task.n_classes)
    prototypes = moments.mean()
    mean = moments.sums.sum(-2) / moments.mass.sum(-1, keepdim=True)
    move = mean - task.zeroed("query").sum(-2) / task.n_query.unsqueeze(-1)
    query = (task.query + move.unsqueeze(-2)).where(in_query, 0)

    points = torch.cat([support.expand(n_tasks, -1, -1), query], 1)
    mask = torch.cat([task.present("support").unsqueeze(-1).expand(n_tasks, -1, -1), in_query], 1)
    similarity = cosines(points, prototypes)
    belongs = (one_hot(similarity.argmax(-1), task.n_classes) > 0) & mask
    if public_code:
        weights = softmax(sharpness * similarity).weights.where(belongs, 0) / belongs.sum(-2, keepdim=True)
        everyone_has_points = belongs.any(-2).all(-1)[:, None, None]
        return (weights.mT @ points).where(everyone_has_points, prototypes), query
    belongs[:, : task.support_slots] = task.targets > 0
    weights = (sharpness * similarity).where(belongs, -torch.inf).softmax(-2)
    return weights.mT @ points, query


def solve(task: TaskBatch, options: BDCSPNOptions) -> Solution:
    """Rectify the prototypes, then compare the query with them."""
    frame = Frame(task)
    prototypes, moved = rectify(task, options.sharpness, public_code=options.public_code)
    if options.public_code:
        u = softmax(-half_squared_distances(frame.query, prototypes - frame.origin.unsqueeze(-2)))
    else:
        u = softmax(COSINE_SCALE * cosines(moved, prototypes))
    return frame.solution(u, find_prototypes=prototypes)


METHOD = Method(
    "bd_cspn",
    BDCSPNOptions,
    "cl2n",
    solve,
    "Liu, Song, Qin. Prototype Rectification for Few-Shot Learning. ECCV 2020.",
    support_arrays=6,
)
