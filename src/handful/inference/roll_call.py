"""Roll call: the rules that find the classes present in a batch, shared by every kind of batch.

A head gives `S_nk`, the nats by which class k describes item n under equal shares (`handful.inference.head`).

**Alone.** The batch may come from elsewhere. A common offset d of its items, and shares that follow the numbers of
examples, `π_k ∝ s_k^η`, are estimated as far as the batch supports them. Both add a constant to each class:

    p_n = softmax_k( S_nk - ⟨d, W_k⟩ + η ln s_k + t_k ).

t_k is zero unless something is known about the batch in advance (`handful.inference.prior`).

**Joint.** A class is present when it holds items. With `N_k = Σ_n u_nk`,

    u_nk ∝ p_nk e^{w_k},    w_k = max( β ln(N_k / (N_k + c)), -7 ).

So a class with a count well below c loses up to 7 nats, and one well above it nothing: presence counts, size hardly
does. Shares are not learned, because a class that holds most items would take the items of rare ones that look like it.
c is about two standard deviations of the count of a typical class, `2 √n` with n items per class found, and less where
many of the catalogue's classes occur. Where the counts are too uneven for "few classes, each with its share", c goes to
one item in a large batch, and to zero in a small one: then each item is labelled alone.

**Answer.** `q = λ u + (1 - λ) p`, where λ grows with the items per class found, and with the examples per class.

The rules need one thing from the items: the counts `Σ_n u_nk` under given constants per class. Items may count less
than one each; `n_query` is then the sum of their weights. Items may be one batch in memory, a stack of many
(`handful.inference.roll_call_stack`) or shards on disk (`handful.large`). `advance` is a pure function from one state
to the next; a run can continue from a saved state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from handful.inference.head import Head
from handful.inference.prior import Prior, lean
from handful.numerics.fixed_point import chosen
from handful.shapes import Bool, Float, Int

# A class with a smaller expected count than this, when each item is labelled alone, is absent.
LEAST_ALONE = 2e-3
# Nats that an absent class loses, and the slope at which it loses them.
FLOOR, SLOPE = 7.0, 3.0
LEAST_KEPT = math.exp(-FLOOR)
# A class counts as found when it holds about this many standard deviations of the count of a typical class.
DEVIATIONS = 2.0
# Where h of K classes are found, c shrinks by n / (n + 1 + 25 h/K).
CROWD = 25.0
# Evenness of the counts, K₂/h, at which joint labelling begins and at which it is complete.
EVEN_LOW, EVEN_HIGH = 0.55, 0.75
# However uneven a batch is, a class that holds less than an item of a large one is probably absent: c is at least
# m/1000 items, up to one, from this many items on. In smaller batches c goes to zero.
SMALL, LARGE, ALONE = 100, 1000, 1e-6
# A class was found if it holds half an item, and this share of a typical class's items.
LEAST_FOUND, SHARE_FOUND = 0.5, 0.1
# An offset counts as far as it exceeds this many times what chance gives.
CHANCE = 2.0
# λ is one half at 1.5 + 8/s items per class.
TRUST, TRUST_OF_ONE_EXAMPLE, TRUST_POWER = 1.5, 8.0, 1.5
# Log-odds that a class is present: a constant, and slopes of the log of its expected count, of the logit of its largest
# probability, of ln n and of ln h/K. Fitted by logistic regression on the tuning data, which have up to 659 classes: a
# smaller h/K than two of these counts as that.
PRESENCE = (1.54, 0.63, 0.43, -0.90, 0.33)
LEAST_SHARE_FOUND = 2 / 659
LEAST_COUNT, LEAST_CHANCE = 1e-3, 1e-4
# Estimates of η: how often counts are taken for the first offset and for the later ones; Newton steps for each.
SHARES_FIRST, SHARES_LATER, NEWTON_STEPS = 6, 3, 4
ETA_LOW, ETA_HIGH = -0.5, 1.5
# Offsets are estimated this many times.
OFFSETS = 2
# Stages of a batch: a first look at c = 1, four looks at a c that grows with what is found, two that settle, the end.
LOOK, GROW, SETTLE, DONE = 0, 1, 5, 7
# Iterations of a stage before the batch settles; after that, the caller's limit. All but the last stage end at a change
# of a count that many times as large.
LOOKS, LOOSER = 8, 10.0

Count = Callable[[Float[Tensor, "task column"]], Float[Tensor, "task column"]]


class Alone(NamedTuple):
    """Constants per class, the counts when each item is labelled alone, the offset, and how far a prior holds."""

    tilts: Float[Tensor, "task class"]  # η ln s_k - ⟨d, W_k⟩ + t_k; -inf for classes that a prior bans
    counts: Float[Tensor, "task class"]  # Σ_n p_nk
    offset: Float[Tensor, "task dim"]  # d
    trust: Float[Tensor, "task"]  # γ of the prior; one if there is none


@dataclass(frozen=True)
class Rules:
    """What stays the same while a batch is settled."""

    alone: Float[Tensor, "task column"]  # Σ_n p_nk; zero for absent classes
    n_query: Float[Tensor, "task"]
    n_classes: Float[Tensor, "task"]  # K, without classes that a prior bans
    max_iter: int
    tolerance: Float[Tensor, "task"]  # a stage ends when no count changes by more

    @classmethod
    def of(
        cls,
        alone: Float[Tensor, "task column"],
        n_query: Float[Tensor, "task"],
        n_classes: Float[Tensor, "task"],
        max_iter: int,
        tol: float,
    ) -> Rules:
        """Stages end at a change of `tol` items, or of a hundredth of that per item of a large batch."""
        present = alone.masked_fill(alone < LEAST_ALONE, 0)
        return cls(present, n_query, n_classes, max_iter, tol * (n_query / 100).clamp(min=1))


@dataclass(frozen=True)
class State:
    """Progress of each batch."""

    counts: Float[Tensor, "task column"]  # N_k
    kept: Float[Tensor, "task column"]  # the e^{w_k} that gave these counts
    threshold: Float[Tensor, "task 1"]  # c
    slope: Float[Tensor, "task 1"]  # β
    per_class: Float[Tensor, "task"]  # n, items per class found
    found: Float[Tensor, "task"]  # h, classes found
    stage: Int[Tensor, "task"]
    left: Int[Tensor, "task"]  # iterations that the stage may still take
    n_iter: Int[Tensor, "task"]
    converged: Bool[Tensor, "task"]


def alone(
    head: Head,
    centre: Float[Tensor, "task dim"],
    n_query: Float[Tensor, "task"],
    spread: Float[Tensor, "task"],
    count: Count,
    prior: Prior | None = None,
) -> Alone:
    """Estimate offset and shares of each batch; `centre` is the mean of its items, `spread` that within a class.

    With q_k the shares that the counts give, `r = z̄ - Σ_k q_k μ_k` is what the classes do not explain. Chance alone
    makes `‖r‖²` about `V/m + V Σ_k q_k²/s_k`, from m items and from means of s_k examples; r is shrunk accordingly.
    A prior comes last, when the batch has its place. `count` counts nothing for classes that it bans.
    """
    means, weights = head.means, head.weights
    log_shots, banned = head.mass.double().log(), torch.zeros((), dtype=torch.bool, device=means.device)
    if prior is None:
        log_shots = log_shots - log_shots.mean()
    else:
        banned = prior.banned
        log_shots = log_shots.expand_as(banned).masked_fill(banned, 0)
        log_shots = (log_shots - log_shots.sum(-1, keepdim=True) / (~banned).sum(-1, keepdim=True)).masked_fill(
            banned, 0
        )
    uneven = bool(log_shots.abs().max() > 1e-6)
    centre, m = centre.double(), n_query.unsqueeze(-1)
    offset, moved = torch.zeros_like(centre), centre.new_zeros(len(centre), len(means))
    eta = centre.new_zeros(len(centre), 1)
    for step in range(OFFSETS + 1):
        for _ in range((SHARES_LATER if step else SHARES_FIRST) if uneven else 0):
            eta = _shares(eta, log_shots, banned, count(moved + eta * log_shots))
        tilts = moved + eta * log_shots
        counts = count(tilts)
        if step < OFFSETS:
            shares = counts / m
            unexplained = centre - (shares.to(means) @ means).double()
            noise = CHANCE * spread * (1 / n_query + (shares.square() / head.mass).sum(-1))
            square = unexplained.square().sum(-1).clamp(min=torch.finfo(torch.float64).tiny)
            offset = (1 - noise / square).clamp(min=0).unsqueeze(-1) * unexplained
            moved = -(offset.to(weights) @ weights.mT).double()
    return leant(Alone(tilts, counts, offset, torch.ones_like(n_query)), n_query, count, prior)


def leant(known: Alone, n_query: Float[Tensor, "task"], count: Count, prior: Prior | None) -> Alone:
    """Add what a prior says to constants that were found without it."""
    if prior is None:
        return known
    leaning = lean(prior, n_query, lambda extra: count(known.tilts + extra))
    tilts = (known.tilts + leaning.tilts).masked_fill(prior.banned, -torch.inf)
    return Alone(tilts, count(tilts), known.offset, leaning.trust)


def _shares(
    eta: Float[Tensor, "task 1"], log_shots: Tensor, banned: Tensor, counts: Float[Tensor, "task class"]
) -> Float[Tensor, "task 1"]:
    """Newton steps to the mode of η under `η ~ N(0, 1)`; the counts speak for as many draws as classes they occupy."""
    shares = counts / counts.sum(-1, keepdim=True)
    draws = _perplexity(shares).unsqueeze(-1)
    seen = (shares * log_shots).sum(-1, keepdim=True)
    for _ in range(NEWTON_STEPS):
        expected = (eta * log_shots).masked_fill(banned, -torch.inf).softmax(-1)
        mean = (expected * log_shots).sum(-1, keepdim=True)
        variance = (expected * log_shots.square()).sum(-1, keepdim=True) - mean.square()
        eta = (eta + (draws * (seen - mean) - eta) / (draws * variance + 1)).clamp(ETA_LOW, ETA_HIGH)
    return eta


def opening(rules: Rules) -> State:
    """Begin with the counts of items labelled alone, and c = 1."""
    ones = torch.ones_like(rules.n_query)
    none = torch.zeros_like(ones, dtype=torch.int64)
    column = ones.unsqueeze(-1)
    return State(
        counts=rules.alone,
        kept=torch.ones_like(rules.alone),
        threshold=column,
        slope=column,
        per_class=rules.n_query,
        found=ones,
        stage=none + LOOK,
        left=none + min(LOOKS, rules.max_iter),
        n_iter=none,
        converged=none == 0,
    )


def advance(state: State, rules: Rules, count: Count) -> State:
    """Advance every batch by one iteration; `count(e^w)` returns `Σ_n u_nk`.

    If no batch enters another stage, the tensor `stage` is the same object as before. Once a batch is DONE, its later
    states have no meaning.
    """
    kept = (state.counts / (state.counts + state.threshold)).pow_(state.slope).clamp_(min=LEAST_KEPT)
    counts = count(kept)
    # Only the last stage has to be exact: the others choose the next threshold.
    tolerance = torch.where(state.stage == DONE - 1, 1.0, LOOSER) * rules.tolerance
    settled = (counts - state.counts).abs_().amax(-1) <= tolerance
    left = state.left - 1
    ends = settled | (left <= 0)
    after = replace(state, counts=counts, kept=kept, left=left, n_iter=state.n_iter + 1)
    return chosen(ends, _next_stage(after, rules, settled), after) if bool(ends.any()) else after


def _next_stage(state: State, rules: Rules, settled: Bool[Tensor, "task"]) -> State:
    """Choose c from the shape of the counts; the stages that settle begin again with the items labelled alone."""
    stage = (state.stage + 1).clamp(max=DONE)
    even, per_class, found = shape(state.counts, rules.n_query)
    held = even * per_class
    growing = (held.square() / (held + 1)).clamp(min=0.1)
    evenness = ((even - EVEN_LOW) / (EVEN_HIGH - EVEN_LOW)).clamp(0, 1)
    crowd = per_class / (per_class + 1 + CROWD * found / rules.n_classes)
    least = (rules.n_query / LARGE).clamp(max=1).masked_fill(rules.n_query < SMALL, ALONE)
    final = torch.maximum(evenness * DEVIATIONS * per_class.sqrt() * crowd, least)
    settles = stage >= SETTLE
    changed = replace(
        state,
        counts=rules.alone.where(settles.unsqueeze(-1), state.counts),
        threshold=final.where(settles, growing).unsqueeze(-1),
        slope=torch.full_like(state.slope, SLOPE),
        per_class=per_class,
        found=found,
    )
    limit = torch.where(settles, rules.max_iter, min(LOOKS, rules.max_iter))
    # At the end, what the last stage was run with stays.
    return replace(chosen(stage == DONE, state, changed), stage=stage, left=limit, converged=settled)


def shape(
    counts: Float[Tensor, "task column"], n_query: Float[Tensor, "task"]
) -> tuple[Float[Tensor, "task"], Float[Tensor, "task"], Float[Tensor, "task"]]:
    """Evenness `K₂/h` of the counts, with `K₂ = 1/Σ_k q_k²`; items per class found, `m/h`; and h, the classes found."""
    shares = counts / n_query.unsqueeze(-1)
    enough = (SHARE_FOUND * n_query / _perplexity(shares)).clamp(min=LEAST_FOUND)
    found = (counts >= enough.unsqueeze(-1)).sum(-1).clamp(min=1).to(counts)
    even = (1 / shares.square().sum(-1) / found).clamp(max=1)
    return even, n_query / found, found


def joint_weight(state: State, typical_shots: Float[Tensor, "task"]) -> Float[Tensor, "task"]:
    """λ: weight of the joint answer against that of each item alone; zero where counts are too uneven."""
    return trust(state, TRUST + TRUST_OF_ONE_EXAMPLE / typical_shots, TRUST_POWER)


def trust(state: State, half: Float[Tensor, "task"], power: float) -> Float[Tensor, "task"]:
    """`n^a / (n^a + half^a)` with n items per class found; zero where counts are too uneven."""
    items = state.per_class.pow(power)
    weight: Tensor = items / (items + half**power)
    return weight.masked_fill(state.threshold.squeeze(-1) <= ALONE, 0)


def presence(
    state: State,
    expected_counts: Float[Tensor, "task class"],
    largest: Float[Tensor, "task class"],
    n_classes: Float[Tensor, "task"],
) -> Float[Tensor, "task class"]:
    """Chance that each class is present, from `Σ_n q_nk` and `max_n q_nk` of all classes.

    `1 - Π_n (1 - q_nk)` would take items as independent, but they are wrong together: if a class is absent, its
    neighbour's items are all mistaken for it at once.

    h/K counts as at least 2/659, the least that the coefficients were fitted on. In a catalogue of thousands of classes
    they would otherwise hold the size of the catalogue against classes that have all their items.
    """
    constant, of_count, of_largest, of_items, of_found = PRESENCE
    share_found = (state.found / n_classes).clamp(min=LEAST_SHARE_FOUND)
    shared = constant + of_items * state.per_class.log() + of_found * share_found.log()
    own = of_count * expected_counts.clamp(min=LEAST_COUNT).log()
    own = own + of_largest * torch.logit(largest.double(), eps=LEAST_CHANCE)
    return (shared.unsqueeze(-1) + own).sigmoid()


def _perplexity(shares: Float[Tensor, "task class"]) -> Float[Tensor, "task"]:
    """`exp(-Σ_k q_k ln q_k)`."""
    entropy: Tensor = torch.special.entr(shares).sum(-1)
    return entropy.exp()
