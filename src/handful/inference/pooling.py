"""What batches say about their siblings: a common base measure, and how closely batches follow it.

Batches that are siblings, for instance the visits to one site, have shares drawn from a Dirichlet of concentration c
around a base measure. For batch g that is what its siblings hold, on top of one item of what is known without them:

    A_gk = Σ_h ρ^{steps(h, g)} N_hk,    π_gk = (A_gk + b_gk) / (Σ_k A_gk + 1).

h runs over all siblings but g, with ρ = 1. If batches are ordered, it runs over the earlier ones, and ρ says how much
of what was counted is left one step later. b are the shares of a prior, or equal ones; where b is zero, so is A.

**Estimates.** The labels of g, H_g, were not used for π_g, so `ln p(H_g | c π_g)` of the Dirichlet-multinomial says how
well siblings predict it. Its gain over the same likelihood with b in place of π, and the most likely c for that, is
added up over the batches of a pool of siblings. c and ρ are those of the largest sum of gains over the pools, a pool
that loses counting zero. **Where a pool does not gain**, its batches are labelled without their siblings.

The labels have errors, and errors look as if batches differed. So batches follow their base measure more closely than
c says, and are labelled with `FOLLOW` times c.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int

# Values that c and ρ may have.
CONCENTRATIONS = tuple(2.0**power for power in range(-2, 13))
FORGETTING = (1.0, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35)
# Nats that a pool has to gain, all its batches together: a Bayes factor of twenty.
LEAST_GAIN = 3.0
# How much closer batches follow their base measure than counts with errors suggest.
FOLLOW = 10.0


@dataclass(frozen=True, eq=False)
class Pooled:
    """What the siblings of each batch say.

    Attributes
    ----------
    shares : Float[Tensor, "group class"]
        π of each batch; b where pooling does not help.
    concentration : float
        c, before it is multiplied by `FOLLOW`.
    forgetting : float
        ρ; one if batches have no order.
    gain : Float[Tensor, "pool"]
        Nats per item by which siblings predict the labels of a batch better than b does.
    used : Bool[Tensor, "pool"]
        Whether siblings are used.
    """

    shares: Float[Tensor, "group class"]
    concentration: float
    forgetting: float
    gain: Float[Tensor, "pool"]
    used: Bool[Tensor, "pool"]


def pooled(
    counts: Float[Tensor, "group class"],
    labels: Float[Tensor, "group class"],
    base: Float[Tensor, "group class"],
    pool_of: Int[Tensor, "group"],
    step_of: Int[Tensor, "group"] | None,
) -> Pooled:
    """Estimate base measures, concentration and forgetting.

    Parameters
    ----------
    counts, labels
        N and H: expected counts of each batch, and how many of its items have each label, each batch labelled alone.
    base
        b, the shares of each batch before anything is known about its siblings.
    pool_of, step_of
        The pool of each batch, counted from zero, and its place in the order, if there is one; batches of a pool that
        have the same place say nothing about each other.
    """
    n_pools = int(pool_of.max()) + 1
    places = labels.nonzero()
    seen = _Seen(places[:, 0], labels[places[:, 0], places[:, 1]], labels.sum(1), pool_of, n_pools)
    alone = seen.likelihood(base[places[:, 0], places[:, 1]])
    without = alone[alone.sum(1).argmax()]
    tried = []
    for forgetting in FORGETTING if step_of is not None else (1.0,):
        shares = _shares(counts, base, pool_of, step_of, forgetting)
        gains = seen.likelihood(shares[places[:, 0], places[:, 1]]) - without
        # If no pool gains, the smallest loss is reported.
        ranks = zip(gains.clamp(min=0).sum(1).tolist(), gains.sum(1).tolist(), strict=True)
        rank, row = max((rank, -row) for row, rank in enumerate(ranks))
        tried.append((rank, forgetting, CONCENTRATIONS[-row], gains[-row]))
    _, forgetting, concentration, gain = max(tried, key=lambda one: one[:2])
    used = gain > LEAST_GAIN
    shares = _shares(counts, base, pool_of, step_of, forgetting)
    items = torch.zeros(n_pools, dtype=torch.float64).index_add_(0, pool_of, seen.sizes)
    return Pooled(
        shares.where(used[pool_of].unsqueeze(1), base), concentration, forgetting, gain / items.clamp(min=1), used
    )


@dataclass(frozen=True)
class _Seen:
    """Labels of all batches: the entries that are not zero."""

    group: Int[Tensor, "entry"]
    number: Float[Tensor, "entry"]
    sizes: Float[Tensor, "group"]
    pool_of: Int[Tensor, "group"]
    n_pools: int

    def likelihood(self, shares: Float[Tensor, "entry"]) -> Float[Tensor, "concentration pool"]:
        """`ln p(H | c π)`, added up over the batches of each pool, for every c."""
        rows = []
        for c in CONCENTRATIONS:
            of_group = torch.lgamma(torch.tensor(c, dtype=torch.float64)) - torch.lgamma(c + self.sizes)
            of_entry = torch.lgamma(c * shares + self.number) - torch.lgamma(c * shares)
            total = of_group.index_add(0, self.group, of_entry)
            rows.append(torch.zeros(self.n_pools, dtype=torch.float64).index_add_(0, self.pool_of, total))
        return torch.stack(rows)


def _shares(
    counts: Float[Tensor, "group class"],
    base: Float[Tensor, "group class"],
    pool_of: Int[Tensor, "group"],
    step_of: Int[Tensor, "group"] | None,
    forgetting: float,
) -> Float[Tensor, "group class"]:
    """π of each batch."""
    n_pools, n_classes = int(pool_of.max()) + 1, counts.shape[1]
    if step_of is None:
        siblings = counts.new_zeros(n_pools, n_classes).index_add_(0, pool_of, counts)[pool_of] - counts
    else:
        siblings = torch.empty_like(counts)
        held = counts.new_zeros(n_pools, n_classes)
        by_step = step_of.argsort(stable=True)
        for now in torch.split(by_step, torch.bincount(step_of).tolist()):
            held *= forgetting
            siblings[now] = held[pool_of[now]]
            held.index_add_(0, pool_of[now], counts[now])
    # What is left after a subtraction may be below zero by rounding. A class that is banned here may occur elsewhere.
    siblings = siblings.clamp(min=0).masked_fill(base == 0, 0)
    return (siblings + base) / (siblings.sum(1, keepdim=True) + 1)
