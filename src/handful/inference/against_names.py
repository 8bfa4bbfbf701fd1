"""Items against names alone: cosines to names, whose scale is their own spread, and names that move towards items.

With x the items and t the names, both of unit length, `d_nk = ⟨x_n, t_k - mean of t⟩` are scores like those of any
model without examples (`handful.inference.scores`): measured in their standard deviation, and worth c nats each. The
standard deviation is that of the batch itself, so a batch never changes the answer about another.

**Moving.** A name is worth κ items. Once items are labelled, an item is also compared with the items of a class:

    d_nk ← (κ d_nk + g Σ_m q_mk ⟨x_n, x_m⟩) / (κ + Σ_m q_mk),

with q the answer: joint as far as λ says so, and else that of each item alone. Where most classes occur, dropping
classes would do harm, λ is zero, and names that move gain all the same. Items need not lie where names do, so g brings
both to one level: an item is 1.5 times as like the items of its own class as it is like its name. A class that holds
items thereby gains on one that holds none.

**Domain.** Items of one domain are all alike, and then every class that holds items would gain on all others. What
items have in common is the mean likeness c of two items of different classes: `⟨x_n, x_m⟩ - c` is compared.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from handful.inference.head import Head
from handful.inference.prior import Prior
from handful.inference.roll_call_stack import Called, label
from handful.inference.scores import FIRST, ROUGHER, Differences, GivenScores, second_nats
from handful.shapes import Bool, Float, Int

# κ, and how often names move. On clinc150 any κ from 3 to 10 and one to six moves are equally good.
KAPPA, MOVES = 3.0, 3
# Likeness to the items of the own class, over that to its name; 1.5 to 2 are equally good there, 1 is worse.
LEVEL = 1.5
# Pairs per item that say that items of different classes have nothing in common.
PAIRS = 1.0
# Items that count as none, and likeness as no likeness.
LEAST_HELD = 1e-6


def label_by_names(
    points: Float[Tensor, "task query dim"],
    mask: Bool[Tensor, "task query"] | None,
    head: Head,
    prior: Prior | None,
    codes: Int[Tensor, "task query"] | None = None,
    *,
    max_iter: int,
    tol: float,
) -> Called:
    """Label items against a head of names alone, see `Head.of_names`; points have no other origin than zero.

    `codes` are the classes of items that are known for certain, and -1 for all others.
    """
    given = points @ head.weights.T
    unit = _unit(given, mask, prior).to(points).view(-1, 1, 1)
    nats = torch.full_like(points[:, 0, 0], FIRST, dtype=torch.float64)
    given = given / unit
    batches = GivenScores(_complete(given), mask, 1.0, nats, codes, prior)
    found = label(batches, max_iter=max_iter, tol=ROUGHER * tol).found
    batches = replace(batches, nats=second_nats(batches, found))
    for _ in range(MOVES):
        called = label(batches, max_iter=max_iter, tol=ROUGHER * tol)
        q = called.log_probabilities.exp()
        held, sums = q.sum(1, keepdim=True), torch.bmm(q.mT, points)
        likeness = torch.bmm(points, sums.mT) - _common(sums, held) * held
        own = (q * likeness / held.clamp(min=LEAST_HELD)).sum((1, 2))
        scale = LEVEL * (q * given).sum((1, 2)) / own.clamp(min=LEAST_HELD)
        moved = (KAPPA * given + scale.view(-1, 1, 1) * likeness) / (KAPPA + held)
        batches = replace(batches, differences=_complete(moved))
    return label(batches, max_iter=max_iter, tol=tol)


def in_nats(head: Head, points: Float[Tensor, "task query dim"], mask: Bool[Tensor, "task query"] | None) -> Head:
    """Return the head with the scale of these items together, names where they are."""
    items = points.flatten(0, 1) if mask is None else points[mask]
    unit = float(_unit((items @ head.weights.T).unsqueeze(0), None, None)[0])
    return replace(head, weights=head.weights * (FIRST / unit))


def _common(sums: Float[Tensor, "task class dim"], held: Float[Tensor, "task 1 class"]) -> Float[Tensor, "task 1 1"]:
    """Return the mean likeness of two items of different classes, drawn towards zero where there are few such pairs."""
    whole, n_items = sums.sum(1).square().sum(-1), held.sum((1, 2))
    pairs = n_items.square() - held.square().sum((1, 2))
    apart = (whole - sums.square().sum((1, 2))) / (pairs + PAIRS * n_items).clamp(min=LEAST_HELD)
    return apart.view(-1, 1, 1)


def _complete(given: Float[Tensor, "task query class"]) -> Differences:
    """Return scores of which none is missing; only their differences count."""
    nothing = torch.zeros_like(given[..., 0])
    return Differences(given, nothing, nothing)


def _unit(
    given: Float[Tensor, "task query class"], mask: Bool[Tensor, "task query"] | None, prior: Prior | None
) -> Float[Tensor, "task"]:
    """Return the standard deviation of the differences between the classes of an item, over the items of a batch."""
    left = torch.ones_like(given[:, :1], dtype=torch.bool) if prior is None else ~prior.banned.unsqueeze(1)
    n_left = left.sum(-1, keepdim=True)
    part = given.double().masked_fill(~left, 0)
    variances = (part - part.sum(-1, keepdim=True) / n_left).masked_fill(~left, 0).square().sum(-1) / n_left.squeeze(-1)
    mean = variances.mean(1) if mask is None else variances.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)
    # One class, or items that are all equally far from all names.
    return mean.sqrt().where(mean > 0, 1.0)
