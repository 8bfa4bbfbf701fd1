"""PADDLE: primal-dual minimum description length (Martin et al., NeurIPS 2022); without its partition, soft K-means.

Minimises, over soft assignments U of the query and prototypes W, the description length of data and partition

    Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖²  +  λ H(û),     û_k = (1/|Q|) Σ_{n∈Q} u_nk,

where support rows of U are clamped to their labels. The concave entropy is replaced by its conjugate, with a dual
vector V, and an entropic barrier keeps U inside the simplex:

    F(U, V, W) = Σ u_nk ½‖z_n - w_k‖² + Σ_Q u_nk ln u_nk + λ (Σ_k e^{v_k - 1} - ⟨v, û⟩).

Each of the three updates below minimises F exactly in one block, so F never increases. The paper's listing computes W
from the previous U; its proof, and this file, use the new one. At λ = |Q| this is EM for a mixture of unit Gaussians.

In the code U is held as logarithms, V is `dual`, W `prototypes`, û `proportions` and λ/|Q| `tilt`: the adjoint of a
mean divides by |Q|. Soft K-means, the paper's first ablation, is λ = 0: V has no effect.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame, data_length, iterate
from handful_fewshot.methods.method import Method, Options, at_least
from handful_fewshot.numerics.geometry import Moments, Space
from handful_fewshot.numerics.vectors import SoftLabels, entropy, softmax
from handful_fewshot.solution import DescriptionLength, Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class SoftKMeansOptions(Options):
    """Options of soft K-means, which is `paddle` at `complexity_weight=0`.

    **Assumes** nothing about the proportions: every class is as likely as any other at every iteration. **Use it**
    to see what the partition term adds. Its first iteration is the nearest prototype.
    """

    max_iter: int = at_least(1, 100)
    tol: float = at_least(0, 1e-6)  # a task stops when `mean_k ‖w_k - w_k'‖ ≤ tol`; at zero after `max_iter` iterations
    record: bool = False  # keep objective, criterion and time of every iteration in `Solution.trace`


@dataclass(frozen=True)
class PaddleOptions(SoftKMeansOptions):
    """Options of PADDLE; the defaults are the paper's."""

    complexity_weight: float | None = at_least(0, None)  # λ; None means |Q| of each task
    proportion_floor: float = at_least(0, 0.0)  # ε; at zero, a class that has lost all its mass never gets it back


@dataclass(frozen=True)
class Problem:
    """What stays the same while a task is solved."""

    space: Space
    n_query: Float[Tensor, "task"]
    tilt: Float[Tensor, "task"]


@dataclass(frozen=True)
class PaddleState:
    """What one iteration passes to the next."""

    prototypes: Float[Tensor, "#task class dim"]  # in the coordinates of the space
    dual: Float[Tensor, "#task class"]


# ---------------------------------------------------------------------------------------------------------------------
# The algorithm: three updates, in the order of the proof.


def assign(
    scores: Float[Tensor, "task query class"], dual: Float[Tensor, "#task class"], tilt: Float[Tensor, "task"]
) -> SoftLabels:
    """U: `u_n = softmax_k( -½‖z_n - w_k‖² + (λ/|Q|) v_k )`; scores may lack a constant per query."""
    return softmax(scores + tilted(dual, tilt).unsqueeze(-2))


def update_dual(
    mass: Float[Tensor, "task class"], n_query: Float[Tensor, "task"], floor: float
) -> Float[Tensor, "task class"]:
    """V: `v_k = 1 + ln(û_k + ε)`; at ε = 0 a class without mass gets -inf, and no query is assigned to it again."""
    return 1 + torch.log(mass / n_query.unsqueeze(-1) + floor)


def update_prototypes(support: Moments, query: Moments) -> Float[Tensor, "task class dim"]:
    """W: `w_k = (Σ_S y_nk z_n + Σ_Q u_nk z_n) / (c_k + Σ_Q u_nk)`."""
    return (support + query).mean()


def step(problem: Problem, state: PaddleState, floor: float) -> tuple[PaddleState, SoftLabels]:
    """Update U, then V, then W from the new U."""
    u = assign(problem.space.scores(state.prototypes), state.dual, problem.tilt)
    query = problem.space.moments(u.weights)
    dual = update_dual(query.mass, problem.n_query, floor)
    prototypes = update_prototypes(problem.space.support, query)
    return PaddleState(prototypes, dual), u


def init(problem: Problem) -> PaddleState:
    """W = support means, V = 1 - ln K: equal shares. The paper's V = 0 differs by a constant that does not affect U."""
    support = problem.space.support
    return PaddleState(support.mean(), torch.full_like(support.mass, 1 - math.log(support.mass.shape[-1])))


# ---------------------------------------------------------------------------------------------------------------------


def tilted(dual: Float[Tensor, "#task class"], tilt: Float[Tensor, "task"]) -> Float[Tensor, "task class"]:
    """`(λ/|Q|) v_k`, and zero at λ = 0 even where v_k is -inf."""
    return (tilt.unsqueeze(-1) * dual).where(tilt.unsqueeze(-1) > 0, 0)


def description_length(
    frame: Frame, weights: Float[Tensor, "task query class"], options: PaddleOptions
) -> DescriptionLength:
    """F at U and the V and W that belong to it: `Σ u D + Σ u ln u`, and `-λ Σ_k (û_k + ε) ln(û_k + ε)`."""
    partition = entropy(frame.proportions(weights) + options.proportion_floor)
    return DescriptionLength(
        data_length(frame, weights), frame.complexity_weight(options.complexity_weight) * partition
    )


def mean_move(problem: Problem, new: PaddleState, old: PaddleState) -> Float[Tensor, "task"]:
    """`mean_k ‖w_k - w_k'‖`; a class without mass does not move."""
    moves = problem.space.moves(new.prototypes, old.prototypes)
    return moves.where(new.dual > -torch.inf, 0).mean(-1)


def solve(task: TaskBatch, options: PaddleOptions) -> Solution:
    """Sum the support once, then iterate `step` until each task converges."""
    frame = Frame(task)
    measure = partial(description_length, options=options)
    space = frame.space()
    problem = Problem(space, frame.n_query, frame.complexity_weight(options.complexity_weight) / frame.n_query)
    advance = partial(step, floor=options.proportion_floor)
    return iterate(frame, advance, mean_move, problem, init(problem), options, measure=measure)


def solve_soft_kmeans(task: TaskBatch, options: SoftKMeansOptions) -> Solution:
    """Solve PADDLE at λ = 0."""
    return solve(task, PaddleOptions(**asdict(options), complexity_weight=0.0))


PADDLE = Method(
    "paddle",
    PaddleOptions,
    "range_scale_public_code",
    solve,
    "Martin, Boudiaf, Chouzenoux, Pesquet, Ben Ayed. Towards Practical Few-Shot Query Sets: "
    "Transductive Minimum Description Length Inference. NeurIPS 2022.",
)
SOFT_KMEANS = Method(
    "soft_kmeans",
    SoftKMeansOptions,
    "range_scale_public_code",
    solve_soft_kmeans,
    "Martin et al., NeurIPS 2022, ablation without the partition term.",
)
