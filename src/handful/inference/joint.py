"""Joint inference: the rules that turn scores into proportions, shared by every kind of batch.

With `D_nk` the nats by which class k describes item n and proportions `π ~ Dir(α, …, α)` integrated out,

    u_n = softmax_k( -f D_nk + ψ(N_k + α) ),    N_k = Σ_n u_nk,    α ← Minka's step for the counts N,

is iterated at a sharp factor f until the counts settle. Then the classes are counted, `K̂ = |Q|² / Σ_k N_k²`, and it is
iterated again at `f = √(K̂/12.5)`. Uniform proportions are taken instead where they have the higher evidence, or where
α reaches the shots s: a prototype of s examples is off by a share 1/s of the spread, which makes counts uneven.

The rules need one thing from the queries: expected counts under given log-priors and a factor. The queries may be one
batch in memory, a stack of many (`handful.inference.stack`) or shards on disk (`handful.large`), and they may leave
classes out: a class without items has a count of zero and the same prior as all others. `advance` is a pure function
from one state to the next; a run can continue from a saved state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.fixed_point import chosen
from handful.shapes import Bool, Float, Int

# Factors on c². With this many classes present, c² is used as calibration gives it.
SHARPEST, SOFTEST = 1.6, 0.4
CLASSES_AT_SCALE = 12.5
# The first iterations keep α = 1/K: while a batch is still spread over all classes, its counts would give a large α.
OPENING = 4
# Stages of a batch.
OPEN, SHARP, JUDGED, SOFTENED, DONE = range(5)


class Tally(NamedTuple):
    """What the queries return: expected counts, and on request `Σ_n ln Σ_k exp(-f D_nk + tilt_k)`."""

    counts: Float[Tensor, "task column"]
    log_likelihood: Float[Tensor, "task"] | None


@dataclass(frozen=True)
class JointRules:
    """What stays the same while a batch is settled."""

    n_query: Float[Tensor, "task"]
    n_classes: int
    shots: Float[Tensor, "task"]  # typical number of examples behind a prototype
    uniform: Float[Tensor, "task"]  # log-evidence of equal proportions, at the sharp factor
    max_iter: int
    tol: float


@dataclass(frozen=True)
class JointState:
    """Progress of each batch: the posterior `Dir(N + α)` of its proportions, now and one iteration ago."""

    counts: Float[Tensor, "task column"]
    concentration: Float[Tensor, "task"]
    counts_before: Float[Tensor, "task column"]
    concentration_before: Float[Tensor, "task"]
    factor: Float[Tensor, "task"]  # on c²
    stage: Int[Tensor, "task"]
    in_stage: Int[Tensor, "task"]
    n_iter: Int[Tensor, "task"]
    converged: Bool[Tensor, "task"]
    spread_out: Bool[Tensor, "task"]  # whether proportions are taken as uniform


def opening(counts: Float[Tensor, "task column"], n_classes: int) -> JointState:
    """Begin with the counts under uniform proportions, and α = 1/K."""
    alpha = counts.new_full((len(counts),), 1 / n_classes)
    none = torch.zeros(len(counts), dtype=torch.int64, device=counts.device)
    false = torch.zeros_like(none, dtype=torch.bool)
    return JointState(
        counts, alpha, counts, alpha, torch.full_like(alpha, SHARPEST), none + OPEN, none, none, ~false, false
    )


def tilts(counts: Float[Tensor, "task column"], concentration: Float[Tensor, "task"]) -> Float[Tensor, "task column"]:
    """`ψ(N_k + α)`: `E ln π_k` up to a constant that all classes share."""
    return torch.digamma(counts + concentration.unsqueeze(-1))


def advance(state: JointState, rules: JointRules, count: Callable[[Tensor, bool], Tally]) -> JointState:
    """Advance every batch by one iteration; a batch that has settled at the sharp factor is judged instead.

    `count(tilts, likelihood)` returns the tally of the queries. Once a batch is DONE, its later states have no meaning.
    """
    if int(state.stage[0]) == OPEN:  # batches open together
        return _opened(state, count(tilts(state.counts, state.concentration), False).counts)
    judged = state.stage == JUDGED
    counts, log_likelihood = count(tilts(state.counts, state.concentration), bool(judged.any()))
    in_stage = state.in_stage + 1
    settled = (counts - state.counts).abs_().amax(-1) <= (rules.tol or -1)  # a tolerance of zero is never met
    ends = settled | (in_stage >= rules.max_iter)
    after = JointState(
        counts=counts,
        concentration=concentration_step(counts, state.concentration, rules.n_classes),
        counts_before=state.counts,
        concentration_before=state.concentration,
        factor=state.factor,
        stage=state.stage + ends,
        in_stage=in_stage.masked_fill_(ends, 0),
        n_iter=state.n_iter + 1,
        converged=state.converged & (settled | ~ends),
        spread_out=state.spread_out,
    )
    return after if log_likelihood is None else chosen(judged, judge(state, rules, log_likelihood), after)


def _opened(state: JointState, counts: Float[Tensor, "task column"]) -> JointState:
    """Take the counts, and keep α as it is."""
    in_stage = state.in_stage + 1
    ends = in_stage >= OPENING
    return replace(
        state,
        counts=counts,
        counts_before=state.counts,
        stage=state.stage + ends,
        in_stage=in_stage.masked_fill_(ends, 0),
        n_iter=state.n_iter + 1,
    )


def judge(state: JointState, rules: JointRules, log_likelihood: Float[Tensor, "task"]) -> JointState:
    """Choose uniform proportions, or the factor for the number of classes found."""
    alpha = state.concentration
    total = torch.digamma(rules.n_query + rules.n_classes * alpha)
    evidence = log_likelihood - rules.n_query * total - dirichlet_divergence(state.counts, alpha, rules.n_classes)
    spread_out = (rules.uniform > evidence) | (alpha >= rules.shots)
    found = rules.n_query.square() / state.counts.square().sum(-1)
    factor = (found / CLASSES_AT_SCALE).sqrt().clamp(SOFTEST, SHARPEST).where(~spread_out, SHARPEST)
    return replace(
        state, factor=factor, spread_out=spread_out, stage=torch.full_like(state.stage, SOFTENED) + 1 * spread_out
    )


def typical_shots(shots: Float[Tensor, "*task class"]) -> Float[Tensor, "*task"]:
    """`K / Σ_k 1/s_k`: a mean of s points is off by a share 1/s of their spread, and these shares are averaged."""
    return shots.shape[-1] / shots.reciprocal().sum(-1)
