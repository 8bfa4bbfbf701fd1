"""Nearest prototype, as in SimpleShot (Wang, Chao, Weinberger, van der Maaten, arXiv 1911.04623, 2019).

A query goes to the class whose support mean is nearest, `argmin_k ‖z_n - w_k‖`; soft labels are
`u_n = softmax_k( -½‖z_n - w_k‖² )`. Each query is labelled on its own. There are no options: the only thing SimpleShot
adds to the classifier is its feature transform, CL2N.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options
from handful_fewshot.numerics.geometry import Space
from handful_fewshot.numerics.vectors import softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class NearestPrototypeOptions(Options):
    """No options.

    **Assumes** nothing about the query. **Use it** as the baseline: the gain of a joint method is measured against
    it. It is the first iteration of `soft_kmeans`, `laplacian_shot` without smoothness, and `baseline` with
    prototypes before its first step. The mean of CL2N is that of the base classes: `transform("cl2n", task,
    base_mean=...)`. **Cost.** |S|d + |Q|Kd, once.
    """


def solve(task: TaskBatch, options: NearestPrototypeOptions) -> Solution:
    """Compare every query with every support mean."""
    frame = Frame(task)
    prototypes = frame.support.mean()
    u = softmax(Space(frame.query, frame.query_mask, frame.support).scores(prototypes))
    return frame.solution(u, find_prototypes=frame.placed(prototypes))


METHOD = Method(
    "nearest_prototype",
    NearestPrototypeOptions,
    "cl2n",
    solve,
    "Wang, Chao, Weinberger, van der Maaten. SimpleShot: Revisiting Nearest-Neighbor Classification for "
    "Few-Shot Learning. arXiv 1911.04623, 2019.",
)
