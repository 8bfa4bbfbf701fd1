"""UNEM: a few iterations of PADDLE whose constants are learned (Zhou et al., CVPR 2025), the Gaussian model.

Each iteration is a layer of a network. From V = 1 and the support means, a layer computes

    U: u_n = softmax_k( [-½s²‖z_n - w_k‖² + γ v_k] / τ )          V: v_k = 1 + ln(û_k + ε)
    W: w_k = (Σ_S y_nk z_n + Σ_Q u_nk z_n) / (c_k + Σ_Q u_nk)

with û_k the share of class k in the query. These are steps of block descent on

    Σ_{n∈S∪Q} Σ_k u_nk ½s²‖z_n - w_k‖² + γ|Q| H(û) + τ Σ_Q u_nk ln u_nk,

PADDLE's objective at λ = γ|Q| with a barrier of weight τ > 1: labels are softer than those of EM while the partition
counts more. V is constant at first, so the first layer ignores γ.

The authors learn s, γ and τ from validation tasks, one set for each data set, backbone and number of shots. The
defaults of γ and τ are those they stored for mini-ImageNet and ResNet-18 at 5 shots, in the version that shares them
between layers. Their s belongs to the features of that network. Here features come at the scale that fits γ = 1, and
`s² = γ` keeps the balance of distances and shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.numerics.geometry import Space, masked
from handful.fewshot.numerics.simplex import SoftLabels, entropy, softmax
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import Frame, data_fit
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class UnemOptions(Options):
    """Options of UNEM; `partition_weight` and `temperature` were learned by the authors."""

    scale: float | None = above(0, None)  # s, a factor of the features; None means √γ, or 1 if that is less
    partition_weight: float = at_least(0, 3.17)  # γ = λ/|Q|
    temperature: float = above(0, 1.26)  # τ
    proportion_floor: float = above(0, 1e-6)  # ε
    max_iter: int = at_least(1, 10)  # layers


@dataclass(frozen=True)
class Problem:
    """What stays the same while a task is solved."""

    space: Space
    n_query: Float[Tensor, "task"]


@dataclass(frozen=True)
class State:
    """What one layer passes to the next."""

    prototypes: Any  # in the coordinates of the space
    dual: Float[Tensor, "#task class"]


def layer(problem: Problem, state: State, options: UnemOptions) -> tuple[State, SoftLabels]:
    """Update U, then V and W from the new U."""
    scores = squared_scale(options) * problem.space.scores(state.prototypes)
    u = softmax((scores + options.partition_weight * state.dual.unsqueeze(-2)) / options.temperature)
    query = problem.space.moments(u.weights)
    dual = 1 + torch.log(query.mass / problem.n_query.unsqueeze(-1) + options.proportion_floor)
    return State((problem.space.support + query).mean(), dual), u


def squared_scale(options: UnemOptions) -> float:
    """s²."""
    return max(options.partition_weight, 1.0) if options.scale is None else options.scale**2


def description_length(
    frame: Frame, weights: Float[Tensor, "task query class"], options: UnemOptions
) -> DescriptionLength:
    """`s² Σ u D + τ Σ u ln u`, and `γ|Q| H(û)`."""
    fit = data_fit(frame, weights, frame.prototypes(weights))
    of_rows = entropy(masked(weights, frame.query_mask)).sum(-1)
    return DescriptionLength(
        squared_scale(options) * fit - options.temperature * of_rows,
        options.partition_weight * frame.n_query * entropy(frame.proportions(weights)),
    )


def solve(task: TaskBatch, options: UnemOptions) -> Solution:
    """Run all layers."""
    frame = Frame(task)
    problem = Problem(frame.space("auto", options.max_iter), frame.n_query)
    state = State(problem.space.support.mean(), torch.ones_like(problem.space.support.mass))
    for _ in range(options.max_iter):
        state, u = layer(problem, state, options)
    measure = partial(description_length, options=options)
    return frame.solution(u, n_iter=options.max_iter, find_prototypes=Frame.prototypes, measure=measure)


METHOD = Method(
    "unem",
    UnemOptions,
    "found_scale",
    solve,
    "Zhou et al. UNEM: UNrolled Generalized EM for Transductive Few-Shot Learning. CVPR 2025.",
)
