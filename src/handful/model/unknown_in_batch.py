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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, log_softmax

from handful.model.arrays import Bools, Floats, Ints
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
    STEPS_OF_SHARE,
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
    prior : Floats
        Chance of each share, [batch, share].
    evidence : UnknownEvidence
        Of the items that tell it.
    settings : Settings
        Numbers of the model.
    """

    model: UnknownModel
    prior: Floats
    evidence: UnknownEvidence
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
        return cls(model, _prior(share, len(evidence.t), settings), evidence, settings)

    def _parts(self) -> list[slice]:
        """Batches that are integrated over at a time."""
        n_batches, n_items = self.evidence.t.shape
        size = max(1, DENSITIES // n_items)
        return [slice(at, at + size) for at in range(0, n_batches, size)]

    @cached_property
    def grid(self) -> Floats:
        """Posterior of share, shift and width, [batch, share, source]."""
        parts = ((self.prior[part], self.evidence.part(part)) for part in self._parts())
        return np.concatenate([_integrated(self.model, *part, self.settings) for part in parts])

    @cached_property
    def interval(self) -> Floats:
        """Interval of the share, 90%, [batch, 2]."""
        every = np.arange(self.grid.shape[-1])
        ends = []
        for part in self._parts():
            evidence = self.evidence.part(part)
            ratio = _unknown_ratio(self.model, evidence, every, self.settings)
            ends.append(_share_in_batch(self.grid[part], ratio, evidence.sizes, evidence.labelled, self.settings))
        return np.concatenate(ends)

    def of_items(self, evidence: UnknownEvidence) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown, by its own evidence, [batch, item]."""
        n_batches, n_items = evidence.t.shape
        if evidence is self.evidence and n_items == 1:
            return self._of_single_items()
        shares = _grid(self.settings).shares
        unknown = np.zeros(evidence.t.shape)
        high = max(1, DENSITIES // n_items)
        for top in range(0, n_batches, high):
            some = slice(top, top + high)
            sources, weights = _likely(self.grid[some], self.settings)
            for left in range(0, n_items, DENSITIES):
                here = some, slice(left, left + DENSITIES)
                ratio = _unknown_ratio(self.model, evidence.part(*here), sources, self.settings)
                inverse = 1 / ratio
                for number in range(1, len(shares)):
                    chance = _item_posterior(inverse, shares[number])
                    unknown[here] += (chance @ weights[:, number, :, None])[..., 0]
        return unknown.clip(0, 1)

    def _of_single_items(self) -> npt.NDArray[np.float64]:
        """Return (15) of items that are batches of their own: `E[ρ] Σ P N_unknown / Σ P ((1 - E[ρ]) N_known + …)`.

        A posterior of one item takes one sum over the sources: the share stands in both parts as its mean alone.
        """
        shares = _grid(self.settings).shares
        mean = (self.prior @ shares)[:, None]
        evidence = self.evidence.part(slice(None))
        known = _by_known(evidence, self.settings)
        ratio = _unknown_ratio(self.model, evidence, np.arange(known.shape[-1]), self.settings)
        weights = np.exp(known - known.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        unknown = mean * (weights[:, None] @ ratio[:, 0, :, None])[..., 0]
        return np.asarray(unknown / (1 - mean + unknown))


class UnknownCounts(NamedTuple):
    """How many items of each batch have which chance to be unknown, in steps; counts of parts of a batch add.

    Chances are rounded up to a step, so an item is above a step if its chance is.
    """

    steps: Ints  # [batch, some], falling
    counts: Ints  # [batch, some], items

    @classmethod
    def of(cls, unknown: Floats) -> UnknownCounts:
        """Count the items of batches, [batch, item]."""
        steps = -np.sort(-np.ceil(unknown * STEPS_OF_SHARE).astype(np.int64), axis=-1)
        return cls(steps, np.ones_like(steps))

    @classmethod
    def added(cls, parts: Sequence[UnknownCounts]) -> UnknownCounts:
        """Add those of parts of a single batch."""
        steps, which = np.unique(np.concatenate([part.steps[0] for part in parts]), return_inverse=True)
        counts = np.bincount(which, np.concatenate([part.counts[0] for part in parts])).astype(np.int64)
        return cls(steps[None, ::-1], counts[None, ::-1])

    def above(self, limit: Floats) -> Ints:
        """Return the number of items above a limit, [batch], which is a step."""
        least = np.rint(limit * STEPS_OF_SHARE)[:, None]
        return np.asarray((self.counts * (self.steps > least)).sum(-1))


def rejection_limit(unknown: UnknownCounts, share: ToldShare | None, settings: Settings = DEFAULT) -> Floats:
    """Chance above which an item is rejected, [batch]: one half, as long as no share is told.

    If a share is told, as many items are rejected as are expected to be unknown, `Σ_n c_n`, the most likely ones; but
    no more than so that 15% (`most_known_rejected`) of the known items are expected to be among them. Both are sums
    over items, so parts of a batch in any order have one limit.

    Examples
    --------
    >>> told = ToldShare.of(np.array([3.0, 7.0]))
    >>> rejection_limit(UnknownCounts.of(np.array([[0.95, 0.4, 0.45, 0.1]])), told).round(3)
    array([0.45])
    >>> rejection_limit(UnknownCounts.of(np.array([[0.99, 0.98, 0.9, 0.6, 0.0, 0.0]])), None)
    array([0.5])
    """
    limit = np.full(len(unknown.steps), settings.rejected)
    if share is None:
        return limit
    steps, counts = unknown
    known = counts * (STEPS_OF_SHARE - steps)
    few = known.cumsum(-1) <= settings.most_known_rejected * known.sum(-1, keepdims=True)
    expected = np.rint((counts * steps).sum(-1, keepdims=True) / STEPS_OF_SHARE)
    fits = few & (counts.cumsum(-1) <= expected)
    # The first step of which not all items fit; zero where all do.
    falling = np.concatenate([steps, np.zeros_like(steps[:, :1])], -1)
    first = np.take_along_axis(falling, fits.sum(-1, keepdims=True), -1)[:, 0]
    return np.where(share.told, first / STEPS_OF_SHARE, limit)


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


def _by_known(evidence: UnknownEvidence, settings: Settings) -> Floats:
    """Return log chances of sources if all items are known, [batch, source]."""
    t, sizes, weights, _, _ = evidence
    shifts, widths, _, log_prior = _grid(settings)
    variance = _variance(sizes, settings)
    squares = (((t[:, None] - shifts[:, None]) ** 2 / variance[:, None]) @ weights[..., None])[..., 0]
    of_width = np.tile(widths, len(shifts))
    known = np.repeat(squares, len(widths), 1)
    known /= -2 * of_width
    known += weights.sum(1)[:, None] * (-0.5 * np.log(of_width))
    known += log_prior.ravel()
    return known


def _integrated(model: UnknownModel, prior: Floats, evidence: UnknownEvidence, settings: Settings) -> Floats:
    """Return grids [batch, share, source]."""
    _, _, weights, labelled, _ = evidence
    shares = _grid(settings).shares
    known = _by_known(evidence, settings)
    free = np.where(labelled, 0.0, weights)[:, None].astype(np.float32)
    log_ratio = _log_unknown_ratio(model, evidence, np.arange(known.shape[-1]), settings)
    possible = _possible_sources(known, free, log_ratio, prior, settings)
    sources = np.flatnonzero(possible.any(0))
    ratio = np.exp(log_ratio[..., sources])
    # By the likeliest source, differences that count have all their digits in single precision.
    by_known = (known - known.max(-1, keepdims=True))[:, sources].astype(np.float32)
    some = np.zeros((len(known), len(shares), len(sources)), np.float32)
    mixed = np.empty_like(ratio)
    for number in range(1, len(shares)):
        np.multiply(ratio, np.float32(shares[number]), out=mixed)
        mixed += np.float32(1 - shares[number])
        some[:, number] = (free @ np.log(mixed, out=mixed))[:, 0]
    if labelled.any():
        said = np.where(labelled, weights, 0.0)[:, None].astype(np.float32)
        some += said @ np.log(ratio * np.float32(settings.wrong_label) + np.float32(1 - settings.wrong_label))
    with np.errstate(divide="ignore"):
        some += np.where(possible[:, sources], by_known, -np.inf)[:, None]
        some += np.log(prior)[..., None].astype(np.float32)
    some -= some.max((1, 2), keepdims=True)
    np.maximum(some, np.float32(LEAST_LOG_CELL), out=some)
    grid = np.full((len(known), len(shares), known.shape[-1]), np.exp(np.float32(LEAST_LOG_CELL)))
    grid[..., sources] = np.exp(some, out=some)
    grid /= grid.sum((1, 2), keepdims=True)
    return grid


def _possible_sources(known: Floats, free: Floats, log_ratio: Floats, prior: Floats, settings: Settings) -> Bools:
    """Return which sources can count, [batch, source]: no share makes the others as likely as `least_source`.

    A source is at most as likely as if every item were known or unknown, whatever suits it; and the likeliest one is
    at least as likely as if all were known, unless nobody expects that.
    """
    most = known + (free @ np.maximum(log_ratio, 0))[:, 0]
    with np.errstate(divide="ignore"):
        least = known.max(-1, keepdims=True) + np.log(settings.least_source * prior[:, :1])
    return np.asarray(most > least)


def _unknown_ratio(
    model: UnknownModel, evidence: UnknownEvidence, sources: npt.NDArray[np.intp], settings: Settings
) -> Floats:
    """How many times as likely items are if they are unknown, [batch, item, source]."""
    log = _log_unknown_ratio(model, evidence, sources, settings)
    return np.asarray(np.exp(log, out=log))


def _log_unknown_ratio(
    model: UnknownModel, evidence: UnknownEvidence, sources: npt.NDArray[np.intp], settings: Settings
) -> Floats:
    """Log of how many times as likely items are if they are unknown, [batch, item, source].

    It is a parabola in x = t - κ. Before its turning point it is constant: an item farther out is never less
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
    log = a * x
    log += b
    log *= x
    log -= c
    log /= widths[width].astype(np.float32)
    log += log_ratio
    return np.asarray(np.clip(log, np.float32(LEAST_LOG_RATIO), np.float32(MOST_LOG_RATIO), out=log))


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
    """5% and 95% quantiles of the share of unknown items [batch, 2].

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
