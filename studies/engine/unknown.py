"""Which items of a batch belong to no class: only two populations in one batch are evidence.

Every item has a statistic t, zero on average for items like the examples of its class and m for items of no class; the
catalogue tells m and the variances of both from classes and examples that were left out, for single items and for
groups of n items that belong together. A batch from elsewhere is farther from the catalogue as a whole, and its items
vary more. So

    t ~ (1-ρ) N(κ m₁, w v₀) + ρ N(κ m₁ + m, w v₁),

with the place κ and the width w of the whole batch integrated over, and the share ρ uniform with a spike at zero. A
batch in which everything is far is shifted: a large κ explains it. Where the two cannot be told apart the interval of
the share is wide, and nothing is rejected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]

# Chance that nothing is unknown, before anything is seen.
SPIKE = 0.5
# κ is normal with this deviation; its values, from the lowest to the highest.
DRIFT, LOWEST, HIGHEST, DRIFTS = 0.7, -0.5, 2.0, 11
# Values of w and their chances.
WIDTHS, WIDTH_CHANCES = (1.0, 2.0, 4.0), (0.5, 0.3, 0.2)
# Values of ρ above zero.
SHARES = 20
# Evidence of more groups than this counts as that of this many: what is wrong with levels and variances does not
# average out over a large batch.
MOST_GROUPS = 8.0
# Least distance of the unknown level from the known one, and the largest log of a likelihood ratio.
LEAST_LEVEL, MOST_RATIO = 0.1, 60.0
# Nothing is rejected unless the Bayes factor for something unknown is larger.
EVIDENCE = 3.0
# The interval leaves out this probability on either side; its ends are multiples of one by STEPS.
TAIL, STEPS = 0.05, 60


class Levels(NamedTuple):
    """What a catalogue tells about t: `(base, extra)` of the line `base + extra/n` in the size n of a group."""

    level: tuple[float, float]  # m, the mean for unknown items
    known: tuple[float, float]  # v₀
    unknown: tuple[float, float]  # v₁


class UnknownItems(NamedTuple):
    """What the items of a batch say about unknown ones."""

    chances: Floats  # [item]
    interval: tuple[float, float]  # of the share, 90 %
    evidence: float  # Bayes factor for something unknown, against nothing
    drift: float  # κ: how far the batch as a whole lies towards the unknown level

    @property
    def rejected(self) -> npt.NDArray[np.bool_]:
        """Items that are more likely unknown than known, in a batch with evidence for something unknown."""
        return np.asarray((self.chances > 0.5) & (self.evidence > EVIDENCE))


def unknown(levels: Levels, statistic: Floats, sizes: Floats, weights: Floats) -> UnknownItems:
    """Integrate over share, place and width.

    Parameters
    ----------
    levels
        Of the catalogue.
    statistic, sizes
        t of each item, and the size of the group that it stands for.
    weights
        What each item counts as evidence: one divided by the size of its group and by its number of copies.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> levels, ones = Levels((6.0, 0.0), (1.0, 0.0), (1.0, 0.0)), np.ones(60)
    >>> near, far = rng.normal(0, 1, 40), rng.normal(6, 1, 20)
    >>> found = unknown(levels, np.concatenate([near, far]), ones, ones)
    >>> int(found.rejected[:40].sum()), int(found.rejected[40:].sum())
    (0, 20)
    >>> shifted = unknown(levels, rng.normal(6, 1, 60), ones, ones)  # everything is far
    >>> int(shifted.rejected.sum()), shifted.interval
    (0, (0.0, 0.0))
    """
    t, n, w = (np.asarray(values, dtype=np.float64) for values in (statistic, sizes, weights))
    level, first = np.maximum(_at(levels.level, n), LEAST_LEVEL), max(sum(levels.level), LEAST_LEVEL)
    known, other = _at(levels.known, n), _at(levels.unknown, n)
    if float(n.sum()) < 2 * len(n):
        # Items stand alone. Unknown ones that vary less would explain any batch: its middle is narrow.
        both = (known + other) / 2
        known, other = np.where(known > other, both, known), np.where(known > other, both, other)
    drifts, widths = np.linspace(LOWEST, HIGHEST, DRIFTS), np.array(WIDTHS)
    rho = np.concatenate([[0.0], (np.arange(SHARES) + 0.5) / SHARES])[:, None]
    # Axes: drift, width, share, item.
    x = (t - first * drifts[:, None])[:, None]
    v0, v1 = widths[:, None] * known, widths[:, None] * other
    ratio = np.exp(_log_ratio(x, level, v0, v1))[:, :, None]
    mixed = (1 - rho) + rho * ratio
    log = (w * np.log(mixed)).sum(-1) + (w * (-(x**2) / (2 * v0) - 0.5 * np.log(v0))).sum(-1)[..., None]
    groups = float((w * np.clip(n - 1, 0, 1)).sum())
    log *= min(1.0, MOST_GROUPS / groups) if groups > 0 else 1.0
    log += np.log(WIDTH_CHANCES)[:, None] - 0.5 * (drifts[:, None, None] / DRIFT) ** 2
    log += np.log(np.where(rho[:, 0] == 0, SPIKE, (1 - SPIKE) / SHARES))
    grid = np.exp(log - log.max())
    grid /= grid.sum()
    each = rho * ratio / mixed
    nothing = max(float(grid[..., 0].sum()), np.finfo(np.float64).tiny)
    mean, variance = each.mean(-1), (n * each * (1 - each)).sum(-1) / len(t) ** 2
    return UnknownItems(
        np.einsum("dws,dwsn->n", grid, each),
        _interval(grid, mean, np.sqrt(variance)),
        (1 - nothing) / nothing * SPIKE / (1 - SPIKE),
        float(grid.sum((1, 2)) @ drifts),
    )


def _at(line: tuple[float, float], n: Floats) -> Floats:
    base, extra = line
    return base + extra / n


def _log_ratio(x: Floats, level: Floats, known: Floats, other: Floats) -> Floats:
    """Log of the densities of unknown by known items: a parabola in x.

    Beyond its turning point it is nearly constant: an item farther out is never less likely to be unknown.
    """
    wider = known - other
    wider = np.where(np.abs(wider) < 1e-4, 1e-4, wider)
    turn = level * known / wider
    inner = np.where(wider > 0, np.minimum(x, turn), np.maximum(x, turn))
    log = 0.5 * np.log(known / other) + inner**2 / (2 * known) - (inner - level) ** 2 / (2 * other)
    return np.minimum(log + 1e-3 * (x - inner), MOST_RATIO)


def _interval(grid: Floats, mean: Floats, deviation: Floats) -> tuple[float, float]:
    """Quantiles of a mixture of normal distributions, rounded outwards."""
    ends = np.arange(STEPS + 1) / STEPS
    inside = (ends[:-1, None, None, None] + 1e-5 - mean) / np.maximum(deviation, 1e-6)
    below = np.append((ndtr(inside) * grid).sum((1, 2, 3)), 1.0)
    low, high = (int((below < tail).sum()) for tail in (TAIL, 1 - TAIL))
    return float(ends[max(low - 1, 0)]), float(ends[min(high, STEPS)])
