"""Proportions: how much of a query each class holds, while prototypes stand still; variational Bayes, Dirichlet prior.

With `D_nk` the nats by which class k describes query n and `π ~ Dir(α, …, α)` integrated out,

    u_n = softmax_k( -D_nk + E ln π_k ),     N_k = Σ_Q u_nk,     E ln π_k = ψ(N_k + α) - ψ(|Q| + Kα),

and α follows the evidence of the counts (`handful.numerics.dirichlet`). Where few of many classes occur α is small, and
a class without a count has `ψ(α) ≈ -1/α`: it is out. `narrow` goes on without its column; it keeps its place among the
K classes of the prior, with a count of zero. `held` says how much it would hold if it had a column: where that is next
to nothing for all classes that left, the proportions found are those over all classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.fixed_point import Outcome, fixed_point
from handful.numerics.geometry import columns_of, masked
from handful.numerics.groups import Part, width_for
from handful.numerics.simplex import SoftLabels, softmax
from handful.shapes import Bool, Float, Int

# The first iterations keep α = 1/K: counts of a query that is still spread over all classes would call for a large one.
FIRST_ITERATIONS = 5
# A class leaves when it would hold less than this with no count of its own, even at α = m/K, which α hardly exceeds
# where m classes occur.
NEGLIGIBLE_COUNT = 1e-9
# Classes that left may hold so much of α together: then they change neither α nor a label that can be told.
NEGLIGIBLE_SHARE_OF_PRIOR = 1e-6
# Exponents beyond this mean "too much" whatever they are multiplied with.
LARGEST_EXPONENT = 80.0


@dataclass(frozen=True)
class Problem:
    """What stays the same while proportions are sought."""

    scores: Float[Tensor, "task query class"]  # -D up to a constant per query
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]
    n_classes: int  # K, all of them
    classes: Int[Tensor, "task class"] | None = None  # which of the K have a column; None means all


@dataclass(frozen=True)
class State:
    """Posterior of the proportions: Dir(N + α)."""

    counts: Float[Tensor, "task class"]  # N; classes without a column have none
    concentration: Float[Tensor, "task"]  # α


@dataclass(frozen=True)
class Answer:
    """The last two posteriors: soft labels come from the one, the counts of the other from these labels."""

    before: State
    after: State


def expected_log(
    state: State, n_query: Float[Tensor, "task"], n_classes: int | None = None
) -> Float[Tensor, "task 1 class"]:
    """`E ln π_k = ψ(N_k + α) - ψ(|Q| + Kα)`; K is the number of counts, unless it is given."""
    alpha = state.concentration
    total = torch.digamma(n_query + (n_classes or state.counts.shape[-1]) * alpha)
    return (torch.digamma(state.counts + alpha.unsqueeze(-1)) - total.unsqueeze(-1)).unsqueeze(-2)


def assign(problem: Problem, state: State) -> SoftLabels:
    """U: `u_n = softmax_k( -D_nk + E ln π_k )`."""
    return softmax(problem.scores + expected_log(state, problem.n_query, problem.n_classes))


def count(problem: Problem, u: SoftLabels) -> Float[Tensor, "task class"]:
    """`N_k = Σ_Q u_nk`."""
    return masked(u.weights, problem.query_mask).sum(-2)


def step(problem: Problem, state: State) -> tuple[State, Answer]:
    """U from the posterior of the proportions, then the posterior from U."""
    counts = count(problem, assign(problem, state))
    after = State(counts, concentration_step(counts, state.concentration, problem.n_classes))
    return after, Answer(state, after)


def begin(problem: Problem, *, narrowing: bool = True) -> tuple[SoftLabels, Part[Problem, State]]:
    """Count for a few iterations from uniform proportions, at α = 1/K; also the soft labels at these proportions."""
    u = even = softmax(problem.scores)
    weights, alpha = even.weights, torch.full_like(problem.n_query, 1 / problem.n_classes)
    state = State(count(problem, even), alpha)
    for _ in range(FIRST_ITERATIONS - 1):
        u = assign(problem, state)
        state = State(count(problem, u), alpha)
        if narrowing:
            rise = even.log_normaliser() - u.log_normaliser()
            problem, state, weights = narrow(problem, state, weights, rise)
    all_of_them = torch.full_like(problem.n_query, problem.n_classes, dtype=torch.int64)
    return even, Part(problem, state, (state.counts > 0).sum(-1) if narrowing else all_of_them)


def settle(problem: Problem, state: State, *, max_iter: int, tol: float) -> Outcome[Answer]:
    """Iterate `step` until no expected count changes by more than `tol`."""
    return fixed_point(
        step,
        lambda _, new, old: (new.counts - old.counts).abs().amax(-1),
        problem,
        state,
        n_tasks=len(problem.scores),
        device=problem.scores.device,
        max_iter=max_iter,
        tol=tol,
    )


def narrow(
    problem: Problem, state: State, even: Float[Tensor, "task query class"], rise: Float[Tensor, "task query"]
) -> tuple[Problem, State, Float[Tensor, "task query kept"]]:
    """Put out the classes that hold nothing and will not, and go on without their columns once those are half or more.

    Weights at uniform proportions, and by how much the normalisers fell since, say what a class would hold with no
    count of its own and a larger prior. Who is out is decided task by task; how many columns remain, by the task that
    needs most.
    """
    counts = state.counts
    larger = torch.maximum(state.concentration, counts.clamp(max=1).sum(-1) / problem.n_classes)
    alone = held(even, rise + without_count(larger, problem).unsqueeze(-1), problem.query_mask)
    alive = torch.maximum(counts, alone) > NEGLIGIBLE_COUNT
    # What is alive keeps a count, be it the smallest: so counts alone say who is.
    state = State(counts.clamp(min=torch.finfo(counts.dtype).tiny).where(alive, 0), state.concentration)
    width = width_for(int(alive.sum(-1).max()), counts.shape[-1])
    if 2 * width > counts.shape[-1]:
        return problem, state, even
    kept = largest(state, width)
    return *keep(problem, state, kept), columns_of(even, kept)


def largest(state: State, n: int) -> Int[Tensor, "task kept"]:
    """Return the columns of the classes that hold most, in their order."""
    return state.counts.topk(n).indices.sort().values


def keep(problem: Problem, state: State, kept: Int[Tensor, "task kept"]) -> tuple[Problem, State]:
    """Keep some columns of each task."""
    classes = kept if problem.classes is None else problem.classes.gather(-1, kept)
    narrowed = replace(problem, scores=columns_of(problem.scores, kept), classes=classes)
    return narrowed, State(state.counts.gather(-1, kept), state.concentration)


def restrict(problem: Problem, state: State, width: int) -> tuple[Problem, State]:
    """Keep so many columns, of the classes that hold most."""
    if width >= state.counts.shape[-1]:
        return problem, state
    return keep(problem, state, largest(state, width))


def over_all_classes(problem: Problem, counts: Float[Tensor, "task class"]) -> Float[Tensor, "task all"]:
    """Return the counts of all K classes, zero for those without a column."""
    if problem.classes is None:
        return counts
    return counts.new_zeros(len(counts), problem.n_classes).scatter_(-1, problem.classes, counts)


def evidence(problem: Problem, state: State, u: SoftLabels) -> Float[Tensor, "task"]:
    """Lower bound on `ln p(query | α)`: `Σ_n ln Σ_k exp(-D_nk + E ln π_k) - KL(Dir(N + α) ‖ Dir(α))`."""
    divergence = dirichlet_divergence(state.counts, state.concentration, problem.n_classes)
    return over_query(u.log_normaliser(), problem.query_mask) - divergence


def uniform_evidence(problem: Problem, even: SoftLabels) -> Float[Tensor, "task"]:
    """`Σ_n ln (1/K) Σ_k exp(-D_nk)`: the evidence of proportions that are known to be equal."""
    return over_query(even.log_normaliser() - math.log(problem.n_classes), problem.query_mask)


def classes_found(state: State, n_query: Float[Tensor, "task"]) -> Float[Tensor, "task"]:
    """`K̂ = |Q|² / Σ_k N_k²`: as many classes of equal size would give two queries the same chance to share one."""
    return n_query.square() / state.counts.square().sum(-1)


def typical_shots(shots: Float[Tensor, "*task class"]) -> Float[Tensor, "*task"]:
    """`K / Σ_k 1/s_k`: a mean of s points is off by a share 1/s of their spread, and these shares are averaged."""
    return shots.shape[-1] / shots.reciprocal().sum(-1)


def without_count(concentration: Float[Tensor, "task"], problem: Problem) -> Float[Tensor, "task"]:
    """`E ln π_k` of a class with no count: `ψ(α) - ψ(|Q| + Kα)`."""
    return torch.digamma(concentration) - torch.digamma(problem.n_query + problem.n_classes * concentration)


def held(
    weights: Float[Tensor, "task query class"],
    rise: Float[Tensor, "task query"],
    query_mask: Bool[Tensor, "task query"] | None,
) -> Float[Tensor, "task class"]:
    """`Σ_Q u_nk exp(rise_n)`: what a class would hold if its logits rose by so much over the normalisers."""
    if query_mask is not None:
        rise = rise.where(query_mask, -LARGEST_EXPONENT)
    return torch.bmm(rise.clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT).exp().unsqueeze(1), weights).squeeze(1)


def over_query(values: Float[Tensor, "task query"], query_mask: Bool[Tensor, "task query"] | None) -> Tensor:
    """`Σ_Q`, padding left out."""
    return (values if query_mask is None else values.where(query_mask, 0)).sum(-1)
