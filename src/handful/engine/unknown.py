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
# Items whose chances are computed at a time.
BLOCK_ITEMS = 2048


class Looks(NamedTuple):
    """What the items of a batch look like."""

    t: Floats  # [item], the statistic
    sizes: Floats  # [item], of the group that it stands for
    weights: Floats  # [item], what it counts as evidence


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about the share of unknown items of a batch.

    Attributes
    ----------
    levels : Levels
        Of the catalogue.
    sigma : float
        How much the batch may differ from the catalogue.
    grid : Floats
        Posterior of place, width and share.
    interval : tuple of float
        Of the share, 90 %.
    evidence : float
        Bayes factor for something unknown, against nothing.
    drift : float
        Expected κ: how far out the batch as a whole lies.
    """

    levels: Levels
    sigma: float
    grid: Floats
    interval: tuple[float, float]
    evidence: float
    drift: float

    @property
    def is_open(self) -> bool:
        """Whether there is evidence for something unknown."""
        return bool(np.log(self.evidence) > EVIDENCE * self.sigma)

    @classmethod
    def of(cls, levels: Levels, looks: Looks, far: float = 1.0) -> Verdict:
        """Integrate over share, place and width.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> levels, ones = Levels((0.0, 1.0), (0, 1), (0, 1), (6.0, 0.0), (1.0, 0.0), (1.0, 0.0), 1.0), np.ones(60)
        >>> looks = Looks(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)]), ones, ones)
        >>> found = Verdict.of(levels, looks)
        >>> found.is_open, (found.chances(looks.t, ones) > REJECTED).sum()
        (True, np.int64(20))
        >>> shifted = Verdict.of(levels, Looks(rng.normal(6, 1, 60), ones, ones), far=2.0)  # everything is
        >>> shifted.is_open
        False
        """
        t, n, w = (np.asarray(values, dtype=np.float64) for values in looks)
        sigma = min(LEAST_DRIFT + DRIFT_OF_FAR * float(np.log(max(far, 1.0))), MOST_DRIFT)
        base, ratio = _densities(levels, sigma, t, n)
        mixed = (1 - _RHO) + _RHO * ratio[:, :, None]
        log = np.log(mixed) @ w + (base @ w)[..., None]
        log *= min(1.0, MOST_GROUPS / max(float(w.sum()), 1e-9))
        log -= 0.5 * (DRIFTS[:, None, None] ** 2 + WIDTHS[:, None] ** 2)
        log += np.log(np.where(_RHO[:, 0] == 0, SPIKE, (1 - SPIKE) / SHARES))
        grid = np.exp(log - log.max())
        grid /= grid.sum()
        each = _RHO * ratio[:, :, None] / mixed
        nothing = max(float(grid[..., 0].sum()), np.finfo(np.float64).tiny)
        variance = (each * (1 - each)) @ n / max(len(t), 1) ** 2
        return cls(
            levels,
            sigma,
            grid,
            _interval(grid, each.mean(-1), np.sqrt(variance)),
            max((1 - nothing) / nothing * SPIKE / (1 - SPIKE), np.finfo(np.float64).tiny),
            float(grid.sum((1, 2)) @ DRIFTS) * UNIT * sigma,
        )

    def chances(self, t: Floats, sizes: Floats) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown."""
        found = np.empty(len(t))
        for start in range(0, len(t), BLOCK_ITEMS):
            some = slice(start, start + BLOCK_ITEMS)
            _, ratio = _densities(self.levels, self.sigma, t[some].astype(np.float64), sizes[some])
            part = _RHO * ratio[:, :, None]
            found[some] = np.einsum("dws,dwsn->n", self.grid, part / (part + 1 - _RHO))
        return found.clip(0, 1)


_RHO = np.concatenate([[0.0], (np.arange(SHARES) + 0.5) / SHARES])[:, None]


def _densities(levels: Levels, sigma: float, t: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Log-density of known items, and how many times as likely unknown ones are: [drift, width, item] each.

    The log of the latter is a parabola in t. Before its turning point it is nearly constant: an item farther out is
    never less likely to be unknown.
    """
    level, known, other = (base + extra / n for base, extra in (levels.level, levels.known, levels.unknown))
    level = np.maximum(level, LEAST_LEVEL)
    other = np.maximum(known, other)  # unknown items that vary less would explain any batch: its middle is narrow
    x = (t - UNIT * sigma * DRIFTS[:, None])[:, None]
    widths = 4.0 ** (sigma * WIDTHS)[:, None]
    v0, v1 = widths * known, widths * other
    outer = np.maximum(x, -level * v0 / np.maximum(v1 - v0, 1e-4))
    log = 0.5 * np.log(v0 / v1) + outer**2 / (2 * v0) - (outer - level) ** 2 / (2 * v1) + 1e-3 * (x - outer)
    return -(x**2) / (2 * v0) - 0.5 * np.log(v0), np.exp(np.minimum(log, MOST_RATIO))


def _interval(grid: Floats, mean: Floats, deviation: Floats) -> tuple[float, float]:
    """Quantiles of a mixture of normal distributions, rounded outwards."""
    ends = np.arange(STEPS + 1) / STEPS
    some = grid > 1e-4 * grid.max()
    weights, mean, deviation = grid[some], mean[some], np.maximum(deviation[some], 1e-6)
    below = np.append(ndtr((ends[:-1, None] + 1e-5 - mean) / deviation) @ weights, 1.0)
    low, high = (int((below < tail).sum()) for tail in (TAIL, 1 - TAIL))
    return float(ends[max(low - 1, 0)]), float(ends[min(high, STEPS)])
