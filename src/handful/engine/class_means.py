"""A head of class means: W = κ P μ, b = -½κ μᵀPμ + ½κ g V/s, with P the inverse covariance within classes, shrunk.

`P = [(1-δ) Σ d/tr Σ + δ]⁻¹`, and `V = tr PΣ`. κ and δ are those under which examples are most likely if each is left
out of its own mean, `(s μ - x)/(s - 1)`, and out of Σ, with half of the classes. The cost is three decompositions of Σ
for any number of classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.engine.left_out import FEWEST_LEFT_OUT, Judged, Margins, blocks, distinct, likelihood
from handful.engine.logistic import Floats, Ints

# κ times the mean squared distance of the class means from their centre, in nats, at T = 1. At one shot the most likely
# values were 11 to 16 on three banks.
NATS_OF_MEANS = 14.0
# A mean of s examples lies V/s too far from the items of its class; g, this share of it, is taken off. All of it is too
# much: such a distance is also noisy, and noise of variance v in a score adds v/2 to the mean of its exponential, so
# means of few examples win too often by chance. Shares between 0.5 and 0.75 are most accurate on three banks.
SHARE_OF_EXCESS = 0.7
# δ, what is tried; at 1 the space stays as it is.
SHRINKAGES = (1.0, 0.9, 0.8, 0.6)
# The spread is known if there are this many more examples than classes.
ENOUGH_FOR_SPREAD = 10
# Scores of left-out examples.
LEFT_OUT_SCORES = 2**24


class MeansFound(NamedTuple):
    """W [class, dim] and b [class] at T = 1, V in the space as it is, and what left-out examples say."""

    weights: Floats
    offsets: Floats
    spread: float | None
    judged: Judged


def fit_means(means: Floats, shots: Floats, points: Floats, codes: Ints) -> MeansFound:
    """Fit a head to means [class, dim] of `shots` examples, known or not, and to some of these examples.

    Examples
    --------
    Classes differ in the first feature, their items mostly in the second:

    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat(np.arange(4), 50)
    >>> points = np.column_stack([codes + 0.3 * rng.normal(size=200), 3 * rng.normal(size=200)])
    >>> means = np.stack([points[codes == k].mean(0) for k in range(4)])
    >>> weights = fit_means(means, np.full(4, 50.0), points, codes).weights
    >>> bool(np.ptp(weights[:, 0]) > 2 * np.ptp(weights[:, 1]))
    True
    """
    _, row, counts = distinct(points, codes)
    copies = counts[row].astype(means.dtype)
    kept = np.flatnonzero(shots[codes] > copies)
    some = min(len(kept), max(1, LEFT_OUT_SCORES // len(means)))
    kept = kept[np.linspace(0, len(kept) - 1, some).round().astype(np.int64)]
    x, own, copies, s = points[kept], codes[kept], copies[kept], shots[codes[kept]]
    away = (x - means[own]) * np.sqrt(s / (s - 1))[:, None]
    spread = float((away**2).sum(1).mean()) if len(kept) >= ENOUGH_FOR_SPREAD else None
    if len(kept) < FEWEST_LEFT_OUT or len(means) == 1:
        return MeansFound(*head_of_means(means, shots, spread or 0.0, usual_slope(means)), spread, Judged.nothing(1.0))

    # Its own mean, without the example and its copies.
    rest = s - copies
    without = (means[own] * s[:, None] - x * copies[:, None]) / rest[:, None]
    # By class: what lies off a mean in one direction is made up for by others of the class.
    odd = (means**2).sum(1).argsort(kind="stable").argsort()[own] % 2
    halves = [np.flatnonzero(odd == 1), np.flatnonzero(odd == 0)]
    order, weights = np.concatenate(halves), 1 / s[np.concatenate(halves)]
    axes = [_axes(away[half]) for half in halves[::-1]]

    def tried(shrinkage: float) -> tuple[Margins, float]:
        """Return the margins of the examples, and V."""
        parts, total = [], 0.0
        for half, of_others in zip(halves, axes, strict=True):
            turn = _turn(of_others, shrinkage)
            there, z, alone = means @ turn, x[half] @ turn, without[half] @ turn
            squares = ((away[half] @ turn) ** 2).sum(1)
            total += float(squares.sum())
            v, slope = float(squares.mean()), usual_slope(there)
            to_all, to_own = head_of_means(there, shots, v, slope), head_of_means(alone, rest[half], v, slope)
            own_logits = (z * to_own[0]).sum(1) + to_own[1]
            for block in blocks(len(half), len(means)):
                logits = z[block] @ to_all[0].T + to_all[1]
                logits[np.arange(len(logits)), own[half][block]] = own_logits[block]
                parts.append(Margins.of(logits, own[half][block]))
        return Margins.joined(parts), total / len(kept)

    found = [tried(shrinkage) for shrinkage in SHRINKAGES]
    # How many labels are wrong does not depend on the space.
    wrong = Judged.of(found[0][0], kept[order], weights, len(means)).wrong_share
    best = int(np.argmax([likelihood(margins, weights, len(means), wrong)[0].max() for margins, _ in found]))
    (margins, v), shrinkage = found[best], SHRINKAGES[best]
    turn = _turn(_axes(away), shrinkage)
    there = means @ turn
    turned, offsets = head_of_means(there, shots, v, usual_slope(there))
    return MeansFound(turned @ turn.T, offsets, spread, Judged.of(margins, kept[order], weights, len(means)))


def head_of_means(means: Floats, shots: Floats, spread: float, slope: float) -> tuple[Floats, Floats]:
    """W = κμ and b = -½κ|μ|² + ½κ g V/s, with κ the slope."""
    return slope * means, np.asarray(0.5 * slope * (SHARE_OF_EXCESS * spread / shots - (means**2).sum(1)))


def usual_slope(means: Floats) -> float:
    """κ at T = 1."""
    around = float(((means - means.mean(0)) ** 2).sum(1).mean())
    return NATS_OF_MEANS / around if around > 0 else 1.0


def _axes(away: Floats) -> tuple[Floats, Floats]:
    """Variances along the axes of Σ, one on average, and these axes."""
    values, axes = np.linalg.eigh(away.T @ away)
    level = float(values.mean())
    return np.maximum(values, 0) / level if level > 0 else np.ones_like(values), axes


def _turn(axes: tuple[Floats, Floats], shrinkage: float) -> Floats:
    """R with R Rᵀ = P."""
    return np.asarray(axes[1] / np.sqrt((1 - shrinkage) * axes[0] + shrinkage))
