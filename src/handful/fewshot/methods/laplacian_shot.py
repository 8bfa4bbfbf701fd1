"""LaplacianShot: neighbours share their labels (Ziko, Dolz, Granger, Ben Ayed, ICML 2020).

Prototypes stay at the support means. Minimises, over soft labels Y of the query,

    E(Y) = Σ_q Σ_k y_qk a_qk - λ Σ_{q,p} g_qp ⟨y_q, y_p⟩ + Σ_q Σ_k y_qk ln y_qk,     a_qk = ‖z_q - w_k‖²,

with `g_qp = 1` when p is among the nearest neighbours of q in the query. From `Y = softmax(-a)`, iterate

    y_q = softmax_k( -a_q + λ Σ_p g_qp y_p )

until the relative change of E is at most `tol`. The graph is directed and not made symmetric, as in the authors' code.
That code counts a point among its own neighbours: its `knn = 3` is `n_neighbours = 2` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, at_least
from handful.fewshot.numerics.distances import half_squared_distances, neighbour_affinities
from handful.fewshot.numerics.geometry import masked
from handful.fewshot.numerics.simplex import SoftLabels, entropy, softmax
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import Frame, iterate
from handful.fewshot.solvers.rectification import rectify
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float

# ε of the rectification, a constant in the authors' code.
RECTIFICATION_SHARPNESS = 10.0


@dataclass(frozen=True)
class LaplacianShotOptions(Options):
    """Options of LaplacianShot; the defaults are those behind PADDLE's tables."""

    smoothness: float = at_least(0, 0.7)  # λ; the authors tune it for each dataset and number of shots
    n_neighbours: int = at_least(1, 2)  # of a point, itself not counted
    rectify_prototypes: bool = False  # first move the support means towards the query, as in the authors' run script
    max_iter: int = at_least(1, 20)
    tol: float = at_least(0, 1e-6)  # a task stops when `|E - E'| ≤ tol |E'|`; at zero after `max_iter` iterations


@dataclass(frozen=True)
class LaplacianProblem:
    """What stays the same while a task is solved."""

    distances: Float[Tensor, "task query class"]  # a_qk
    affinities: Float[Tensor, "task query query"]  # g_qp
    query_mask: Bool[Tensor, "task query"] | None


@dataclass(frozen=True)
class LaplacianState:
    """Soft labels and their energy."""

    labels: Float[Tensor, "task query class"]
    energy: Float[Tensor, "task"]


def step(problem: LaplacianProblem, state: LaplacianState, smoothness: float) -> tuple[LaplacianState, SoftLabels]:
    """Update Y from the labels of the neighbours."""
    u = softmax(smoothness * (problem.affinities @ state.labels) - problem.distances)
    length = description_length(problem, u.weights, smoothness)
    return LaplacianState(u.weights, length.data + length.partition), u


def change(problem: LaplacianProblem, new: LaplacianState, old: LaplacianState) -> Float[Tensor, "task"]:
    """`|E - E'| / |E'|`; infinite at the first step, which has no previous energy."""
    move = (new.energy - old.energy).abs() / old.energy.abs().clamp(min=torch.finfo(old.energy.dtype).tiny)
    return move.where(old.energy.isfinite(), torch.inf)


def description_length(
    problem: LaplacianProblem, labels: Float[Tensor, "task query class"], smoothness: float
) -> DescriptionLength:
    """`Σ y a + Σ y ln y` for the data, `-λ Σ g ⟨y, y⟩` for the partition."""
    y = masked(labels, problem.query_mask)
    data = (y * problem.distances).sum((-2, -1)) - entropy(y).sum(-1)
    return DescriptionLength(data, -smoothness * (y * (problem.affinities @ y)).sum((-2, -1)))


def prototypes_of(frame: Frame, options: LaplacianShotOptions) -> Float[Tensor, "#task class dim"]:
    """Support means, rectified by the query if asked for, relative to the frame's origin."""
    if not options.rectify_prototypes:
        return frame.support.mean()
    return rectify(frame.task, RECTIFICATION_SHARPNESS, public_code=True).prototypes - frame.origin.unsqueeze(-2)


def pose(frame: Frame, options: LaplacianShotOptions) -> LaplacianProblem:
    """Compute the distances and find the neighbours."""
    return LaplacianProblem(
        2 * half_squared_distances(frame.query, prototypes_of(frame, options)),
        neighbour_affinities(frame.query, frame.query_mask, options.n_neighbours),
        frame.query_mask,
    )


def solve(task: TaskBatch, options: LaplacianShotOptions) -> Solution:
    """Compute distances and graph once, then iterate `step` until the energy of each task converges."""
    frame = Frame(task)
    problem = pose(frame, options)
    start = LaplacianState(softmax(-problem.distances).weights, torch.full_like(frame.n_query, torch.inf))
    return iterate(
        frame,
        partial(step, smoothness=options.smoothness),
        change,
        problem,
        start,
        options,
        measure=partial(_measured, options),
        find_prototypes=partial(_prototypes, options),
    )


def _prototypes(options: LaplacianShotOptions, frame: Frame, weights: Tensor) -> Float[Tensor, "task class dim"]:
    return frame.placed(prototypes_of(frame, options))


def _measured(options: LaplacianShotOptions, frame: Frame, weights: Tensor) -> DescriptionLength:
    return description_length(pose(frame, options), weights, options.smoothness)


METHOD = Method(
    "laplacian_shot",
    LaplacianShotOptions,
    "cl2n",
    solve,
    "Ziko, Dolz, Granger, Ben Ayed. Laplacian Regularized Few-Shot Learning. ICML 2020.",
    support_arrays=4,
)
