"""A stack of batches in memory, labelled by the rules of `handful.inference.roll_call`.

Exponentials `E_nk = exp(S_nk - max_k S_nk)` are computed once. A count is two thin products:

    r_n = Σ_k E_nk t_k,    N_k = t_k Σ_n E_nk / r_n    with    t_k = exp(tilt_k).

Offset and shares need all classes. After that a class has its own column only if it would hold some of an item when
each item is labelled alone. All others are absent: they lose the same number of nats and stay together in one sum per
item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from handful.inference.head import Head
from handful.inference.prior import Prior
from handful.inference.roll_call import (
    DONE,
    LEAST_ALONE,
    LEAST_KEPT,
    Alone,
    Count,
    Rules,
    State,
    advance,
    alone,
    joint_weight,
    opening,
    presence,
)
from handful.numerics.fixed_point import COMPACT_SHARE, merged, take
from handful.shapes import Bool, Float, Int

# Exponents are clamped at this value: smaller numbers are slow, and count for nothing.
LOWEST = -80.0
# Scores computed at a time, so that weights are read from memory once for many items.
BLOCK_SCORES = 4_000_000
# Columns are gathered if they are at most this share of all classes; else all stay.
WORTH_GATHERING = 0.5


class ScoredBatches(ABC):
    """Batches that can be labelled: items with a score for every class, from any source.

    Attributes
    ----------
    mask : Bool[Tensor, "task query"] or None
        False where a row is padding.
    weights : Float[Tensor, "task query"] or None
        How much each item counts towards everything that is learned from the batch, zero where a row is padding; None
        where all count alike. Every item is labelled, whatever its weight.
    prior : Prior or None
        What is known in advance about the shares of the classes.
    """

    mask: Bool[Tensor, "task query"] | None
    weights: Float[Tensor, "task query"] | None
    prior: Prior | None

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """Number of batches, of rows in each, and of classes."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the items are."""

    @abstractmethod
    def scores(self) -> Float[Tensor, "task query class"]:
        """`S_nk` in nats, in memory of its own; -inf if the class is banned."""

    @abstractmethod
    def alone(self, count: Count) -> Alone:
        """Constants per class for items labelled alone; `count(constants)` returns `Σ_n p_nk`."""

    @abstractmethod
    def joint_weight(self, state: State) -> Float[Tensor, "task"]:
        """λ of batches in their last state."""

    @cached_property
    def banned(self) -> Bool[Tensor, "task class"] | None:
        """Classes of weight zero; None if there are none."""
        banned = None if self.prior is None else self.prior.banned
        return banned if banned is not None and bool(banned.any()) else None

    @property
    def candidates(self) -> Float[Tensor, "task"]:
        """Number of classes that are not banned."""
        if self.banned is None:
            return torch.full_like(self.n_query, self.sizes[2])
        return (~self.banned).sum(-1, dtype=torch.float64)

    @property
    def n_query(self) -> Float[Tensor, "task"]:
        """|Q| of each batch, or the sum of the weights."""
        if self.counted is None:
            n_tasks, n_slots, _ = self.sizes
            return torch.full((n_tasks,), n_slots, dtype=torch.float64, device=self.device)
        return self.counted.sum(-1, dtype=torch.float64)

    @property
    def counted(self) -> Tensor | None:
        """What each row counts, [task, query]: its weight, or else whether it is an item; None where all count one."""
        return self.mask if self.weights is None else self.weights


