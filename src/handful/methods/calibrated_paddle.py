"""Calibrated PADDLE: PADDLE's mixture, its scale asked of the support and its prior of the query. Nothing to tune.

Three things decide how published PADDLE does on new features, and none of them is in its objective: the scale of the
features, how strongly few classes are preferred, and how far prototypes may follow the query. Here

1. **scale**: features are multiplied by c, with c² from left-out pairs of the support (`handful.calibration`);
2. **prior**: the proportions π have a symmetric Dirichlet prior, `π ~ Dir(α, …, α)`, integrated out by variational
   Bayes, and α is the value that makes the expected counts of the query most probable: small where few classes occur,
   large where all do. With `D_nk = ½c²‖z_n - w_k‖²` to the support means and `N_k = Σ_Q u_nk`,

       u_n = softmax_k( -D_nk + ψ(N_k + α) ),     α ← α Σ_k [ψ(N_k + α) - ψ(α)] / (K [ψ(|Q| + Kα) - ψ(Kα)]),

   from α = 1/K. If uniform proportions (α → ∞) have the higher evidence, they are taken instead;
3. **two passes**: a sharp scale keeps apart classes that are easily confused, but lets strays of a large class go to
   classes of their own; a soft one does the opposite. The more classes occur, the more there is to confuse. So the
   first pass is sharp, 1.6 c², and the second has `√(K̂/12.5) c²`, at most 1.6 c² and at least 0.4 c², where
   `K̂ = |Q|² / Σ_k N_k²` is the number of classes the first pass found, each weighed by its size;
4. **prototypes** move once, as PADDLE moves them, and the query is assigned again.

PADDLE's own `v_k = 1 + ln û_k` is the limit of `ψ(N_k + α)` for large counts and α → 0, but for constants. Dirichlet
prior and its estimation: Minka, *Estimating a Dirichlet distribution*, 2000. Frozen prototypes with free proportions:
Saerens, Latinne and Decaestecker 2002. The numbers of step 3 were chosen on three banks (docs/methods).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.calibration import squared_scale
from handful.frame import Frame
from handful.methods.method import Method, require
from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.fixed_point import Outcome, fixed_point
from handful.numerics.geometry import masked
from handful.numerics.simplex import SoftLabels, softmax
from handful.shapes import Bool, Float
from handful.solution import Solution
from handful.task import TaskBatch

# The first iterations keep α = 1/K: counts of a query that is still spread over all classes would call for a large one.
FIRST_ITERATIONS = 5
# Step 3: factors on c²; with so many classes present, c² is used as the regression gives it.
SHARPEST, SOFTEST = 1.6, 0.4
CLASSES_AT_SCALE = 12.5


@dataclass(frozen=True)
class CalibratedPaddleOptions:
    """Options of calibrated PADDLE: only how long it may take.

    Attributes
    ----------
    max_iter, tol : int, float
        A pass ends when no class's expected count changes by more than `tol` queries, at the latest after `max_iter`
        iterations.
    """

    max_iter: int = 1000
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.max_iter >= 1, "max_iter must be at least 1", self.max_iter)
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


def expected_log(state: State, n_query: Float[Tensor, "task"]) -> Float[Tensor, "task 1 class"]:
    """`E ln π_k = ψ(N_k + α) - ψ(|Q| + Kα)`."""
    alpha, n_classes = state.concentration, state.counts.shape[-1]
    total = torch.digamma(n_query + n_classes * alpha)
    return (torch.digamma(state.counts + alpha.unsqueeze(-1)) - total.unsqueeze(-1)).unsqueeze(-2)


def assign(problem: Problem, state: State) -> SoftLabels:
    """U: `u_n = softmax_k( -D_nk + E ln π_k )`."""
    return softmax(problem.scores + expected_log(state, problem.n_query))


def step(problem: Problem, state: State, *, learn: bool = True) -> tuple[State, Answer]:
    """U from the posterior of the proportions, then the posterior from U."""
    u = assign(problem, state)
    counts = masked(u.weights, problem.query_mask).sum(-2)
    alpha = concentration_step(counts, state.concentration) if learn else state.concentration
    state = State(counts, alpha)
    return state, Answer(u, state)


def evidence(problem: Problem, answer: Answer) -> Float[Tensor, "task"]:
    """Lower bound on `ln p(query | α)`: `Σ_n ln Σ_k exp(-D_nk + E ln π_k) - KL(Dir(N + α) ‖ Dir(α))`."""
    log_likelihood = _over_query(assign(problem, answer.state).log_normaliser(), problem.query_mask)
    return log_likelihood - dirichlet_divergence(answer.state.counts, answer.state.concentration)


def uniform_evidence(problem: Problem) -> Float[Tensor, "task"]:
    """`Σ_n ln (1/K) Σ_k exp(-D_nk)`: the evidence of proportions that are known to be equal."""
    log_likelihood = softmax(problem.scores).log_normaliser() - math.log(problem.scores.shape[-1])
    return _over_query(log_likelihood, problem.query_mask)


def classes_found(state: State, n_query: Float[Tensor, "task"]) -> Float[Tensor, "task"]:
    """`K̂ = |Q|² / Σ_k N_k²`: as many classes of equal size would give two queries the same chance to share one."""
    return n_query.square() / state.counts.square().sum(-1)


def begin(problem: Problem) -> State:
    """Count for a few iterations from uniform proportions, at α = 1/K."""
    counts = masked(softmax(problem.scores).weights, problem.query_mask).sum(-2)
    state = State(counts, torch.full_like(problem.n_query, 1 / counts.shape[-1]))
    for _ in range(FIRST_ITERATIONS - 1):
        state, _ = step(problem, state, learn=False)
    return state


def settle(problem: Problem, state: State, options: CalibratedPaddleOptions) -> Outcome[Answer]:
    """Iterate `step` until no expected count changes."""
    return fixed_point(
        step,
        lambda _, new, old: (new.counts - old.counts).abs().amax(-1),
        problem,
        state,
        n_tasks=len(problem.scores),
        device=problem.scores.device,
        max_iter=options.max_iter,
        tol=options.tol,
    )


def solve(task: TaskBatch, options: CalibratedPaddleOptions) -> Solution:
    """Scale, proportions at a sharp scale, proportions at the scale for as many classes as that found, one move."""
    frame = Frame(task)
    scale = squared_scale(frame)
    space = frame.space("auto", max_iter=1)
    distances = space.scores(space.support.mean())

    def at(factor: Float[Tensor, "task"], scores: Float[Tensor, "task query class"]) -> Problem:
        return Problem((factor * scale).reshape(-1, 1, 1) * scores, frame.query_mask, frame.n_query)

    sharp = at(torch.full_like(scale, SHARPEST), distances)
    first = settle(sharp, begin(sharp), options)
    spread_out = uniform_evidence(sharp) > evidence(sharp, first.answer)

    found = classes_found(first.answer.state, frame.n_query)
    factor = (found / CLASSES_AT_SCALE).sqrt().clamp(SOFTEST, SHARPEST).where(~spread_out, SHARPEST)
    second = settle(at(factor, distances), first.answer.state, options)

    even = spread_out.reshape(-1, 1, 1)
    weights = torch.where(even, softmax(sharp.scores).weights, second.answer.u.weights)
    moved = at(factor, space.scores((space.support + space.moments(weights)).mean()))
    u = softmax(moved.scores + expected_log(second.answer.state, frame.n_query).where(~even, 0))
    return frame.solution(
        u,
        n_iter=first.n_iter + second.n_iter + FIRST_ITERATIONS - 1,
        converged=first.converged & second.converged,
        find_prototypes=partial(frame.prototypes, weights),
    )


def _over_query(values: Float[Tensor, "task query"], query_mask: Bool[Tensor, "task query"] | None) -> Tensor:
    return (values if query_mask is None else values.where(query_mask, 0)).sum(-1)


METHOD = Method(
    name="calibrated_paddle",
    options=CalibratedPaddleOptions,
    transform="l2",
    solve=solve,
    citation="handful; after Martin et al., NeurIPS 2022, Saerens et al. 2002 and Minka 2000.",
)
