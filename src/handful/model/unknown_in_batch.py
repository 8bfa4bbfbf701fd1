"""Which items of a batch belong to no class: only two populations in one batch are evidence.

Every item has a statistic t, zero on average for items like the examples of its class and ν for items of no class
(`handful.model.unknown_of_catalogue`). Groups of G items that belong together have the variance v = 0.1 + 0.9/G. So

    t ~ (1-ρ) N(κ, ω v) + ρ N(κ + ν, ω v₁).

The catalogue tells v₁, which is at least v. Two things are not known in advance, and are integrated over beside the
share ρ:

- κ: a batch from the source of the catalogue has κ near zero, and ω = 1. One from elsewhere is farther from the
  catalogue as a whole,
- ω: and its classes vary more, because some are measured as the examples were and others are not.

A batch in which everything is far is shifted, or has no known items: where the two cannot be told apart the interval of
the share is wide, and the chance of every item is below one half. All items of a class lie far for one reason, so a
class is one piece of evidence. Items whose class a person said tell κ and ω, and nothing about ρ: people label what
they know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, log_softmax

from handful.model.arrays import Bools, Floats
from handful.model.knowledge import ToldShare
from handful.model.limits import (
    ABOVE,
    DENSITIES,
    LEAST_DIFFERENCE,
    LEAST_LOG_CELL,
    LEAST_LOG_RATIO,
    LEAST_VARIANCE,
    MOST_LOG_RATIO,
    NO_CELL,
    NORMAL_CUBE,
    NORMAL_SLOPE,
)
from handful.model.settings import DEFAULT, Settings
from handful.model.unknown_of_catalogue import UnknownModel


class UnknownEvidence(NamedTuple):
    """What the items of each batch look like."""

    t: Floats  # [batch, item], the statistic
    sizes: Floats  # [batch, item], of the group that it stands for
    weights: Floats  # [batch, item], what it counts as evidence
    labelled: Bools  # [batch, item], whether a person said its class
    restriction: Floats  # [batch, item], 0 if it may have all classes, 1 if it may have one, see `Scores.restriction`

    @classmethod
    def of(cls, t: Floats) -> UnknownEvidence:
        """Make those of single items, [batch, item]."""
        return cls(t, np.ones_like(t), np.ones_like(t), np.zeros(t.shape, bool), np.zeros_like(t))

    def part(self, batches: slice, items: slice = slice(None)) -> UnknownEvidence:
        """Return that of some batches and items, in double precision."""
        t, sizes, weights, restriction = (
            each[batches, items].astype(np.float64) for each in (self.t, self.sizes, self.weights, self.restriction)
        )
        return UnknownEvidence(t, sizes, weights, self.labelled[batches, items], restriction)


@dataclass(frozen=True, eq=False)
class UnknownPosterior:
    """What is known about the share of unknown items of each batch.

    Attributes
    ----------
    model : UnknownModel
        Of the catalogue.
    grid : Floats
        Posterior of share, shift and width, [batch, share, shift, width].
    interval : Floats
        Of the share, 90 %, [batch, 2].
    settings : Settings
        Numbers of the model.
    """

    model: UnknownModel
    grid: Floats
    interval: Floats
    settings: Settings

    @classmethod
    def of(
        cls,
        model: UnknownModel,
        evidence: UnknownEvidence,
        share: ToldShare | None = None,
        settings: Settings = DEFAULT,
    ) -> UnknownPosterior:
        """Integrate over everything; the share has the default prior where none is told.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> model = UnknownModel((0.0, 1.0), (0, 1), (0, 1), 1.0, (6.0, 0.0), (1.0, 0.0), 1.0)
        >>> evidence = UnknownEvidence.of(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)])[None])
        >>> posterior = UnknownPosterior.of(model, evidence)
        >>> int((posterior.of_items(evidence) > 0.5).sum())
        20
        >>> shifted = UnknownEvidence.of(rng.normal(3, 1, (1, 60)))  # everything is
        >>> int((UnknownPosterior.of(model, shifted).of_items(shifted) > 0.5).sum())
        0
        """
        n_batches, n_items = evidence.t.shape
        prior = _prior(share, n_batches, settings)
        size = max(1, DENSITIES // n_items)
        parts = [slice(at, at + size) for at in range(0, n_batches, size)]
        found = [_integrated(model, prior[part], evidence.part(part), settings) for part in parts]
        grid, interval = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls(model, grid, interval, settings)

    def of_items(self, evidence: UnknownEvidence) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown, by its own evidence, [batch, item]."""
        n_batches, n_items = evidence.t.shape
        shares = _grid(self.settings).shares
        grid = self.grid.reshape(n_batches, len(shares), -1)
        unknown = np.zeros(evidence.t.shape)
        high = max(1, DENSITIES // n_items)
        for top in range(0, n_batches, high):
            some = slice(top, top + high)
            sources, weights = _likely(grid[some], self.settings)
            for left in range(0, n_items, DENSITIES):
                here = some, slice(left, left + DENSITIES)
                ratio = _unknown_ratio(self.model, evidence.part(*here), sources, self.settings)
                inverse = 1 / ratio
                for number in range(1, len(shares)):
                    chance = _item_posterior(inverse, shares[number])
                    unknown[here] += (chance @ weights[:, number, :, None])[..., 0]
        return unknown.clip(0, 1)


def rejection_limit(unknown: Floats, share: ToldShare | None, settings: Settings = DEFAULT) -> Floats:
    """Chance above which an item is rejected, [batch]: one half, as long as no share is told.

    If a share is told, as many items are rejected as are expected to be unknown, `Σ_n c_n`, the most likely ones; but
    no more than so that 15 % (`most_known_rejected`) of the known items are expected to be among them.

    Examples
    --------
    >>> rejection_limit(np.array([[0.95, 0.4, 0.45, 0.1]]), ToldShare.of(np.array([3.0, 7.0])))
    array([0.45])
    >>> rejection_limit(np.array([[0.99, 0.98, 0.9, 0.6, 0.0, 0.0]]), None)
    array([0.5])
    """
    limit = np.full(len(unknown), settings.rejected)
    if share is None:
        return limit
    falling = -np.sort(-unknown, axis=-1)
    known = 1 - falling
    few = known.cumsum(-1) <= settings.most_known_rejected * known.sum(-1, keepdims=True)
    expected = np.rint(falling.sum(-1, keepdims=True)).astype(np.intp)
    most = np.minimum(few.sum(-1, keepdims=True), expected)
    falling = np.concatenate([falling, np.zeros((len(unknown), 1))], -1)
    return np.where(share.told, np.take_along_axis(falling, most, -1)[:, 0], limit)


def _prior(share: ToldShare | None, n_batches: int, settings: Settings) -> Floats:
    """Chance of each share, [batch, share]: as told, or the default one."""
    shares = _grid(settings).shares
    nothing = settings.nothing_unknown
    ends = np.linspace(0, 1, len(shares))
    default = np.concatenate([[nothing], (1 - nothing) * np.diff(1 - (1 - ends) ** 2)])
    if share is None:
        return np.broadcast_to(default, (n_batches, len(shares)))
    a = share.a[:, None]
    beta = np.diff(betainc(np.maximum(a, np.finfo(np.float64).tiny), share.b[:, None], ends))
    beta = np.where(a > 0, np.pad(beta, [(0, 0), (1, 0)]), shares == 0)
    return np.where(share.told[:, None], beta, default)


class _Grid(NamedTuple):
    """Values that are summed over. A source is a shift and a width, with the log of its prior chance."""

    shifts: Floats  # [shift], κ
    widths: Floats  # [width], ω
    shares: Floats  # [share], ρ
    log_prior: Floats  # [shift, width]


@cache
def _grid(settings: Settings) -> _Grid:
    shifts = np.array(settings.shifts)
    widths = np.array(settings.widths)
    same = np.full((len(shifts), len(widths)), -np.inf)
    same[:, 0] = log_softmax(-0.5 * (shifts / settings.home_shift) ** 2)
    # A Cauchy distribution: a batch may be very far.
    of_shifts = -np.log1p((shifts / settings.other_shift) ** 2)
    of_widths = -0.5 * (np.log2(widths) / settings.other_width) ** 2
    other = log_softmax(of_shifts)[:, None] + log_softmax(of_widths)
    log_prior = np.logaddexp(np.log(1 - settings.elsewhere) + same, np.log(settings.elsewhere) + other)
    shares = np.concatenate([[0.0], (np.arange(settings.shares) + 0.5) / settings.shares])
    return _Grid(shifts, widths, shares, log_prior)


def _variance(sizes: Floats, settings: Settings) -> Floats:
    """`v`: of t of groups of G items from the source of the catalogue; what a class has in common does not fall."""
    return np.asarray(settings.common + (1 - settings.common) / sizes)


def _integrated(
    model: UnknownModel, prior: Floats, evidence: UnknownEvidence, settings: Settings
) -> tuple[Floats, Floats]:
    """Return grids [batch, share, shift, width] and intervals [batch, 2]."""
    t, sizes, weights, labelled, _ = evidence
    shifts, widths, shares, log_prior = _grid(settings)
    variance = _variance(sizes, settings)
    squares = ((t[:, None] - shifts[:, None]) ** 2 / variance[:, None]) @ weights[..., None]  # [batch, shift, 1]
    known = -0.5 * (squares / widths + weights.sum(1)[:, None, None] * np.log(widths)).reshape(len(t), -1)

    ratio = _unknown_ratio(model, evidence, np.arange(log_prior.size), settings)
    free = np.where(labelled, 0.0, weights)[:, None].astype(np.float32)
    log = np.zeros((len(t), len(shares), log_prior.size))
    for number in range(1, len(shares)):
        mixed = ratio * np.float32(shares[number]) + np.float32(1 - shares[number])
        log[:, number] = (free @ np.log(mixed))[:, 0]
    if labelled.any():
        said = np.where(labelled, weights, 0.0)[:, None].astype(np.float32)
        log += said @ np.log(ratio * np.float32(settings.wrong_label) + np.float32(1 - settings.wrong_label))
    log += known[:, None]
    with np.errstate(divide="ignore"):
        log += log_prior.ravel()
        log += np.log(prior)[..., None]
    log -= log.max((1, 2), keepdims=True)
    grid = np.exp(np.maximum(log, LEAST_LOG_CELL, dtype=np.float32))
    grid /= grid.sum((1, 2), keepdims=True)
    interval = _share_in_batch(grid, ratio, sizes, labelled, settings)
    return grid.reshape(len(t), len(shares), *log_prior.shape), interval


def _unknown_ratio(
    model: UnknownModel, evidence: UnknownEvidence, sources: npt.NDArray[np.intp], settings: Settings
) -> Floats:
    """How many times as likely items are if they are unknown, [batch, item, source].

    Its log is a parabola in x = t - κ. Before its turning point it is constant: an item farther out is never less
    likely to be unknown.
    """
    shifts, widths, _, log_prior = _grid(settings)
    shift, width = np.unravel_index(sources, log_prior.shape)
    level = model.levels(evidence.sizes, evidence.restriction)
    base, extra = model.unknown
    known = _variance(evidence.sizes, settings)
    # Unknown items that vary less than known ones would explain any batch: its middle is narrow.
    unknown = np.maximum(known, base + extra / evidence.sizes)
    turning_point = -level * known / np.maximum(unknown - known, LEAST_DIFFERENCE)
    half_curvature = (1 / known - 1 / unknown) / 2
    constant = np.log(known / unknown) / 2
    each = (turning_point, half_curvature, level / unknown, level**2 / (2 * unknown), constant)
    turning, a, b, c, log_ratio = (one.astype(np.float32)[..., None] for one in each)
    x = np.maximum(evidence.t.astype(np.float32)[..., None] - shifts[shift].astype(np.float32), turning)
    log = ((a * x + b) * x - c) / widths[width].astype(np.float32) + log_ratio
    np.clip(log, np.float32(LEAST_LOG_RATIO), np.float32(MOST_LOG_RATIO), out=log)
    return np.asarray(np.exp(log, out=log))


def _item_posterior(inverse_ratio: Floats, share: float) -> Floats:
    """Chance of each item to be unknown if sources and share hold, [batch, item, source]."""
    chance = inverse_ratio * np.float32((1 - share) / share)
    chance += 1
    return np.asarray(np.reciprocal(chance, out=chance))


def _likely(grid: Floats, settings: Settings) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the sources that count in any batch, and the grid of these, [batch, share, source]; zero if too small."""
    likely = grid > settings.least_source * grid.max((1, 2), keepdims=True)
    sources = np.flatnonzero(likely.any((0, 1)))
    return sources, (grid * likely).take(sources, -1)


def _share_in_batch(grid: Floats, ratio: Floats, sizes: Floats, labelled: Bools, settings: Settings) -> Floats:
    """5 % and 95 % quantiles of the share of unknown items [batch, 2].

    The share has a normal distribution for each cell of the grid. A quantile is rounded outwards to parts of one: it is
    the number of ends below which lies less than the tail, counted in halves.
    """
    shares = _grid(settings).shares
    parts = settings.interval_parts
    free = ~labelled
    (sources, weights) = _likely(grid, settings)
    inverse = 1 / ratio.take(sources, -1)
    mean = np.zeros_like(weights)
    variance = np.zeros_like(weights)
    counted = (np.stack([free, sizes * free], 1) / free.shape[1]).astype(np.float32)
    for number in range(1, len(shares)):
        chance = _item_posterior(inverse, shares[number])
        mean[:, number], variance[:, number] = (counted @ chance).swapaxes(0, 1)
        variance[:, number] -= (counted[:, 1:] @ np.multiply(chance, chance, out=chance))[:, 0]
    # Of each batch, the cells that count: one after the other.
    cells = np.flatnonzero(weights > NO_CELL * weights.max((1, 2), keepdims=True))
    mean, variance, weights = (each.take(cells) for each in (mean, variance, weights))
    n_cells = np.bincount(cells // (len(shares) * len(sources)))
    firsts = n_cells.cumsum() - n_cells
    deviation = np.sqrt(np.maximum(variance / free.shape[1], np.float32(LEAST_VARIANCE)))
    steepness = np.float32(NORMAL_SLOPE) / deviation
    tails = np.array([[settings.interval_tail], [1 - settings.interval_tail]])
    ends_below = np.zeros((2, len(grid)), int)
    total = np.add.reduceat(weights, firsts)
    for power in reversed(range(parts.bit_length())):
        width = 2**power
        end = ends_below + width - 1
        y = np.repeat((end / parts + ABOVE).astype(np.float32), n_cells, axis=1)
        y -= mean
        y *= steepness
        y *= 1 + np.float32(NORMAL_CUBE) * y * y
        below = np.add.reduceat(np.tanh(y, out=y) * weights, firsts, 1)
        ends_below = ends_below + width * (((total + below) / 2 < tails) & (end < parts))
    return np.asarray(np.stack([np.maximum(ends_below[0] - 1, 0), ends_below[1]], 1) / parts)
