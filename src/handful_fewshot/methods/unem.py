"""UNEM: a few iterations of PADDLE whose constants are learned (Zhou et al., CVPR 2025), the Gaussian model.

Each iteration is a layer of a network. From V = 1 and the support means, a layer computes

    U: u_n = softmax_k( [-½s²‖z_n - w_k‖² + γ v_k] / τ )          V: v_k = 1 + ln(û_k + ε)
    W: w_k = (Σ_S y_nk z_n + Σ_Q u_nk z_n) / (c_k + Σ_Q u_nk)

with û_k the share of class k in the query. These are steps of block descent on

    Σ_{n∈S∪Q} Σ_k u_nk ½s²‖z_n - w_k‖² + γ|Q| H(û) + τ Σ_Q u_nk ln u_nk,

PADDLE's objective at λ = γ|Q| with a barrier of weight τ > 1: labels are softer than those of EM while the partition
counts more. V is constant at first, so the first layer ignores γ.

The authors learn s, γ and τ from validation tasks, one set for each data set, encoder and number of shots. Nothing is
learned here: the defaults of γ and τ are one stored pair, `STORED_PAIR`, that of mini-ImageNet and ResNet-18 at 5
shots, in the version that shares them between layers. Their s belongs to the features of that network. Here features
come at the scale that fits γ = 1, and `s² = γ` keeps the balance of distances and shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.vectors import softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


class StoredPair(NamedTuple):
    """Constants that the authors learned and stored, after the softplus and the 1 that their code adds."""

    partition_weight: float  # γ
    temperature: float  # τ


# Of mini-ImageNet, ResNet-18, 5 shots, shared by all layers: softplus(3.128) and 1 + softplus(-1.218).
STORED_PAIR = StoredPair(3.17, 1.26)


@dataclass(frozen=True)
class UnemOptions(Options):
    """Options of UNEM; `partition_weight` and `temperature` are one stored pair that its authors learned.

    **Assumes** what `paddle` assumes: few of the K classes occur. **Use it** to compare with the literature, or
    where ten iterations must do. **Do not use it** without `found_scale` or a scale of your own. Nothing is trained
    here; the authors' version with constants of its own in every layer, and the one with Dirichlet densities, are
    not implemented. **Cost.** Ten iterations of `paddle`.
    """

    scale: float | None = above(0, None)  # s, a factor of the features; None means √γ, or 1 if that is less
    partition_weight: float = at_least(0, STORED_PAIR.partition_weight)  # γ = λ/|Q|, of the stored pair
    temperature: float = above(0, STORED_PAIR.temperature)  # τ, of the stored pair
    proportion_floor: float = above(0, 1e-6)  # ε
    max_iter: int = at_least(1, 10)  # layers


def solve(task: TaskBatch, options: UnemOptions) -> Solution:
    """Run all layers: each updates U, then V and W from the new U."""
    frame = Frame(task)
    gamma = options.partition_weight
    space = frame.space()
    squared_scale = max(gamma, 1.0) if options.scale is None else options.scale**2
    prototypes = space.support.mean()
    dual = torch.ones_like(space.support.mass)
    for _ in range(options.max_iter):
        scores = squared_scale * space.scores(prototypes)
        u = softmax((scores + gamma * dual.unsqueeze(-2)) / options.temperature)
        query = space.moments(u.weights)
        dual = 1 + torch.log(query.mass / frame.n_query.unsqueeze(-1) + options.proportion_floor)
        prototypes = (space.support + query).mean()
    return frame.solution(u, n_iter=options.max_iter, find_prototypes=Frame.prototypes)


METHOD = Method(
    "unem",
    UnemOptions,
    "found_scale",
    solve,
    "Zhou et al. UNEM: UNrolled Generalized EM for Transductive Few-Shot Learning. CVPR 2025.",
)
