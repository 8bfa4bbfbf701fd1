"""PADDLE's objective by projected gradient: the second ablation of Martin et al., NeurIPS 2022.

Minimises `F(U, W) = Σ_{n∈S∪Q} Σ_k u_nk ½‖z_n - w_k‖² + λ H(û)`, without dual and barrier, by Adam on U and W together;
after each step every row of U is projected onto the simplex. With `C_k = c_k + Σ_Q u_nk`,

    ∂F/∂u_nk = ½‖z_n - w_k‖² - (λ/|Q|) (ln(û_k + ε) + û_k / (û_k + ε)),
    ∂F/∂w_k  = C_k w_k - Σ_S y_nk z_n - Σ_Q u_nk z_n.

ε keeps the gradient finite for a class that has lost all its mass; unlike a softmax, the projection makes this happen.
The public code differs in four ways (entropy with the opposite sign, U frozen after one step, a criterion that is
always zero, no starting point); this is the method as the paper describes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.shapes import Bool, Float
from handful_fewshot.frame import Frame, data_fit
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.adam import AdamState, adam_step
from handful_fewshot.numerics.fixed_point import fixed_point
from handful_fewshot.numerics.geometry import Moments, masked
from handful_fewshot.numerics.vectors import entropy, half_squared_distances, project_to_simplex, softmax
from handful_fewshot.solution import DescriptionLength, Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class PaddleGDOptions(Options):
    """Options of the projected gradient.

    **Use it** to compare optimisers, not to classify. It follows the trajectories of the repaired public code to
    2e-4 over 1,000 iterations. The objective falls at first, but need not fall later: Adam divides every coordinate
    of the gradient by its own size, and what remains after projecting a row may not be a descent direction.
    **Cost.** 4|Q|Kd per iteration, and a projection of |Q| rows, about a thousand iterations.
    """

    complexity_weight: float | None = at_least(0, None)  # λ; None means |Q| of each task
    proportion_floor: float = above(0, 1e-12)  # ε in the gradient of the entropy
    learning_rate: float = above(0, 1e-3)  # of Adam, for U and for W
    max_iter: int = at_least(1, 1000)
    tol: float = at_least(0, 1e-6)  # a task stops when `mean_k ‖w_k - w_k'‖ ≤ tol`; at zero after `max_iter` iterations
    record: bool = False  # keep objective, criterion and time of every iteration in `Solution.trace`


@dataclass(frozen=True)
class GradientProblem:
    """What stays the same while a task is solved; points are centred, so that products keep their digits."""

    query: Float[Tensor, "task query dim"]
    half_norms: Float[Tensor, "task query 1"]  # ½‖z_n‖²
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]
    support: Moments
    tilt: Float[Tensor, "task"]  # λ/|Q|


def problem_of(frame: Frame, tilt: Float[Tensor, "task"]) -> GradientProblem:
    """Build the problem of a frame's tasks."""
    half_norms = 0.5 * frame.query.square().sum(-1, keepdim=True)
    return GradientProblem(frame.query, half_norms, frame.query_mask, frame.n_query, frame.support, tilt)


@dataclass(frozen=True)
class GradientState:
    """The current U, whose padded rows are zero, the current W, and the state of Adam for both."""

    assignments: Float[Tensor, "task query class"]
    prototypes: Float[Tensor, "task class dim"]
    of_assignments: AdamState
    of_prototypes: AdamState


