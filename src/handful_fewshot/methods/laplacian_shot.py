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

from handful.shapes import Bool, Float
from handful_fewshot.frame import Frame, iterate
from handful_fewshot.methods.method import Method, Options, at_least
from handful_fewshot.numerics.geometry import masked
from handful_fewshot.numerics.vectors import SoftLabels, entropy, half_squared_distances, neighbour_affinities, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class LaplacianShotOptions(Options):
    """Options of LaplacianShot; the defaults are those behind PADDLE's tables, and its authors tune λ.

    **Assumes** that nearest neighbours in the query share their class; nothing about proportions. **Use it** when
    classes are clusters of any shape and the support means are good. It cannot say that a class is absent.
    **Cost.** |Q|Kd + |Q|²d once, then |Q|²K per iteration.
    """

    smoothness: float = at_least(0, 0.7)  # λ; the authors tune it for each dataset and number of shots
    n_neighbours: int = at_least(1, 2)  # of a point, itself not counted
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
    return LaplacianState(u.weights, energy(problem, u.weights, smoothness)), u


def energy(
    problem: LaplacianProblem, labels: Float[Tensor, "task query class"], smoothness: float
) -> Float[Tensor, "task"]:
    """`E(Y)`."""
    y = masked(labels, problem.query_mask)
    data = (y * problem.distances).sum((-2, -1)) - entropy(y).sum(-1)
    return data - smoothness * (y * (problem.affinities @ y)).sum((-2, -1))


def change(problem: LaplacianProblem, new: LaplacianState, old: LaplacianState) -> Float[Tensor, "task"]:
    """`|E - E'| / |E'|`; infinite at the first step, which has no previous energy."""
    move = (new.energy - old.energy).abs() / old.energy.abs().clamp(min=torch.finfo(old.energy.dtype).tiny)
    return move.where(old.energy.isfinite(), torch.inf)


def solve(task: TaskBatch, options: LaplacianShotOptions) -> Solution:
    """Compute distances and graph once, then iterate `step` until the energy of each task converges."""
    frame = Frame(task)
    prototypes = frame.support.mean()
    problem = LaplacianProblem(
        2 * half_squared_distances(frame.query, prototypes),
        neighbour_affinities(frame.query, frame.query_mask, options.n_neighbours),
        frame.query_mask,
    )
    start = LaplacianState(softmax(-problem.distances).weights, torch.full_like(frame.n_query, torch.inf))
    advance = partial(step, smoothness=options.smoothness)
    return iterate(frame, advance, change, problem, start, options, find_prototypes=frame.placed(prototypes))


METHOD = Method(
    "laplacian_shot",
    LaplacianShotOptions,
    "cl2n",
    solve,
    "Ziko, Dolz, Granger, Ben Ayed. Laplacian Regularized Few-Shot Learning. ICML 2020.",
    support_arrays=4,
)
