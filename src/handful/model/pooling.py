"""What batches say about their siblings: a common base measure, and how closely batches follow it.

Batches that are siblings, for instance the visits to one site, have shares drawn from a Dirichlet of concentration c
around a base measure. For batch g that is the counts of its siblings, on top of one item of what is known without them:

    A_gk = Σ_g' λ^{steps(g', g)} N_g'k,    π_gk = (A_gk + π⁰_gk) / (Σ_k A_gk + 1).

g' runs over all siblings but g, with λ = 1. If batches are ordered, it runs over the earlier ones, and λ says how much
of what was counted is left one step later. π⁰ are the shares of a prior, or equal ones; where π⁰ is zero, so is A.

**Estimates.** The labels of g, H_g, were not used for π_g, so `ln p(H_g | c π_g)` of the Dirichlet-multinomial says how
well siblings predict it. Its gain over the same likelihood with π⁰ in place of π, and the most likely c for that, is
added up over the batches of a pool of siblings. c and λ are those of the largest sum of gains over the pools, a pool
that loses counting zero. **Where a pool does not gain**, its batches are labelled without their siblings.

The labels have errors, and errors look as if batches differed. So batches follow their base measure more closely than
c says, and are labelled with ten times c (`follow`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from handful.model.settings import DEFAULT, Settings

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Pooled:
    """What the siblings of each batch say.

    Attributes
    ----------
    shares
        π of each batch, [group, class]; b where pooling does not help.
    concentration
        c, before it is multiplied by `follow`.
    forgetting
        λ; one if batches have no order.
    gain
        Nats per item by which siblings predict the labels of a batch better than b does, [pool].
    used
        Whether siblings are used, [pool].
    """

    shares: Floats
    concentration: float
    forgetting: float
    gain: Floats
    used: npt.NDArray[np.bool_]


def pooled(
    counts: Floats,
    labels: Floats,
    base: Floats,
    pool_of: Ints,
    step_of: Ints | None,
    settings: Settings = DEFAULT,
) -> Pooled:
    """Estimate base measures, concentration and forgetting.

    Parameters
    ----------
    counts, labels
        N and H [group, class]: expected counts of each batch, and how many of its items have each label, each batch
        labelled alone.
    base
        b [group, class], the shares of each batch before anything is known about its siblings.
    pool_of, step_of
        The pool of each batch, counted from zero, and its place in the order, if there is one; batches of a pool that
        have the same place say nothing about each other.
    """
    n_pools = int(pool_of.max()) + 1
    entries = labels.nonzero()
    seen = _LabelCounts(entries[0], labels[entries], labels.sum(1), pool_of, n_pools, settings)
    alone = seen.likelihood(base[entries])
    without = alone[alone.sum(1).argmax()]
    tried = []
    for forgetting in settings.forgetting if step_of is not None else (1.0,):
        shares = _shares(counts, base, pool_of, step_of, forgetting)
        gains = seen.likelihood(shares[entries]) - without
        # If no pool gains, the smallest loss is reported.
        ranks = zip(gains.clip(min=0).sum(1).tolist(), gains.sum(1).tolist(), strict=True)
        rank, row = max((rank, -row) for row, rank in enumerate(ranks))
        tried.append((rank, forgetting, settings.concentrations[-row], gains[-row]))
    _, forgetting, concentration, gain = max(tried, key=lambda one: one[:2])
    used = gain > settings.least_gain
    shares = _shares(counts, base, pool_of, step_of, forgetting)
    items = np.bincount(pool_of, seen.sizes, n_pools)
    shares = np.where(used[pool_of][:, None], shares, base)
    return Pooled(shares, concentration, forgetting, gain / np.maximum(items, 1), used)


@dataclass(frozen=True)
class _LabelCounts:
    """Labels of all batches: the entries that are not zero."""

    group: Ints
    number: Floats
    sizes: Floats
    pool_of: Ints
    n_pools: int
    settings: Settings

    def likelihood(self, shares: Floats) -> Floats:
        """`ln p(H | c π)`, added up over the batches of each pool, for every c: [concentration, pool]."""
        rows = []
        for c in self.settings.concentrations:
            of_entry = gammaln(c * shares + self.number) - gammaln(c * shares)
            total = gammaln(c) - gammaln(c + self.sizes) + np.bincount(self.group, of_entry, len(self.sizes))
            rows.append(np.bincount(self.pool_of, total, self.n_pools))
        return np.stack(rows)


def _shares(counts: Floats, base: Floats, pool_of: Ints, step_of: Ints | None, forgetting: float) -> Floats:
    """π of each batch."""
    totals = np.zeros((int(pool_of.max()) + 1, counts.shape[1]))
    if step_of is None:
        np.add.at(totals, pool_of, counts)
        siblings = totals[pool_of] - counts
    else:
        siblings = np.empty_like(counts)
        for step in np.unique(step_of):
            now = np.flatnonzero(step_of == step)
            totals *= forgetting
            siblings[now] = totals[pool_of[now]]
            np.add.at(totals, pool_of[now], counts[now])
    # What is left after a subtraction may be below zero by rounding. A class that is banned here may occur elsewhere.
    siblings = np.where(base == 0, 0, siblings.clip(min=0))
    return np.asarray((siblings + base) / (siblings.sum(1, keepdims=True) + 1))