def gradients(
    problem: GradientProblem,
    assignments: Float[Tensor, "task query class"],
    prototypes: Float[Tensor, "task class dim"],
    floor: float,
) -> tuple[Float[Tensor, "task query class"], Float[Tensor, "task class dim"]]:
    """∂F/∂U and ∂F/∂W, as above."""
    mass = assignments.sum(-2)
    proportions = mass / problem.n_query.unsqueeze(-1)
    slope = torch.log(proportions + floor) + proportions / (proportions + floor)
    half_norms = torch.linalg.vecdot(prototypes, prototypes).mul_(0.5)
    of_assignments = torch.baddbmm(problem.half_norms, problem.query, prototypes.mT, alpha=-1)
    of_assignments += (half_norms - problem.tilt.unsqueeze(-1) * slope).unsqueeze(-2)
    sums = torch.baddbmm(problem.support.sums.expand_as(prototypes), assignments.mT, problem.query)
    return of_assignments, torch.addcmul(-sums, (problem.support.mass + mass).unsqueeze(-1), prototypes)


def step(problem: GradientProblem, at: GradientState, options: PaddleGDOptions) -> tuple[GradientState, GradientState]:
    """One Adam step on U and W, then the projection of U onto the simplex."""
    of_u, of_w = gradients(problem, at.assignments, at.prototypes, options.proportion_floor)
    u, u_memory = adam_step(at.assignments, of_u, at.of_assignments, options.learning_rate)
    w, w_memory = adam_step(at.prototypes, of_w, at.of_prototypes, options.learning_rate)
    new = GradientState(masked(project_to_simplex(u), problem.query_mask), w, u_memory, w_memory)
    return new, new


def init(problem: GradientProblem) -> GradientState:
    """U = softmax of the negative distances, W = support means."""
    w = problem.support.mean().expand(len(problem.query), -1, -1)
    u = masked(softmax(-half_squared_distances(problem.query, w)).weights, problem.query_mask)
    return GradientState(u, w, AdamState.zeros_like(u), AdamState.zeros_like(w))


def description_length(
    prototypes: Float[Tensor, "task class dim"], options: PaddleGDOptions, frame: Frame, weights: Tensor
) -> DescriptionLength:
    """`Σ u D` and `λ H(û)`, without a barrier; prototypes relative to the frame's origin."""
    fit = data_fit(frame, weights, prototypes + frame.origin.unsqueeze(-2))
    partition = entropy(weights.sum(-2) / frame.n_query.unsqueeze(-1))
    return DescriptionLength(fit, frame.complexity_weight(options.complexity_weight) * partition)


def solve(task: TaskBatch, options: PaddleGDOptions) -> Solution:
    """Solve blocks of tasks that fit the cache."""
    # At every step the points are read twice, and U, W, their gradients and Adam's means once or twice. A trace has the
    # time of the whole batch, so a batch that is recorded is not cut.
    numbers = task.query_slots * task.dim + 5 * task.n_classes * (task.query_slots + task.dim)
    return Solution.join(
        [solve_block(block, options) for block in ([task] if options.record else task.blocks(numbers))]
    )


def solve_block(task: TaskBatch, options: PaddleGDOptions) -> Solution:
    """Sum the support once, then iterate `step` until each task converges."""
    frame = Frame(task)
    problem = problem_of(frame, frame.complexity_weight(options.complexity_weight) / frame.n_query)

    def objective(at: GradientState, rows: Tensor) -> Tensor:
        length = description_length(at.prototypes, options, Frame(task.select(rows)), at.assignments)
        return length.data + length.partition

    outcome = fixed_point(
        partial(step, options=options),
        lambda _, new, old: (new.prototypes - old.prototypes).norm(dim=-1).mean(-1),
        problem,
        init(problem),
        max_iter=options.max_iter,
        tol=options.tol,
        observe=objective if options.record else None,
    )
    return frame.solution(
        outcome.answer.assignments,
        n_iter=outcome.n_iter,
        converged=outcome.converged,
        trace=outcome.trace,
        find_prototypes=frame.placed(outcome.answer.prototypes),
        measure=partial(description_length, outcome.answer.prototypes, options),
    )


METHOD = Method(
    "paddle_gd",
    PaddleGDOptions,
    "range_scale_public_code",
    solve,
    "Martin et al., NeurIPS 2022, ablation by projected gradient descent.",
)
