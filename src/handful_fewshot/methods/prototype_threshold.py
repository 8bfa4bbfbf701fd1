"""A threshold on the nearest prototype: the simple control of methods that reject.

With `c_nk = cos(z_n, w_k)` and w the support means, a query is unknown with

    o_n = σ( (t - max_k c_nk) / λ ),

so that it is rejected if it is less like every class than t. Its labels, given that it has a class, are
`softmax_k( c_nk / λ )`. Each query is judged on its own.

The threshold is found from the support. Compared with the prototypes of all other classes, an example is an item
whose class is not in the catalogue; t is the quantile ρ of `max_{k ≠ y_n} c_nk` over the examples. So about a share ρ
of the unknown items is rejected, and the ranking of queries does not depend on ρ.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, limited
from handful_fewshot.numerics.vectors import cosines, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

LEAST_COSINE = -1.0


@dataclass(frozen=True)
class PrototypeThresholdOptions(Options):
    """Options of the threshold.

    **Assumes** that unknown classes are as unlike the known ones as these are unlike each other. **Use it** as the
    baseline of methods that reject. The mean of `Solution.unknown` is no estimate of the unknown share: a part ρ of the
    unknown items is rejected, and some known ones. With one class there are no others, and nothing is rejected.
    **Cost.** 2(|S|+|Q|)Kd, once.
    """

    rejected_share: float = limited(lambda share: 0 < share < 1, "between 0 and 1", 0.5)  # ρ
    temperature: float = above(0, 0.1)  # λ


def solve(task: TaskBatch, options: PrototypeThresholdOptions) -> Solution:
    """Compare queries and examples with the support means, in the task's own coordinates."""
    frame = Frame(task)
    prototypes = frame.support.about(-frame.origin).mean()
    own = task.support_labels.where(task.present("support"), 0).unsqueeze(-1)
    others = cosines(task.zeroed("support"), prototypes).scatter(-1, own, LEAST_COSINE).amax(-1)
    others = others.where(task.present("support"), torch.nan)
    threshold = others.nanquantile(options.rejected_share, -1, keepdim=True)
    similarity = cosines(task.zeroed("query"), prototypes)
    unknown = ((threshold - similarity.amax(-1)) / options.temperature).sigmoid()
    closed = softmax(similarity / options.temperature)
    placed = prototypes.expand(task.n_tasks, -1, -1)
    return frame.solution(closed, find_prototypes=placed, unknown=unknown)


METHOD = Method(
    "prototype_threshold",
    PrototypeThresholdOptions,
    "cl2n",
    solve,
    "Wang, Chao, Weinberger, van der Maaten. SimpleShot: Revisiting Nearest-Neighbor Classification for "
    "Few-Shot Learning. arXiv 1911.04623, 2019. The threshold is handful's.",
    support_arrays=3,
    rejects=True,
)
