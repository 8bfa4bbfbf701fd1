"""Which items of a batch belong to no class: only two populations in one batch are evidence.

Every item has a statistic t (`levels`), zero on average for items like the examples of its class and m for items of no
class; the catalogue tells m and the variances of both, for groups of n items that belong together. So

    t ~ (1-ρ) N(κ, w v₀) + ρ N(κ + g m, w g v₁).

Three things are not known in advance, and are integrated over:

- **The source.** A batch from the source of the catalogue has κ near zero and w = 1. One from elsewhere is farther from
  the catalogue as a whole, and its items vary more: κ and w are larger.
- **How unlike the unknown items are.** Most batches have g = 1, as the left-out classes of the catalogue. In others,
  g is small: items of no class look nearly like those of some class, and no batch can tell how many there are.
- **The share ρ**: none with chance one half, else with density 2(1-ρ); or a Beta distribution that is told in advance.

A batch in which everything is far is shifted, or has no known items: where the two cannot be told apart the interval of
the share is wide, and the chance of every item is below one half. What a person said about items counts as evidence: an
item of no class tells κ and g, and both kinds tell ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, log_softmax, ndtr

from handful.engine.levels import Levels

Floats = npt.NDArray[np.floating]

# Chance that nothing is unknown, before anything is seen.
NOTHING_UNKNOWN = 0.5
# Chance that a batch comes from elsewhere; the deviation of κ if it does not and if it does, and that of log₄ w.
ELSEWHERE, SAME_SHIFT, OTHER_SHIFT, OTHER_WIDTH = 0.7, 0.4, 2.0, 0.8
# g of batches whose unknown items look nearly known, and the chance of such a batch.
NEAR_LEVEL, NEAR_CHANCE = 0.3, 0.25
# Evidence of more groups than this counts as that of this many: what is wrong with levels and variances does not
# average out over a large batch.
MOST_GROUPS = 8.0
# Values of κ, log₄ w, g and ρ that are summed over.
SHIFTS, LOG_WIDTHS, FACTORS = np.linspace(-1, 7, 17), np.linspace(0, 1, 4), np.array([NEAR_LEVEL, 1.0])
SHARES = np.concatenate([[0.0], (np.arange(12) + 0.5) / 12])[:, None]
# Least distance of the unknown level from the known one, and the largest log of a likelihood ratio.
LEAST_LEVEL, MOST_RATIO = 0.1, 60.0
# An item is rejected above this chance.
REJECTED = 0.5
# The interval leaves out this probability on either side; its ends are multiples of one by STEPS.
TAIL, STEPS = 0.05, 60
# Items whose densities are computed at a time.
BLOCK_ITEMS = 256
# Cells of the grid that count, by the largest one: for an interval, and for a chance.
OF_INTERVAL, OF_CHANCE = 1e-4, 1e-8


class Looks(NamedTuple):
    """What the items of a batch look like; leading axes are the batches of a stack."""

    t: Floats  # [..., item], the statistic
    sizes: Floats  # [..., item], of the group that it stands for
    weights: Floats  # [..., item], what it counts as evidence
    told: Floats  # [..., item], 1 if it is known to have no class, 0 if it has one, NaN if neither
    with_none: Floats  # [..., item], chance to share a class with another item that is known to have none, and
    with_known: Floats  # [..., item], with one that is known to have one

    @classmethod
    def of(cls, t: Floats) -> Looks:
        """Make those of single items."""
        return cls(t, np.ones_like(t), np.ones_like(t), np.full_like(t, np.nan), np.zeros_like(t), np.zeros_like(t))


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about the share of unknown items of each batch of a stack.

    Attributes
    ----------
    levels : Levels
        Of the catalogue.
    grid : Floats
        Posterior of shift, width, level and share, [..., shift, width, level, share].
    interval : Floats
        Of the share, 90 %, [..., 2].
    """

    levels: Levels
    grid: Floats
    interval: Floats

    @classmethod
    def of(cls, levels: Levels, looks: Looks, unknown_share: Floats | None = None) -> Verdict:
        """Integrate over everything; `unknown_share` is [..., 2] as in `Context`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> levels = Levels((0.0, 1.0), (0, 1), (0, 1), (6.0, 0.0), (1.0, 0.0), (1.0, 0.0), 1.0)
        >>> looks = Looks.of(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)]))
        >>> found = Verdict.of(levels, looks)
        >>> int((found.chances(looks.t, looks.sizes) > REJECTED).sum())
        20
        >>> shifted = Looks.of(rng.normal(3, 1, 60))  # everything is
        >>> int((Verdict.of(levels, shifted).chances(shifted.t, shifted.sizes) > REJECTED).sum())
        0
        """
        lead, n_items = np.shape(looks.t)[:-1], np.shape(looks.t)[-1]
        t, n, w, told = (np.asarray(each, np.float64).reshape(-1, n_items) for each in looks[:4])
        prior = _prior(np.full((len(t), 2), np.nan) if unknown_share is None else unknown_share.reshape(-1, 2))
        size = max(1, BLOCK_ITEMS // n_items)
        parts = [slice(at, at + size) for at in range(0, len(t), size)]
        found = [_integrated(levels, prior[part], t[part], n[part], w[part], told[part]) for part in parts]
        grid, interval = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls(levels, grid.reshape(*lead, *grid.shape[1:]), interval.reshape(*lead, 2))

    def chances(self, t: Floats, sizes: Floats) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown, [..., item]."""
        shape, n_items = t.shape, t.shape[-1]
        t, sizes, found = t.reshape(-1, n_items).astype(np.float64), sizes.reshape(-1, n_items), np.empty(t.shape)
        grid, found = self.grid.reshape(len(t), -1).astype(np.float32), found.reshape(-1, n_items)
        high, wide = max(1, BLOCK_ITEMS // n_items), BLOCK_ITEMS
        for top in range(0, len(t), high):
            some = slice(top, top + high)
            batch, cell = _cells(grid[some], OF_CHANCE)
            weights, starts = grid[some][batch, cell, None], np.searchsorted(batch, np.arange(len(grid[some])))
            for left in range(0, n_items, wide):
                here = some, slice(left, left + wide)
                each = _chances(_densities(self.levels, t[here], sizes[here])[1], batch, cell)
                found[here] = np.add.reduceat(weights * each, starts)
        return found.reshape(shape).clip(0, 1)


def limit_of(chances: Floats, unknown_share: Floats | None) -> Floats:
    """Chance above which an item is rejected, [...]: if a share is told, that of the `Σ_n c_n` most likely ones.

    Examples
    --------
    >>> limit_of(np.array([0.1, 0.4, 0.45, 0.3]), np.array([3.0, 7.0]))
    array(0.4)
    >>> limit_of(np.array([0.1, 0.4, 0.45, 0.3]), None)
    array(0.5)
    """
    lead = chances.shape[:-1]
    limit = np.full(lead, REJECTED)
    if unknown_share is None:
        return limit
    most = np.rint(chances.sum(-1, keepdims=True)).astype(np.intp)
    falling = np.concatenate([-np.sort(-chances, axis=-1), np.zeros((*lead, 1))], -1)
    return np.where(np.isnan(unknown_share[..., 0]), limit, np.take_along_axis(falling, most, -1)[..., 0])


def _prior(unknown_share: Floats) -> Floats:
    """Chance of each share, [batch, share], from a and b of each batch."""
    a, b = unknown_share[:, 0, None], unknown_share[:, 1, None]
    ends = np.linspace(0, 1, len(SHARES))
    told = np.diff(betainc(np.maximum(a, np.finfo(np.float64).tiny), b, ends))
    told = np.where(a > 0, np.pad(told, [(0, 0), (1, 0)]), SHARES[:, 0] == 0)
    default = np.concatenate([[NOTHING_UNKNOWN], (1 - NOTHING_UNKNOWN) * np.diff(1 - (1 - ends) ** 2)])
    return np.where(np.isnan(a), default, told)


def known_chances(unknown: Floats) -> npt.NDArray[np.float64]:
    """Chance of each item to have a class; one if the catalogue cannot tell."""
    return np.where(np.isnan(unknown), 1.0, 1 - unknown)


def single_known_chances(levels: Levels, t: Floats) -> Floats:
    """Chance that a single item has a class, at even odds and without shift, [..., item]."""
    flat = np.asarray(t, np.float64).reshape(1, -1)
    ratio = _densities(levels, flat, np.ones_like(flat))[1][0, np.searchsorted(SHIFTS, 0.0), 0, -1]
    return np.asarray(1 / (1 + ratio)).reshape(np.shape(t))


def _log_prior() -> Floats:
    """Log of the chance of every shift, width and level, [shift, width, level]."""
    same = np.full((len(SHIFTS), len(LOG_WIDTHS)), -np.inf)
    same[:, 0] = log_softmax(-0.5 * (SHIFTS / SAME_SHIFT) ** 2)
    # A Cauchy distribution: a batch may be very far.
    shifts, widths = -np.log1p((SHIFTS / OTHER_SHIFT) ** 2), -0.5 * (LOG_WIDTHS / OTHER_WIDTH) ** 2
    other = log_softmax(shifts)[:, None] + log_softmax(widths)
    both = np.logaddexp(np.log(1 - ELSEWHERE) + same, np.log(ELSEWHERE) + other)
    return np.asarray(both[..., None] + np.log([NEAR_CHANCE, 1 - NEAR_CHANCE]))


LOG_PRIOR = _log_prior()


def _integrated(levels: Levels, prior: Floats, t: Floats, n: Floats, w: Floats, told: Floats) -> tuple[Floats, Floats]:
    """Return the grids [batch, shift, width, level, share] and the intervals [batch, 2] of some batches."""
    known, ratio = _densities(levels, t, n)
    # An item that a person labelled is an example of its class: how far it lies from its mean tells nothing.
    has_class, none = (told == 0)[:, None, None], (told == 1)[:, None, None]
    known, ratio = np.where(has_class, 0, known), np.where(has_class[:, None], 0, ratio)
    mixed = ratio[..., None, :] * SHARES
    mixed += np.where(none[:, None, None], np.finfo(np.float64).tiny, 1 - SHARES)
    with np.errstate(divide="ignore"):
        log = np.log(mixed, out=mixed) @ w[:, None, None, None, :, None]
        log = log[..., 0] + (known @ w[:, None, :, None])[..., None]
        log *= np.minimum(1.0, MOST_GROUPS / np.maximum(w.sum(1), 1e-9))[:, None, None, None, None]
        log += LOG_PRIOR[..., None] + np.log(prior)[:, None, None, None]
    grid = np.exp(log - log.max((1, 2, 3, 4), keepdims=True))
    grid /= grid.sum((1, 2, 3, 4), keepdims=True)
    cells = grid.reshape(len(grid), -1)
    batch, cell = _cells(cells, OF_INTERVAL)
    each = np.where(np.isnan(told)[batch], _chances(ratio, batch, cell), told[batch])
    variance = (each * (1 - each) * n[batch]).sum(1) / t.shape[1] ** 2
    return grid, _intervals(batch, cells[batch, cell], each.mean(1), np.sqrt(variance))


def _densities(levels: Levels, t: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Log-density of known items [batch, shift, width, item], and how many times as likely unknown ones are.

    That is [batch, shift, width, level, item].

    The log of the latter is a parabola in t. Before its turning point it is nearly constant: an item farther out is
    never less likely to be unknown.
    """
    level, known, other = (
        (base + extra / n)[:, None, None] for base, extra in (levels.level, levels.known, levels.unknown)
    )
    factors = FACTORS[:, None]
    x, widths = t[:, None, None] - SHIFTS[:, None, None], 4.0 ** LOG_WIDTHS[:, None]
    v0 = widths * known
    log_known = -(x**2) / (2 * v0) - 0.5 * np.log(v0)
    level, x, v0 = np.maximum(factors * level[..., None, :], LEAST_LEVEL), x[..., None, :], v0[..., None, :]
    # Unknown items that vary less than known ones would explain any batch: its middle is narrow.
    v1 = np.maximum(v0, widths[..., None] * factors * other[..., None, :])
    outer = np.maximum(x, -level * v0 / np.maximum(v1 - v0, 1e-4))
    log = 0.5 * np.log(v0 / v1) + outer**2 / (2 * v0) - (outer - level) ** 2 / (2 * v1) + 1e-3 * (x - outer)
    return log_known, np.exp(np.minimum(log, MOST_RATIO))


def _cells(grid: Floats, least: float) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the batch and the cell of all that count in grids [batch, cell]."""
    batch, cell = np.nonzero(grid > least * grid.max(1, keepdims=True))
    return batch, cell


def _chances(ratio: Floats, batch: npt.NDArray[np.intp], cell: npt.NDArray[np.intp]) -> Floats:
    """Chance of each item to be unknown if a cell of the grid holds, [some, item]."""
    place, share = np.divmod(cell, len(SHARES))
    rho = SHARES[share].astype(np.float32)  # a chance needs no more digits
    part = ratio.astype(np.float32).reshape(len(ratio), -1, ratio.shape[-1])[batch, place] * rho
    return np.asarray(part / (part + (1 - rho)))


def _intervals(batch: npt.NDArray[np.intp], weights: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Quantiles of a mixture of normal distributions for each batch, rounded outwards, [batch, 2].

    Each is the number of ends below which lies less than the tail: counted in steps of 16, of 4 and of 1.
    """
    starts, tails = np.flatnonzero(np.diff(batch, prepend=-1)), np.array([TAIL, 1 - TAIL])[:, None, None]
    mean, deviation, weights = mean[:, None], np.maximum(deviation, 1e-6)[:, None], weights[:, None]
    found = np.zeros((2, len(starts)), int)
    for width in (16, 4, 1):
        ends = found[..., None] + width * np.arange(1, 4) - 1
        chances = weights * ndtr((ends[:, batch] / STEPS + 1e-5 - mean) / deviation)
        below = np.add.reduceat(chances, starts, axis=1)
        found = found + width * ((below < tails) & (ends < STEPS)).sum(-1)
    return np.stack([np.maximum(found[0] - 1, 0), found[1]], 1) / STEPS
