"""Which items of a batch belong to no class: only two populations in one batch are evidence.

Every item has a statistic t (`levels`), zero on average for items like the examples of its class and m for items of no
class; the catalogue tells m and the variances of both, for groups of n items that belong together. A batch from
elsewhere is farther from the catalogue as a whole, and its items vary more. So

    t ~ (1-ρ) N(κ, w v₀) + ρ N(κ + m, w v₁),    κ/3 ~ N(0, σ²),    log₄ w ~ |N(0, σ²)|,

with the place κ and the width w of the whole batch integrated over, and the share ρ uniform with a spike at zero. How
much the batch may differ from the catalogue is seen from its items one by one: `σ = 0.3 + 1.5 ln far`, with far the
squared distance from its class that a quarter of the items keeps, by that of left-out examples. Unknown items hardly
change it, since they are farther out; another source does. A batch in which everything is far is shifted: a large κ
explains it. Where the two cannot be told apart the interval of the share is wide, and nothing is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from handful.engine.levels import Levels
from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]

# Chance that nothing is unknown, before anything is seen.
SPIKE = 0.5
# σ: the least, per unit of ln far, and the most.
LEAST_DRIFT, DRIFT_OF_FAR, MOST_DRIFT = 0.3, 1.5, 2.0
# Values of κ and of log₄ w, in σ; κ is as large as the t of typical unknown items if σ is one.
DRIFTS, WIDTHS, UNIT = np.linspace(-0.5, 2, 11), np.linspace(0, 2, 4), 3.0
# Values of ρ above zero.
SHARES = 12
# Evidence of more groups than this counts as that of this many: what is wrong with levels and variances does not
# average out over a large batch.
MOST_GROUPS = 8.0
# Least distance of the unknown level from the known one, and the largest log of a likelihood ratio.
LEAST_LEVEL, MOST_RATIO = 0.1, 60.0
# Nothing is rejected unless the log of the Bayes factor for something unknown exceeds this many times σ: the more a
# batch differs from the catalogue, the less the levels say about it. An item is rejected only above this chance.
EVIDENCE, REJECTED = 1.5, 0.5
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


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about the share of unknown items of each batch of a stack.

    Attributes
    ----------
    levels : Levels
        Of the catalogue.
    sigma : Floats
        [...], how much the batch may differ from the catalogue.
    grid : Floats
        Posterior of place, width and share, [..., place, width, share].
    interval : Floats
        Of the share, 90 %, [..., 2].
    evidence : Floats
        [...], Bayes factor for something unknown, against nothing.
    drift : Floats
        [...], expected κ: how far out the batch as a whole lies.
    """

    levels: Levels
    sigma: Floats
    grid: Floats
    interval: Floats
    evidence: Floats
    drift: Floats

    @property
    def is_open(self) -> npt.NDArray[np.bool_]:
        """Whether there is evidence for something unknown, [...]."""
        return np.asarray(np.log(self.evidence) > EVIDENCE * self.sigma)

    @classmethod
    def of(cls, levels: Levels, looks: Looks, far: PerBatch = 1.0) -> Verdict:
        """Integrate over share, place and width; `far` is [...].

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> levels, ones = Levels((0.0, 1.0), (0, 1), (0, 1), (6.0, 0.0), (1.0, 0.0), (1.0, 0.0), 1.0), np.ones(60)
        >>> looks = Looks(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)]), ones, ones)
        >>> found = Verdict.of(levels, looks)
        >>> bool(found.is_open), int((found.chances(looks.t, ones) > REJECTED).sum())
        (True, 20)
        >>> shifted = Verdict.of(levels, Looks(rng.normal(6, 1, 60), ones, ones), far=2.0)  # everything is
        >>> bool(shifted.is_open)
        False
        """
        lead, n_items = np.shape(looks.t)[:-1], np.shape(looks.t)[-1]
        t, n, w = (np.asarray(values, np.float64).reshape(-1, n_items) for values in looks)
        sigma = np.minimum(LEAST_DRIFT + DRIFT_OF_FAR * np.log(np.maximum(far, 1.0)), MOST_DRIFT).reshape(-1)
        size = max(1, BLOCK_ITEMS // n_items)
        parts = [slice(at, at + size) for at in range(0, len(t), size)]
        found = [_integrated(levels, sigma[part], t[part], n[part], w[part]) for part in parts]
        grid, interval = (np.concatenate(each) for each in zip(*found, strict=True))
        nothing = np.maximum(grid[..., 0].sum((1, 2)), np.finfo(np.float64).tiny)
        evidence = np.maximum((1 - nothing) / nothing * SPIKE / (1 - SPIKE), np.finfo(np.float64).tiny)
        drift = grid.sum((2, 3)) @ DRIFTS * UNIT * sigma
        shape = grid.shape[1:]
        return cls(
            levels,
            sigma.reshape(lead),
            grid.reshape(*lead, *shape),
            interval.reshape(*lead, 2),
            evidence.reshape(lead),
            drift.reshape(lead),
        )

    def chances(self, t: Floats, sizes: Floats) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown, [..., item]."""
        shape, n_items = t.shape, t.shape[-1]
        t, sizes, found = t.reshape(-1, n_items).astype(np.float64), sizes.reshape(-1, n_items), np.empty(t.shape)
        grid, sigma, found = (
            self.grid.reshape(len(t), -1).astype(np.float32),
            self.sigma.reshape(-1),
            found.reshape(-1, n_items),
        )
        high, wide = max(1, BLOCK_ITEMS // n_items), BLOCK_ITEMS
        for top in range(0, len(t), high):
            some = slice(top, top + high)
            batch, cell = _cells(grid[some], OF_CHANCE)
            weights, starts = grid[some][batch, cell, None], np.searchsorted(batch, np.arange(len(grid[some])))
            for left in range(0, n_items, wide):
                here = some, slice(left, left + wide)
                each = _chances(_densities(self.levels, sigma[some], t[here], sizes[here])[1], batch, cell)
                found[here] = np.add.reduceat(weights * each, starts)
        return found.reshape(shape).clip(0, 1)


_RHO = np.concatenate([[0.0], (np.arange(SHARES) + 0.5) / SHARES])[:, None]


def _integrated(levels: Levels, sigma: Floats, t: Floats, n: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the grids [batch, place, width, share] and the intervals [batch, 2] of some batches."""
    base, ratio = _densities(levels, sigma, t, n)
    mixed = ratio[..., None, :] * _RHO
    mixed += 1 - _RHO
    log = (np.log(mixed, out=mixed) @ w[:, None, None, :, None])[..., 0] + base @ w[:, None, :, None]
    log *= np.minimum(1.0, MOST_GROUPS / np.maximum(w.sum(1), 1e-9))[:, None, None, None]
    log -= 0.5 * (DRIFTS[:, None, None] ** 2 + WIDTHS[:, None] ** 2)
    log += np.log(np.where(_RHO[:, 0] == 0, SPIKE, (1 - SPIKE) / SHARES))
    grid = np.exp(log - log.max((1, 2, 3), keepdims=True))
    grid /= grid.sum((1, 2, 3), keepdims=True)
    cells = grid.reshape(len(grid), -1)
    batch, cell = _cells(cells, OF_INTERVAL)
    each = _chances(ratio, batch, cell)
    variance = (each * (1 - each) * n[batch]).sum(1) / t.shape[1] ** 2
    return grid, _intervals(batch, cells[batch, cell], each.mean(1), np.sqrt(variance))


def _densities(levels: Levels, sigma: Floats, t: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Log-density of known items, and how many times as likely unknown ones are: [batch, drift, width, item] each.

    The log of the latter is a parabola in t. Before its turning point it is nearly constant: an item farther out is
    never less likely to be unknown.
    """
    level, known, other = (
        (base + extra / n)[:, None, None] for base, extra in (levels.level, levels.known, levels.unknown)
    )
    level = np.maximum(level, LEAST_LEVEL)
    other = np.maximum(known, other)  # unknown items that vary less would explain any batch: its middle is narrow
    x = t[:, None, None] - UNIT * (sigma[:, None] * DRIFTS)[:, :, None, None]
    widths = 4.0 ** (sigma[:, None] * WIDTHS)[:, None, :, None]
    v0, v1 = widths * known, widths * other
    outer = np.maximum(x, -level * v0 / np.maximum(v1 - v0, 1e-4))
    log = 0.5 * np.log(v0 / v1) + outer**2 / (2 * v0) - (outer - level) ** 2 / (2 * v1) + 1e-3 * (x - outer)
    return -(x**2) / (2 * v0) - 0.5 * np.log(v0), np.exp(np.minimum(log, MOST_RATIO))


def _cells(grid: Floats, least: float) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the batch and the cell of all that count in grids [batch, cell]."""
    batch, cell = np.nonzero(grid > least * grid.max(1, keepdims=True))
    return batch, cell


def _chances(ratio: Floats, batch: npt.NDArray[np.intp], cell: npt.NDArray[np.intp]) -> Floats:
    """Chance of each item to be unknown if a cell of the grid holds, [some, item]."""
    place, share = np.divmod(cell, len(_RHO))
    rho = _RHO[share].astype(np.float32)  # a chance needs no more digits
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
