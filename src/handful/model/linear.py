"""Linear scores: logistic regression, and class means.

**Multinomial logistic regression**, `min Σ_n r_n CE(y_n, x_n W + b) + |W - W0|²/(2C)` over W and b, by SciPy's
L-BFGS-B.
`logistic` compares every example with all K classes: N·K·d per evaluation; W0 = 0, and b has no penalty.
`logistic_near` compares it with the M classes nearest to its own, N·M·d, and starts from class means.
`logistic_some` trains M of the classes beside the others, which stay: N·K·d once, and N·M·d per evaluation.

W lies in the span of the examples, and training looks for it along the axes of that span (`Axes`).

**Class means**: `W = β P μ`, `b = -½β μᵀPμ + ½β 0.7 V/s`, with P the inverse covariance within classes, shrunk,
`P = [(1-δ) Σ d/tr Σ + δ]⁻¹`, and `V = tr PΣ`. β and δ are those under which examples are most likely if each is left
out of its own mean, `(s μ - x)/(s - 1)`, and out of Σ, with half of the classes. The cost is three decompositions of Σ
for any number of classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from handful.model.left_out import (
    Floats,
    HeadCalibration,
    Ints,
    Margins,
    blocks,
    distinct,
    log_likelihood,
)
from handful.model.limits import LEAST_COUNT, LINE_BINS, LINE_GRADIENT, MOST_TRAINING_STEPS, TRAINING_MEMORY
from handful.model.settings import DEFAULT, Settings


class Axes(NamedTuple):
    """Axes of the span of some points: training looks for W along them, each scaled so that all are equally curved."""

    squares: Floats  # sum of the squares of the points along each axis
    axes: Floats  # [dim, axis], of unit length

    @classmethod
    def of(cls, points: Floats) -> Axes:
        """Decompose `XᵀX`, or `XXᵀ` if there are fewer points than features."""
        few = len(points) < points.shape[1]
        squares, axes = np.linalg.eigh(points @ points.T if few else points.T @ points)
        kept = squares > np.finfo(points.dtype).eps * squares.sum()
        squares = squares[kept]
        axes = axes[:, kept]
        return cls(squares, points.T @ (axes / np.sqrt(squares)) if few else axes)


class _Comparisons(NamedTuple):
    """Examples that are compared with the same classes."""

    rows: slice
    classes: slice | Ints
    own: Ints  # the column of the class of each example
    others: Floats | None = None  # logits of one more column, of classes that stay


def logistic(
    points: Floats,
    codes: Ints,
    n_classes: int,
    each: Floats | None = None,
    settings: Settings = DEFAULT,
    axes: Axes | None = None,
) -> tuple[Floats, Floats]:
    """Return W [class, dim] and b [class]; every example is compared with all classes.

    Parameters
    ----------
    points, codes
        Examples [point, dim] and their classes.
    n_classes
        K.
    each
        r, the weight of each example; one by default.
    settings
        C, and when training stops.
    axes
        Of these examples, perhaps among others. They change the steps of training, and not the minimum.

    Examples
    --------
    >>> points = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> weights, offsets = logistic(points, np.array([0, 0, 1]), 2)
    >>> (points @ weights.T + offsets).argmax(1).tolist()
    [0, 0, 1]
    """
    parts = [_Comparisons(some, slice(None), codes[some]) for some in blocks(len(points), n_classes)]
    start = (np.zeros((n_classes, points.shape[1]), points.dtype), np.zeros(n_classes, points.dtype))
    return _trained(points, codes, each, parts, start, axes or Axes.of(points), settings)


def logistic_near(
    points: Floats,
    codes: Ints,
    near: Ints,
    start: tuple[Floats, Floats],
    each: Floats | None = None,
    settings: Settings = DEFAULT,
    axes: Axes | None = None,
) -> tuple[Floats, Floats]:
    """Return W and b; every example is compared with the classes `near[y_n]`, of which its own must be the first.

    The penalty is `(|W - W0|² + |b - b0|²)/(2C)`, with W0 and b0 from `start`. Without that on b, the offset of a class
    that no other class is compared with could grow without limit, and the class would win items far from it.

    Examples
    --------
    >>> points = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]])
    >>> codes, means = np.array([0, 0, 1, 1]), np.eye(2)
    >>> weights, offsets = logistic_near(points, codes, nearest_classes(means, 2), (20 * means, np.zeros(2)))
    >>> (points @ weights.T + offsets).argmax(1).tolist()
    [0, 0, 1, 1]
    """
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(near))
    ends = counts.cumsum()
    parts = [
        _Comparisons(slice(ends[k] - counts[k], ends[k]), near[k], np.zeros(counts[k], np.intp))
        for k in np.flatnonzero(counts)
    ]
    each = None if each is None else each[order]
    axes = axes or Axes.of(points)
    return _trained(points[order], codes[order], each, parts, start, axes, settings, towards_start=True)


def logistic_some(
    points: Floats,
    codes: Ints,
    start: tuple[Floats, Floats],
    some: Ints,
    each: Floats,
    settings: Settings = DEFAULT,
) -> tuple[Floats, Floats]:
    """Return W and b of all classes: those of `some` classes are trained from `start`, and the others stay as there.

    Examples
    --------
    >>> points = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]])
    >>> codes, ones, start = np.array([0, 0, 1, 1]), np.ones(4), (np.array([[3.0, 0.0], [0.0, 0.0]]), np.zeros(2))
    >>> weights, offsets = logistic_some(points, codes, start, np.array([1]), ones)
    >>> (points @ weights.T + offsets).argmax(1).tolist(), weights[0].tolist()
    ([0, 0, 1, 1], [3.0, 0.0])
    """
    weights, offsets = (array.copy() for array in start)
    stays = np.ones(len(offsets), dtype=bool)
    stays[some] = False
    own = np.full(len(offsets), len(some))
    own[some] = np.arange(len(some))
    parts = []
    for rows in blocks(len(points), len(offsets)):
        logits = points[rows] @ weights[stays].T + offsets[stays]
        others = np.logaddexp.reduce(logits, axis=1) if stays.any() else None
        parts.append(_Comparisons(rows, slice(None), own[codes[rows]], others))
    begin = (weights[some], offsets[some])
    weights[some], offsets[some] = _trained(points, own[codes], each, parts, begin, Axes.of(points), settings)
    return weights, offsets


def _trained(
    points: Floats,
    codes: Ints,
    each: Floats | None,
    parts: list[_Comparisons],
    start: tuple[Floats, Floats],
    axes: Axes,
    settings: Settings,
    *,
    towards_start: bool = False,
) -> tuple[Floats, Floats]:
    """Minimise from `start`, which lies in the span of the points; the penalty is on W, or on what W and b have moved.

    At zero the loss is curved by `Σx²/K + 1/C` along an axis. Scaled by its root, all of them are equally curved, and
    training takes half as many steps. Codes beyond those of `start` are of classes that stay.
    """
    each = np.ones(len(points), points.dtype) if each is None else each
    n_classes = len(start[1])
    scale = 1 / np.sqrt(axes.squares / n_classes + 1 / settings.inverse_ridge)
    turn = axes.axes * scale
    rows = np.column_stack([points @ turn, np.ones(len(points), points.dtype)])
    begin = np.column_stack([start[0] @ (axes.axes / scale), start[1]])
    origin = begin if towards_start else np.zeros_like(begin)
    ridge = np.append(scale**2, towards_start).astype(points.dtype) / settings.inverse_ridge
    truth = class_sums(rows, codes, n_classes + 1, each)[:n_classes]
    weighted = rows * each[:, None]

    def value(flat: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient, in the precision of the points."""
        weights = flat.reshape(begin.shape).astype(points.dtype)
        away = weights - origin
        gradient = away * ridge
        loss = 0.5 * float(np.vdot(away, gradient))
        gradient -= truth
        for part in parts:
            logits = rows[part.rows] @ weights[part.classes].T
            n_trained = logits.shape[1]
            if part.others is not None:
                logits = np.column_stack([logits, part.others])
            logits -= logits.max(1, keepdims=True)
            behind = -logits[np.arange(len(logits)), part.own]
            np.exp(logits, out=logits)
            total = logits.sum(1)
            loss += float(np.dot(behind + np.log(total), each[part.rows]))
            logits /= total[:, None]
            gradient[part.classes] += logits[:, :n_trained].T @ weighted[part.rows]
        return loss, gradient.ravel()

    _, at_zero = value(np.zeros(begin.size))
    enough = settings.head_tolerance * float(np.abs(at_zero).max())
    options = {"gtol": enough, "ftol": 0.0, "maxcor": TRAINING_MEMORY, "maxiter": MOST_TRAINING_STEPS}
    from scipy.optimize import minimize  # it takes long to import, and a head that is made of means does without

    found = minimize(value, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    solution = found.x.reshape(begin.shape).astype(points.dtype)
    return solution[:, :-1] @ turn.T, solution[:, -1]


def logistic_line(x: Floats, truth: Floats, weights: Floats, settings: Settings = DEFAULT) -> tuple[float, float]:
    """Minimise `Σ w CE(y, A + B x) + ridge (A² + B²)/2`; the ridge is small, for data that a threshold separates.

    Values of x are counted in bins, each at its mean: millions of pairs are looked at once.

    Examples
    --------
    >>> a, b = logistic_line(np.array([-1.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> abs(a) < 1e-6, b > 1
    (True, True)
    """
    width = np.ptp(x) / LINE_BINS
    in_bin = ((x - x.min()) / width).astype(np.intp) if width > 0 else np.zeros(len(x), np.intp)
    mass = np.bincount(in_bin, weights)
    yes = np.bincount(in_bin, weights * truth)
    mean = np.bincount(in_bin, weights * x) / np.maximum(mass, LEAST_COUNT)
    design = np.stack([np.ones_like(mean), mean])

    def value(line: Floats) -> tuple[float, Floats]:
        logits = line @ design
        loss = mass @ np.logaddexp(0, logits) - yes @ logits + settings.pair_ridge / 2 * line @ line
        return float(loss), design @ (mass * expit(logits) - yes) + settings.pair_ridge * line

    options = {"gtol": LINE_GRADIENT * float(mass.sum()), "ftol": 0.0}
    from scipy.optimize import minimize

    a, b = minimize(value, np.zeros(2), jac=True, method="L-BFGS-B", options=options).x.tolist()
    return a, b


def nearest_classes(means: Floats, most: int) -> Ints:
    """Return each class itself and then the classes with the nearest means, `most` in all or as many as there are.

    Examples
    --------
    >>> nearest_classes(np.array([[0.0], [1.0], [3.0]]), 2).tolist()
    [[0, 1], [1, 0], [2, 1]]
    """
    most = min(most, len(means))
    halves = 0.5 * (means**2).sum(1)
    nearest = []
    for block in blocks(len(means), len(means)):
        farness = halves - means[block] @ means.T
        rows = np.arange(len(farness))
        farness[rows, rows + block.start] = -np.inf
        some = np.argpartition(farness, most - 1)[:, :most]
        nearest.append(np.take_along_axis(some, np.take_along_axis(farness, some, 1).argsort(1), 1))
    return np.concatenate(nearest)


def class_sums(points: Floats, codes: Ints, n_classes: int, each: Floats) -> Floats:
    """Σ r_n x_n of each class, [class, dim]."""
    ends = np.bincount(codes, minlength=n_classes).cumsum()
    order = np.argsort(codes, kind="stable")
    chosen = sparse.csr_array((each[order], order, np.append(0, ends)), shape=(n_classes, len(codes)))
    return np.asarray(chosen @ points)


class FittedMeans(NamedTuple):
    """W [class, dim] and b [class] at T = 1, V in the space as it is, and what left-out examples say."""

    weights: Floats
    offsets: Floats
    spread: float | None
    calibration: HeadCalibration


def fit_class_means(
    means: Floats, shots: Floats, points: Floats, codes: Ints, settings: Settings = DEFAULT
) -> FittedMeans:
    """Fit a head to means [class, dim] of `shots` examples, known or not, and to some of these examples.

    Examples
    --------
    Classes differ in the first feature, their items mostly in the second:

    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat(np.arange(4), 50)
    >>> points = np.column_stack([codes + 0.3 * rng.normal(size=200), 3 * rng.normal(size=200)])
    >>> means = np.stack([points[codes == k].mean(0) for k in range(4)])
    >>> weights = fit_class_means(means, np.full(4, 50.0), points, codes).weights
    >>> bool(np.ptp(weights[:, 0]) > 2 * np.ptp(weights[:, 1]))
    True
    """
    _, row, counts = distinct(points, codes)
    copies = counts[row].astype(means.dtype)
    kept = np.flatnonzero(shots[codes] > copies)
    some = min(len(kept), max(1, settings.compared_scores // len(means)))
    kept = kept[np.linspace(0, len(kept) - 1, some).round().astype(np.int64)]
    x = points[kept]
    own = codes[kept]
    copies = copies[kept]
    s = shots[codes[kept]]
    away = (x - means[own]) * np.sqrt(s / (s - 1))[:, None]
    spread = float((away**2).sum(1).mean()) if len(kept) >= settings.fewest_for_spread else None
    if len(kept) < settings.fewest_left_out or len(means) == 1:
        weights, offsets = head_of_means(means, shots, spread or 0.0, default_slope(means, settings), settings)
        return FittedMeans(weights, offsets, spread, HeadCalibration.without_examples(1.0))

    # Its own mean, without the example and its copies.
    rest = s - copies
    without = mean_without(means[own], s, x, copies)
    # By class: what lies off a mean in one direction is made up for by others of the class.
    odd = (means**2).sum(1).argsort(kind="stable").argsort()[own] % 2
    halves = [np.flatnonzero(odd == 1), np.flatnonzero(odd == 0)]
    order = np.concatenate(halves)
    weights = 1 / s[np.concatenate(halves)]
    axes = [_round(away[half]) for half in halves[::-1]]
    temperatures = np.array(settings.temperatures)

    def tried(shrinkage: float) -> tuple[Margins, float]:
        """Return the margins of the examples, and V."""
        parts = []
        total = 0.0
        for half, of_others in zip(halves, axes, strict=True):
            turn = _turn(of_others, shrinkage)
            there = means @ turn
            here = x[half] @ turn
            alone = without[half] @ turn
            squares = ((away[half] @ turn) ** 2).sum(1)
            total += float(squares.sum())
            v = float(squares.mean())
            slope = default_slope(there, settings)
            to_all = head_of_means(there, shots, v, slope, settings)
            to_own = head_of_means(alone, rest[half], v, slope, settings)
            own_logits = (here * to_own[0]).sum(1) + to_own[1]
            for block in blocks(len(half), len(means)):
                logits = here[block] @ to_all[0].T + to_all[1]
                logits[np.arange(len(logits)), own[half][block]] = own_logits[block]
                parts.append(Margins.of(logits, own[half][block], temperatures))
        return Margins.joined(parts), total / len(kept)

    trials = [tried(shrinkage) for shrinkage in settings.shrinkages]
    # How many labels are wrong does not depend on the space.
    wrong = HeadCalibration.of(trials[0][0], kept[order], weights, len(means), settings=settings).wrong_share
    best = int(np.argmax([log_likelihood(margins, weights, len(means), wrong)[0].max() for margins, _ in trials]))
    (margins, v) = trials[best]
    shrinkage = settings.shrinkages[best]
    turn = _turn(_round(away), shrinkage)
    there = means @ turn
    turned, offsets = head_of_means(there, shots, v, default_slope(there, settings), settings)
    calibration = HeadCalibration.of(margins, kept[order], weights, len(means), settings=settings)
    return FittedMeans(turned @ turn.T, offsets, spread, calibration)


def head_of_means(
    means: Floats, shots: Floats, spread: float, slope: float, settings: Settings = DEFAULT
) -> tuple[Floats, Floats]:
    """W = βμ and b = -½β|μ|² + ½β 0.7 V/s, with β the slope.

    A mean of s examples lies V/s too far from the items of its class. To take off all of it, 1 for 0.7, would be too
    much: such a distance is also noisy, and noise of variance v in a score adds v/2 to the mean of its exponential, so
    means of few examples would win too often by chance.
    """
    excess = settings.share_of_excess * spread / shots
    return slope * means, np.asarray(0.5 * slope * (excess - (means**2).sum(1)))


def mean_without(means: Floats, mass: Floats, points: Floats, copies: Floats) -> Floats:
    """Return the class mean of each example without it and its copies, [example, dim]."""
    return np.asarray((means * mass[:, None] - points * copies[:, None]) / (mass - copies)[:, None])


def default_slope(means: Floats, settings: Settings = DEFAULT) -> float:
    """β at T = 1."""
    around = float(((means - means.mean(0)) ** 2).sum(1).mean())
    return settings.nats_of_means / around if around > 0 else 1.0


def _round(away: Floats) -> tuple[Floats, Floats]:
    """Variances along the axes of Σ, one on average, and these axes."""
    values, axes = np.linalg.eigh(away.T @ away)
    level = float(values.mean())
    return np.maximum(values, 0) / level if level > 0 else np.ones_like(values), axes


def _turn(axes: tuple[Floats, Floats], shrinkage: float) -> Floats:
    """R with R Rᵀ = P."""
    return np.asarray(axes[1] / np.sqrt((1 - shrinkage) * axes[0] + shrinkage))