@dataclass(frozen=True, eq=False)
class AgainstHead(ScoredBatches):
    """Batches of items, all compared with one head.

    Attributes
    ----------
    points : Float[Tensor, "task query dim"]
        Items, about the same origin as the examples that the head was fitted to; padding is zero.
    mask : Bool[Tensor, "task query"] or None
        False where a row is padding.
    head : Head
        Weights, offsets and means of the classes.
    weights : Float[Tensor, "task query"] or None
        How much each item counts towards offset, shares and counts, zero where a row is padding; None where all count
        alike. Every item is labelled, whatever its weight.
    prior : Prior or None
        What is known in advance about the shares of the classes.
    given : Int[Tensor, "task query"] or None
        The class of each item whose class is known for certain, and -1 for all others; such a class must not be banned.
    """

    points: Float[Tensor, "task query dim"]
    mask: Bool[Tensor, "task query"] | None
    head: Head
    weights: Float[Tensor, "task query"] | None = None
    prior: Prior | None = None
    given: Int[Tensor, "task query"] | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of batches, of rows in each, and of classes."""
        return (*self.points.shape[:2], len(self.head.weights))

    @property
    def device(self) -> torch.device:
        """Where the points are."""
        return self.points.device

    @property
    def typical_shots(self) -> Float[Tensor, "task"]:
        """Harmonic mean of the numbers of examples of these classes."""
        if self.banned is None:
            return torch.full_like(self.n_query, self.head.typical_shots)
        return self.candidates / (~self.banned / self.head.mass.double()).sum(-1)

    @property
    def centre(self) -> Float[Tensor, "task dim"]:
        """Mean of the items of each batch."""
        points = self.points if self.weights is None else self.points * self.weights.unsqueeze(-1)
        return points.sum(1, dtype=torch.float64) / self.n_query.unsqueeze(-1)

    @property
    def spread(self) -> Float[Tensor, "task"]:
        """V, from the examples; where no class has two, half the mean squared distance of items from nearest means."""
        if self.head.spread is not None:
            return torch.full_like(self.n_query, self.head.spread)
        means = self.head.means
        halves = torch.empty_like(self.points[..., 0])
        for rows in self._blocks():
            nearness = self._products(rows, means, -0.5 * means.square().sum(-1))
            if self.banned is not None:
                nearness.masked_fill_(self.banned[rows].unsqueeze(1), -torch.inf)
            nearest = nearness.amax(-1)
            halves[rows] = 0.5 * self.points[rows].square().sum(-1) - nearest
        return _over_items(halves, self.counted).double() / self.n_query

    def scores(self) -> Float[Tensor, "task query class"]:
        """`S_nk = ⟨z_n, W_k⟩ + b_k`; -inf if the class is banned, or if the item is known to have another."""
        room = self.points.new_empty(self.sizes)
        for rows in self._blocks():
            room[rows] = self._products(rows, self.head.weights, self.head.offsets)
        if self.given is not None:
            task, item = (self.given >= 0).nonzero(as_tuple=True)
            room[task, item] = -torch.inf
            room[task, item, self.given[task, item]] = 0
        return room if self.banned is None else room.masked_fill_(self.banned.unsqueeze(1), -torch.inf)

    def alone(self, count: Count) -> Alone:
        """Offset and shares of each batch, as far as it supports them, and then the prior."""
        return alone(self.head, self.centre, self.n_query, self.spread, count, self.prior)

    def joint_weight(self, state: State) -> Float[Tensor, "task"]:
        """λ is one half at the fewer items per class found, the more examples each class has."""
        return joint_weight(state, self.typical_shots)

    def _blocks(self) -> Iterator[slice]:
        n_tasks, slots, n_classes = self.sizes
        size = max(1, BLOCK_SCORES // (slots * n_classes))
        return (slice(start, start + size) for start in range(0, n_tasks, size))

    def _products(
        self, rows: slice, weights: Float[Tensor, "class dim"], offsets: Float[Tensor, "class"]
    ) -> Float[Tensor, "block query class"]:
        part = self.points[rows]
        return torch.addmm(offsets, part.flatten(0, 1), weights.mT).view(*part.shape[:2], -1)


@dataclass(frozen=True, eq=False)
class Called:
    """The answer for each batch.

    Attributes
    ----------
    log_probabilities : Float[Tensor, "task query class"]
        `ln q_nk`; -inf where a row is padding.
    alone : Int[Tensor, "task query"]
        The class each item would have alone.
    confidence : Float[Tensor, "task query"]
        Largest probability of each item under the head, before anything is learned from the batch.
    expected_counts, presence : Float[Tensor, "task class"]
        `Σ_n q_nk`, with the weights of the items, and the chance that the class is present.
    joint_weight : Float[Tensor, "task"]
        λ; zero where each item was labelled alone.
    n_iter, converged : Int[Tensor, "task"], Bool[Tensor, "task"]
        Iterations taken, and whether the tolerance was met.
    offset, tilts : Float[Tensor, "task dim"], Float[Tensor, "task class"]
        d, and the constants that make `ln u_nk = S_nk + tilt_k` up to a number per item.
    prior_weight : Float[Tensor, "task"]
        γ: how far the prior holds; one if there is none.
    found : Float[Tensor, "task"]
        h, the number of classes found.
    """

    log_probabilities: Float[Tensor, "task query class"]
    alone: Int[Tensor, "task query"]
    confidence: Float[Tensor, "task query"]
    expected_counts: Float[Tensor, "task class"]
    presence: Float[Tensor, "task class"]
    joint_weight: Float[Tensor, "task"]
    n_iter: Int[Tensor, "task"]
    converged: Bool[Tensor, "task"]
    offset: Float[Tensor, "task dim"]
    tilts: Float[Tensor, "task class"]
    prior_weight: Float[Tensor, "task"]
    found: Float[Tensor, "task"]


def label(batches: ScoredBatches, *, max_iter: int, tol: float) -> Called:
    """Find the classes present in every batch and label its items."""
    scores, mask, counted = batches.scores(), batches.mask, batches.counted
    n_query, banned, candidates = batches.n_query, batches.banned, batches.candidates
    near = scores.sub_(scores.amax(-1, keepdim=True)).clamp(min=LOWEST).exp_()
    if banned is not None:
        near.masked_fill_(banned.unsqueeze(1), 0)
    confidence = near.sum(-1).reciprocal_()
    fixed, counts, offset, trust = batches.alone(
        lambda tilt: _count(near, None, counted, _exponentials(tilt).to(near)).double()
    )
    tilts = (fixed - fixed.amax(-1, keepdim=True)).to(near).unsqueeze(1)
    p = near.mul_(tilts.clamp(min=LOWEST).exp_())
    total = p.sum(-1, keepdim=True)
    p.div_(total)
    state, columns = settle(p, counted, counts, n_query, candidates, max_iter=max_iter, tol=tol)

    weight = batches.joint_weight(state)
    kept = torch.full_like(counts, LEAST_KEPT).scatter_(-1, columns, state.kept)
    own = torch.bmm(p, kept.to(p).unsqueeze(-1)).reciprocal_()
    factor = own * (weight.unsqueeze(-1) * kept).unsqueeze(1).to(p)
    factor += (1 - weight).reshape(-1, 1, 1).to(p)
    best = p.argmax(-1)
    q = p.mul_(factor)
    if mask is not None:
        q.mul_(mask.unsqueeze(-1))
    counts, largest = _held(q, batches.weights)
    chances = presence(state, counts, largest, candidates)
    scores.add_(tilts).sub_(total.log_()).add_(factor.log_())
    return Called(
        scores if mask is None else scores.masked_fill_(~mask.unsqueeze(-1), -torch.inf),
        best,
        confidence,
        counts,
        chances if banned is None else chances.masked_fill(banned, 0),
        weight,
        state.n_iter,
        state.converged,
        offset,
        fixed + kept.log(),
        trust,
        state.found,
    )


def settle(
    p: Float[Tensor, "task query class"],
    counted: Tensor | None,
    counts: Float[Tensor, "task class"],
    n_query: Float[Tensor, "task"],
    candidates: Float[Tensor, "task"],
    *,
    max_iter: int,
    tol: float,
) -> tuple[State, Int[Tensor, "task column"]]:
    """Run the joint rules on the classes that could be present; return the last states and which classes have columns.

    Columns are in double precision: with sums in another order, as in another stack, answers differ by rounding alone.
    """
    n_classes = counts.shape[-1]
    width = int((counts >= LEAST_ALONE).sum(-1).max())
    columns = torch.arange(n_classes, device=p.device).expand(len(p), -1)
    if width <= WORTH_GATHERING * n_classes:
        columns = counts.topk(max(1, width)).indices.sort().values
        p, counts = p.gather(-1, columns.unsqueeze(1).expand(-1, p.shape[1], -1)), counts.gather(-1, columns)
    # A stack decides how many columns there are; an absent class belongs to the rest whether or not it has one.
    near = p.double() * (counts >= LEAST_ALONE).unsqueeze(1)
    rest = (1 - near.sum(-1)).clamp_(min=0).mul_(LEAST_KEPT)
    rules = Rules.of(counts, n_query, candidates, max_iter, tol)
    state, rows = opening(rules), torch.arange(len(p), device=p.device)
    ends: list[tuple[Tensor, State]] = []
    while len(rows) > 0:
        before, state = state.stage, advance(state, rules, partial(_count, near, rest, counted))
        if state.stage is before:
            continue
        done = state.stage == DONE
        new = done & (before != DONE)
        if bool(new.any()):
            ends.append((rows[new], take(state, new, len(new))))
        if int(done.sum()) >= COMPACT_SHARE * len(done):
            left = ~done
            state, rules = take(state, left, len(left)), take(rules, left, len(left))
            rows, near, rest = rows[left], near[left], rest[left]
            counted = None if counted is None else counted[left]
    return merged(ends), columns


def _count(
    near: Float[Tensor, "task query column"],
    rest: Float[Tensor, "task query"] | None,
    counted: Tensor | None,
    factors: Float[Tensor, "task column"],
) -> Float[Tensor, "task column"]:
    """`N_k = Σ_n u_nk` with `u_nk ∝ E_nk t_k`; `rest` is the sum over classes without a column."""
    r = torch.bmm(near, factors.unsqueeze(-1)).squeeze(-1)
    if rest is not None:
        r += rest
    shares = r.reciprocal_() if counted is None else (counted / r).to(r)
    return torch.bmm(shares.unsqueeze(1), near).squeeze(1).mul_(factors)


def _exponentials(tilt: Float[Tensor, "task class"]) -> Float[Tensor, "task class"]:
    """`exp(tilt)` up to a factor per batch; the largest is one."""
    return (tilt - tilt.amax(-1, keepdim=True)).clamp_(min=LOWEST).exp_()


def _held(
    q: Float[Tensor, "task query class"], weights: Float[Tensor, "task query"] | None
) -> tuple[Float[Tensor, "task class"], Float[Tensor, "task class"]]:
    """`Σ_n q_nk` and `max_n q_nk`; with weights, the sum has them and the maximum is over those above one half."""
    if weights is None:
        return q.sum(1, dtype=torch.float64), q.amax(1)
    counts = torch.bmm(weights.double().unsqueeze(1), q.double()).squeeze(1)
    return counts, q.mul((weights > 0.5).unsqueeze(-1)).amax(1)


def _over_items(values: Tensor, counted: Tensor | None) -> Tensor:
    """Sum over the items (the last axis), each as much as it counts."""
    return (values if counted is None else values * counted).sum(-1)
