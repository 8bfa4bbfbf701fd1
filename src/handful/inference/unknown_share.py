"""The share of unknown items in a batch, and the chance of each item.

The items of a batch are a mixture, `(1-ρ) N(κ m, v₀) + ρ N(m, v₁)`, with each group as one piece of evidence. The share
ρ is uniform with a spike at zero. Known items may lie farther out than those of the catalogue, by a part κ of the way
to the unknown ones; κ is half-normal. Both are integrated over on a grid. The evidence of many groups is limited. Given
ρ and κ, the share of this batch is normal, with groups that are unknown or known as a whole.

A batch may be in memory or in parts on disk: what its items say adds (`likelihoods`), and is read afterwards
(`posterior_of`, `chances_of`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from handful.inference.strangers import Strangers
from handful.shapes import Bool, Float

# Prior chance that a batch has nothing unknown in it.
SPIKE = 0.2
# κ is half-normal with this deviation, cut off at the limit.
DRIFT, LIMIT = 0.25, 0.6
# Values of ρ above zero, and of κ.
SHARES, DRIFTS = 30, 7
# Evidence of more groups than this counts as that of this many. Levels and variances of groups are extrapolated from a
# few examples of each class, and what is wrong with them does not average out over a large batch. Lone items among
# groups then count less by the same factor: in a large batch they are the odd ones of their classes.
MOST_GROUPS = 8.0
# The interval of the share leaves out this probability on either side; it ends at one of this many steps, or at zero.
TAIL, STEPS = 0.05, 60
# A share that is certain counts as normal with this deviation, and as at most what it is by this many of them.
LEAST_DEVIATION, ROUNDING = 1e-6, 10.0
# Least distance of the unknown level from the known one.
LEAST_LEVEL = 0.1
# If groups have fewer items than this on the mean, items stand alone.
ALONE = 2.0
# A likelihood ratio counts at most e to this power, far beyond what could matter.
MOST_RATIO = 60.0
# Numbers in one block of the grid.
BLOCK_NUMBERS = 2**22


class Share(NamedTuple):
    """What the items of each batch say about the share of unknown ones."""

    chances: Float[Tensor, "task item"]  # that the item is unknown; zero where a row is padding
    interval: Float[Tensor, "task 2"]  # quantiles of the share
    evidence: Float[Tensor, "task"]  # Bayes factor for something unknown, against nothing


def share_of(
    strangers: Strangers,
    t: Float[Tensor, "task item"],
    n: Float[Tensor, "task item"],
    weights: Float[Tensor, "task item"],
) -> Share:
    """Integrate over share and drift.

    `t` and `n` are the statistic of each item and the size of its group; as evidence an item counts `weights`, zero if
    it is padding.
    """
    there = weights > 0
    alone = (n * there).sum(1) < ALONE * there.sum(1)
    posterior = posterior_of(likelihoods(strangers, t, n, weights, alone))
    chances = chances_of(strangers, t, n, alone, posterior) * there
    return Share(chances, posterior.interval, posterior.evidence)


class Likelihoods(NamedTuple):
    """What the items of each batch say at every drift and share of the grid; parts of a batch add."""

    log: Float[Tensor, "task drift share"]  # log-likelihood
    unknown: Float[Tensor, "task drift share"]  # expected number of unknown items
    variance: Float[Tensor, "task drift share"]  # of that number, with groups unknown or known as a whole
    n_groups: Float[Tensor, "task"]
    n_items: Float[Tensor, "task"]

    def with_part(self, other: Likelihoods) -> Likelihoods:
        """Add other items of the same batches."""
        return Likelihoods(*(one + two for one, two in zip(self, other, strict=True)))


class Posterior(NamedTuple):
    """What is known about drift and share of each batch."""

    grid: Float[Tensor, "task drift share"]
    interval: Float[Tensor, "task 2"]
    evidence: Float[Tensor, "task"]


def likelihoods(
    strangers: Strangers,
    t: Float[Tensor, "task item"],
    n: Float[Tensor, "task item"],
    weights: Float[Tensor, "task item"],
    alone: Bool[Tensor, "task"],
) -> Likelihoods:
    """Add up what items say; `alone` says whether the items of the batch stand alone."""
    mixture, (n_tasks, n_items) = _Mixture.of(strangers, t, n, alone), t.shape
    there = (weights > 0).to(t)
    # Three sums over the items, with different weights.
    factors = torch.stack([weights, there, there * n], 1).float()
    rho, drifts = _grid(t)
    log, unknown, variance = torch.zeros(3, n_tasks, DRIFTS, SHARES + 1, dtype=t.dtype, device=t.device)
    for tasks, items in _blocks(n_tasks, n_items):
        known, times = mixture.densities(drifts, tasks, items)
        weight, one, size = (factors[tasks, None, place, None, items] for place in range(3))
        # Single precision for the grid: logarithms are several times as fast.
        part = times.unsqueeze(-1) * rho
        both = part + (1 - rho)
        part /= both
        log[tasks] += torch.matmul(weight, both.log_()).squeeze(2)
        log[tasks] += torch.matmul(weight, known.unsqueeze(-1)).squeeze(2)
        unknown[tasks] += torch.matmul(one, part).squeeze(2)
        variance[tasks] += torch.matmul(size, part.mul_(1 - part)).squeeze(2)
    grouped = (weights * (n - 1).clamp(max=1)).sum(1)
    return Likelihoods(log, unknown, variance, grouped, there.sum(1))


def posterior_of(found: Likelihoods) -> Posterior:
    """Weigh the likelihoods with the prior; the evidence of many groups counts as that of `MOST_GROUPS`."""
    rho, drifts = _grid(found.log)
    log_prior = torch.full_like(rho, (1 - SPIKE) / SHARES).log().to(drifts)
    log_prior[0] = math.log(SPIKE)
    counted = (MOST_GROUPS / found.n_groups).clamp(max=1).view(-1, 1, 1)
    log_posterior = log_prior - 0.5 * (drifts / DRIFT).square().unsqueeze(1) + found.log * counted
    grid = log_posterior.flatten(1).softmax(1).view_as(log_posterior)
    nothing = grid[..., 0].sum(1).clamp(min=torch.finfo(drifts.dtype).tiny)
    n_items = found.n_items.clamp(min=1).view(-1, 1, 1)
    interval = _interval(grid, found.unknown / n_items, found.variance / n_items.square())
    return Posterior(grid, interval, (1 - nothing) / nothing * SPIKE / (1 - SPIKE))


def _interval(
    posterior: Float[Tensor, "task drift share"],
    mean: Float[Tensor, "task drift share"],
    variance: Float[Tensor, "task drift share"],
) -> Float[Tensor, "task 2"]:
    """Quantiles of a mixture of normal distributions, rounded outwards."""
    ends = torch.arange(STEPS + 1, dtype=mean.dtype, device=mean.device) / STEPS
    deviation = variance.clamp(min=0).sqrt().clamp(min=LEAST_DEVIATION)
    below = torch.zeros(len(mean), STEPS + 1, dtype=mean.dtype, device=mean.device)
    for step, end in enumerate(ends[:-1]):
        # A share of zero lies at zero, not above it.
        z = (end + LEAST_DEVIATION * ROUNDING - mean) / deviation
        below[:, step] = (torch.special.ndtr(z) * posterior).sum((1, 2))
    below[:, -1] = 1
    low, high = ((below < tail).sum(1) for tail in (TAIL, 1 - TAIL))
    return ends[torch.stack([(low - 1).clamp(min=0), high.clamp(max=STEPS)], 1)]


def chances_of(
    strangers: Strangers,
    t: Float[Tensor, "task item"],
    n: Float[Tensor, "task item"],
    alone: Bool[Tensor, "task"],
    posterior: Posterior,
) -> Float[Tensor, "task item"]:
    """Return the chance of each item to be unknown, over all shares and drifts."""
    mixture, (n_tasks, n_items) = _Mixture.of(strangers, t, n, alone), t.shape
    rho, drifts = _grid(t)
    chances = torch.zeros_like(t)
    for tasks, items in _blocks(n_tasks, n_items):
        _, times = mixture.densities(drifts, tasks, items)
        part = times.unsqueeze(-1) * rho
        part /= part + (1 - rho)
        each = torch.matmul(part, posterior.grid[tasks].float().unsqueeze(-1)).squeeze(-1)
        # Rounding can make a sum of probabilities a little larger than one.
        chances[tasks, items] = each.sum(1, dtype=t.dtype).clamp(max=1)
    return chances


def _grid(like: Tensor) -> tuple[Float[Tensor, "share"], Float[Tensor, "drift"]]:
    """Return the values of ρ and κ."""
    rho = (torch.arange(SHARES + 1, dtype=torch.float32, device=like.device) - 0.5).clamp(min=0) / SHARES
    return rho, torch.linspace(0, LIMIT, DRIFTS, dtype=like.dtype, device=like.device)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Levels and variances of each item."""

    t: Float[Tensor, "task item"]
    level: Float[Tensor, "task item"]
    known: Float[Tensor, "task item"]
    unknown: Float[Tensor, "task item"]

    @classmethod
    def of(
        cls,
        strangers: Strangers,
        t: Float[Tensor, "task item"],
        n: Float[Tensor, "task item"],
        alone: Bool[Tensor, "task"],
    ) -> _Mixture:
        known, unknown = strangers.known.at(n), strangers.unknown.at(n)
        # If items stand alone and the unknown vary less, these would explain any batch: its middle is narrow.
        wide, both = alone.unsqueeze(1) & (known > unknown), (known + unknown) / 2
        known, unknown = both.where(wide, known), both.where(wide, unknown)
        return cls(t, strangers.level.at(n).clamp(min=LEAST_LEVEL), known, unknown)

    def densities(
        self, drifts: Float[Tensor, "drift"], tasks: slice, items: slice
    ) -> tuple[Float[Tensor, "task drift item"], Float[Tensor, "task drift item"]]:
        """Log-density of a known item, and how many times as likely an unknown one is.

        The logarithm of the latter is a parabola in t. Beyond its turning point it is nearly constant: an item farther
        out is never less likely to be unknown.
        """
        t, level, known, unknown = (
            part[tasks, None, items].float() for part in (self.t, self.level, self.known, self.unknown)
        )
        middle = drifts.float().unsqueeze(1) * level
        wider = known - unknown
        wider = torch.full_like(wider, 1e-4).where(wider.abs() < 1e-4, wider)
        turn = (level * known - middle * unknown) / wider
        x = torch.where(wider > 0, torch.minimum(t, turn), torch.maximum(t, turn))
        ratio = 0.5 * torch.log(known / unknown) + (x - middle).square() / (2 * known)
        ratio = ratio - (x - level).square() / (2 * unknown) + 1e-3 * (t - x)
        return -(t - middle).square() / (2 * known) - 0.5 * known.log(), ratio.clamp(max=MOST_RATIO).exp()


def _blocks(n_tasks: int, n_items: int) -> Iterator[tuple[slice, slice]]:
    """Cut a stack into blocks of tasks, or a single task into blocks of items."""
    most = max(1, BLOCK_NUMBERS // (DRIFTS * (SHARES + 1)))
    for first in range(0, n_tasks, size := max(1, most // max(1, n_items))):
        for start in range(0, n_items, most):
            yield slice(first, first + size), slice(start, start + most)
