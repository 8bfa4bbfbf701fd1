"""Calibrated PADDLE: PADDLE's mixture, its scale asked of the support and its prior of the query. Nothing to tune.

Three things decide how published PADDLE does on new features, and none of them is in its objective: the scale of the
features, how strongly few classes are preferred, and how far prototypes may follow the query. Here

1. **scale**: features are multiplied by c, with c² from left-out pairs of the support (`handful.calibration`);
2. **prior**: the proportions π have a symmetric Dirichlet prior, `π ~ Dir(α, …, α)`, integrated out by variational
   Bayes, and α is the value that makes the expected counts of the query most probable: small where few classes occur,
   large where all do. With `D_nk = ½c²‖z_n - w_k‖²` to the support means and `N_k = Σ_Q u_nk`,

       u_n = softmax_k( -D_nk + ψ(N_k + α) ),     α ← α Σ_k [ψ(N_k + α) - ψ(α)] / (K [ψ(|Q| + Kα) - ψ(Kα)]),

   from α = 1/K. If uniform proportions (α → ∞) have the higher evidence, they are taken instead;
3. **prototypes** move once, as PADDLE moves them, and the query is assigned again.

PADDLE's own `v_k = 1 + ln û_k` is the limit of `ψ(N_k + α)` for large counts and α → 0, but for constants. Dirichlet
prior and its estimation: Minka, *Estimating a Dirichlet distribution*, 2000. Frozen prototypes with free proportions:
Saerens, Latinne and Decaestecker 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from handful.calibration import squared_scale
from handful.frame import Frame
from handful.methods.method import Method, require
from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.fixed_point import fixed_point
from handful.numerics.geometry import masked
from handful.numerics.simplex import SoftLabels, softmax
from handful.shapes import Bool, Float
from handful.solution import Solution
from handful.task import TaskBatch

# The first iterations keep α = 1/K: counts of a query that is still spread over all classes would call for a large one.
FIRST_ITERATIONS = 5


@dataclass(frozen=True)
class CalibratedPaddleOptions:
    """Options of calibrated PADDLE: only how long it may take.

    Attributes
    ----------
    max_iter, tol : int, float
        A task stops when no class's expected count changes by more than `tol` queries, at the latest after `max_iter`.
    """

    max_iter: int = 100
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.max_iter > FIRST_ITERATIONS, f"max_iter must be above {FIRST_ITERATIONS}", self.max_iter)
        require(self.tol >= 0, "tol must be at least 0", self.tol)


@dataclass(frozen=True)
class Problem:
    """What stays the same while a task is solved."""

    scores: Float[Tensor, "task query class"]  # -D up to a constant per query
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]


@dataclass(frozen=True)
class State:
    """Posterior of the proportions: Dir(N + α)."""

    counts: Float[Tensor, "task class"]  # N
    concentration: Float[Tensor, "task"]  # α


@dataclass(frozen=True)
class Answer:
    """Soft labels, and the posterior that belongs to them."""

    u: SoftLabels
    state: State


def assign(problem: Problem, state: State) -> SoftLabels:
    """U: `u_n = softmax_k( -D_nk + ψ(N_k + α) - ψ(|Q| + Kα) )`."""
    n_classes, alpha = state.counts.shape[-1], state.concentration
    expected_log = torch.digamma(state.counts + alpha.unsqueeze(-1))
    expected_log = expected_log - torch.digamma(problem.n_query + n_classes * alpha).unsqueeze(-1)
    return softmax(problem.scores + expected_log.unsqueeze(-2))


def step(problem: Problem, state: State, *, learn: bool = True) -> tuple[State, Answer]:
    """U from the posterior of the proportions, then the posterior from U."""
    u = assign(problem, state)
    counts = masked(u.weights, problem.query_mask).sum(-2)
    alpha = concentration_step(counts, state.concentration) if learn else state.concentration
    state = State(counts, alpha)
    return state, Answer(u, state)


def evidence(problem: Problem, answer: Answer) -> Float[Tensor, "task"]:
    """Lower bound on `ln p(query | α)`: `Σ_n ln Σ_k exp(-D_nk + E ln π_k) - KL(Dir(N + α) ‖ Dir(α))`."""
    log_likelihood = assign(problem, answer.state).log_normaliser()
    if problem.query_mask is not None:
        log_likelihood = log_likelihood.where(problem.query_mask, 0)
    return log_likelihood.sum(-1) - dirichlet_divergence(answer.state.counts, answer.state.concentration)


def solve(task: TaskBatch, options: CalibratedPaddleOptions) -> Solution:
    """Scale, proportions, one move of the prototypes."""
    frame = Frame(task)
    scale = squared_scale(frame)
    space = frame.space("auto", max_iter=1)

    def scores(prototypes: Any) -> Float[Tensor, "task query class"]:
        return scale.reshape(-1, 1, 1) * space.scores(prototypes)

    problem = Problem(scores(space.support.mean()), frame.query_mask, frame.n_query)
    uniform = softmax(problem.scores)
    state = State(masked(uniform.weights, frame.query_mask).sum(-2), torch.full_like(frame.n_query, 1 / task.n_classes))
    for _ in range(FIRST_ITERATIONS - 1):
        state, _ = step(problem, state, learn=False)
    outcome = fixed_point(
        step,
        lambda _, new, old: (new.counts - old.counts).abs().amax(-1),
        problem,
        state,
        n_tasks=task.n_tasks,
        device=task.query.device,
        max_iter=options.max_iter - FIRST_ITERATIONS + 1,
        tol=options.tol,
    )
    log_share = torch.log(torch.tensor(1 / task.n_classes, dtype=scale.dtype, device=scale.device))
    of_uniform = uniform.log_normaliser() + log_share
    if frame.query_mask is not None:
        of_uniform = of_uniform.where(frame.query_mask, 0)
    spread_out = (of_uniform.sum(-1) > evidence(problem, outcome.answer)).reshape(-1, 1, 1)

    weights = torch.where(spread_out, uniform.weights, outcome.answer.u.weights)
    moved = (space.support + space.moments(weights)).mean()
    problem = Problem(scores(moved), frame.query_mask, frame.n_query)
    sparse, even = assign(problem, outcome.answer.state), softmax(problem.scores)
    u = SoftLabels(
        *(torch.where(spread_out, getattr(even, name), getattr(sparse, name)) for name in SoftLabels.__annotations__)
    )
    return frame.solution(
        u,
        n_iter=outcome.n_iter + FIRST_ITERATIONS - 1,
        converged=outcome.converged,
        find_prototypes=partial(frame.prototypes, weights),
    )


METHOD = Method(
    name="calibrated_paddle",
    options=CalibratedPaddleOptions,
    transform="l2",
    solve=solve,
    citation="handful; after Martin et al., NeurIPS 2022, Saerens et al. 2002 and Minka 2000.",
)
