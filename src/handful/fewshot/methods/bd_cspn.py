"""BD-CSPN: prototype rectification (Liu, Song, Qin, ECCV 2020).

One pass, no iteration. The query is moved by `ξ = mean(S) - mean(Q)` and labelled by cosine similarity to the support
means w_k; each class then averages its labelled and pseudo-labelled points again,

    w'_k = Σ_n a_n z_n / Σ_n a_n,     a_n = exp(ε cos(z_n, w_k)) over the points of class k,

and the moved query is labelled by `softmax_k( τ cos(z_n, w'_k) )`, τ = 10. The BD-CSPN of PADDLE's tables differs in
three ways, all available with `public_code`: weights are normalised over classes and not divided by their sum, so
prototypes shrink; the original query, not the moved one, is labelled by Euclidean distance; and features are raw,
because the result of their normalisation is discarded.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful.fewshot.methods.method import Method, Options, at_least
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.numerics.vectors import cosines, half_squared_distances
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.solvers.rectification import rectify
from handful.fewshot.task import TaskBatch

# τ in the soft labels; it sets their confidence and does not change which class comes first.
COSINE_SCALE = 10.0


@dataclass(frozen=True)
class BDCSPNOptions(Options):
    """Options of BD-CSPN."""

    # ε, how strongly points similar to their prototype outweigh the others: 10 in LaplacianShot's code for this step;
    # PADDLE's configurations use 50, and 30 for one backbone.
    sharpness: float = at_least(0, 10.0)
    public_code: bool = False  # weigh points and label the query as PADDLE's public code does


def solve(task: TaskBatch, options: BDCSPNOptions) -> Solution:
    """Rectify the prototypes, then compare the query with them."""
    frame = Frame(task)
    rectified = rectify(task, options.sharpness, public_code=options.public_code)
    centred = rectified.prototypes - frame.origin.unsqueeze(-2)
    if options.public_code:
        u = softmax(-half_squared_distances(frame.query, centred))
    else:
        u = softmax(COSINE_SCALE * cosines(rectified.query, rectified.prototypes))
    return frame.solution(u, find_prototypes=rectified.prototypes)


METHOD = Method(
    "bd_cspn",
    BDCSPNOptions,
    "cl2n",
    solve,
    "Liu, Song, Qin. Prototype Rectification for Few-Shot Learning. ECCV 2020.",
    support_arrays=4,
)
