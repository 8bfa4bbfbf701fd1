"""Linear scores: logistic regression, and class means.

**Multinomial logistic regression**, `min Σ_n r_n CE(y_n, x_n W + b) + |W - W0|²/(2C)` over W and b, by L-BFGS.
`logistic` compares every example with all K classes: N·K·d per evaluation; W0 = 0, and b has no penalty.
`logistic_near` compares it with the M classes nearest to its own, N·M·d, and starts from class means.
`logistic_some` trains M of the classes beside the others, which stay: N·K·d once, and N·M·d per evaluation.

W - W0 lies in the span of the examples. If they are fewer than the features, they are rotated into it first.

**Class means**: `W = κ P μ`, `b = -½κ μᵀPμ + ½κ g V/s`, with P the inverse covariance within classes, shrunk,
`P = [(1-δ) Σ d/tr Σ + δ]⁻¹`, and `V = tr PΣ`. κ and δ are those under which examples are most likely if each is left
out of its own mean, `(s μ - x)/(s - 1)`, and out of Σ, with half of the classes. The cost is three decompositions of Σ
for any number of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from handful.engine.left_out import (
    Floats,
    HeadCalibration,
    Ints,
    Margins,
    blocks,
    distinct,
    log_likelihood,
)
from handful.engine.limits import (
    FIRST_GRADIENT,
    FIRST_ON_LINE,
    IN_CACHE,
    LEAST_DECREASE,
    LINE_GRADIENT,
    LINE_ROUNDING,
    MOST_HALVINGS,
    MOST_LINE_STEPS,
    MOST_TRAINING_STEPS,
    ON_LINE,
)
from handful.engine.settings import DEFAULT, Settings


def logistic(
    points: Floats, codes: Ints, n_classes: int, each: Floats | None = None, settings: Settings = DEFAULT
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

    Examples
    --------
    >>> points = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> weights, offsets = logistic(points, np.array([0, 0, 1]), 2)
    >>> (points @ weights.T + offsets).argmax(1).tolist()
    [0, 0, 1]
    """
    each = _ones(points) if each is None else each
    rows, basis = _rotated(points)
    ridge = np.full(rows.shape[1], 1 / settings.inverse_ridge, rows.dtype)
    ridge[-1] = 0
    parts = blocks(len(rows), n_classes)

    def value(weights: Floats) -> tuple[float, Floats]:
        gradient = weights * ridge
        loss = 0.5 * float(np.vdot(weights, gradient))
        for some in parts:
            block = rows[some]
            share = each[some]
            own = codes[some]
            index = np.arange(len(own))
            logits = block @ weights.T
            logits -= logits.max(1, keepdims=True)
            behind = -logits[index, own]
            np.exp(logits, out=logits)
            total = logits.sum(1)
            loss += float(np.dot(behind + np.log(total), share))
            logits *= (share / total)[:, None]
            logits[index, own] -= share
            gradient += logits.T @ block
        return loss, gradient

    start = np.zeros((n_classes, rows.shape[1]), rows.dtype)
    first = value(start)
    enough = settings.head_tolerance * float(np.linalg.norm(first[1]))
    solution = _descend(value, start, first, enough, settings)
    weights = solution[:, :-1]
    return weights if basis is None else weights @ basis.T, solution[:, -1]


def logistic_line(
    x: Floats, truth: Floats, weights: Floats, settings: Settings = DEFAULT, enough: float = LINE_GRADIENT
) -> tuple[float, float]:
    """Minimise `Σ w CE(y, A + B x) + ridge (A² + B²)/2`; the ridge is small, for data that a threshold separates.

    `enough` is the length of the gradient at which it stops.

    Examples
    --------
    >>> a, b = logistic_line(np.array([-1.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> abs(a) < 1e-6, b > 1
    (True, True)
    """
    # Newton's method: each step takes one look at the data, and is halved until the loss falls. Some of the data tell
    # where to start, so that all of them are looked at three or four times and not ten.
    every = len(x) // FIRST_ON_LINE
    ridge = settings.pair_ridge
    at: Floats = np.zeros(2)
    if every > 1:
        some = every * weights[::every]
        near = max(enough, FIRST_GRADIENT * float(some.sum()))
        at[:] = logistic_line(x[::every].copy(), truth[::every].copy(), some, settings, near)
    step: Floats = np.zeros(2)
    before = np.inf
    for _ in range(MOST_LINE_STEPS):
        there = at - step
        found = _line_sums(x, truth, weights, there)
        loss = found.loss + ridge / 2 * float(there @ there)
        if loss > before + LINE_ROUNDING * abs(before):
            step = step / 2
            continue
        at = there
        before = loss
        gradient = found.gradient + ridge * at
        if float(np.linalg.norm(gradient)) <= enough:
            break
        step = np.linalg.solve(found.curvature + ridge * np.eye(2), gradient)
    return float(at[0]), float(at[1])


class _LineSums(NamedTuple):
    """Loss of a line, and its derivatives by A and B."""

    loss: float
    gradient: Floats
    curvature: Floats


def _line_sums(x: Floats, truth: Floats, weights: Floats, at: Floats) -> _LineSums:
    """Add up `w CE(y, A + B x)` and its derivatives, in blocks that a cache holds."""
    loss = 0.0
    gradient = np.zeros(2)
    curvature = np.zeros((2, 2))
    for first in range(0, len(x), ON_LINE):
        some = slice(first, first + ON_LINE)
        logits = at[0] + at[1] * x[some]
        odd = np.tanh(0.5 * logits)
        each = np.maximum(logits, 0) - np.log(0.5 + 0.5 * np.abs(odd)) - truth[some] * logits
        p = 0.5 + 0.5 * odd
        errors = weights[some] * (p - truth[some])
        bend = weights[some] * p * (1 - p)
        across = bend * x[some]
        loss += float(weights[some] @ each)
        gradient += np.array([errors.sum(), errors @ x[some]])
        curvature += np.array([[bend.sum(), across.sum()], [across.sum(), across @ x[some]]])
    return _LineSums(loss, gradient, curvature)


def logistic_near(
    points: Floats,
    codes: Ints,
    near: Ints,
    start: tuple[Floats, Floats],
    each: Floats | None = None,
    settings: Settings = DEFAULT,
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
    counts = np.bincount(codes, minlength=len(near))
    order = np.lexsort((codes, counts[codes]))  # classes with as many examples each are computed together
    rows, basis = _rotated(points)
    rows = rows[order]
    codes = codes[order]
    each = (_ones(points) if each is None else each)[order]
    begin = np.column_stack(start).astype(points.dtype)
    origin = begin if basis is None else np.column_stack([begin[:, :-1] @ basis, begin[:, -1]])
    n_classes, n_near = near.shape
    parts = _parts_of_one_count(counts, IN_CACHE // (n_near * rows.shape[1]) + 1)
    columns = near[codes].ravel()
    starts = np.arange(0, len(columns) + 1, n_near)

    def value(weights: Floats) -> tuple[float, Floats]:
        away = weights - origin
        gradient = away / settings.inverse_ridge
        loss = 0.5 * float(np.vdot(away, gradient))
        errors = np.empty((len(rows), n_near), rows.dtype)  # chances minus what is true, times the weight
        for classes, some in parts:
            share = each[some].reshape(len(classes), -1)
            block = rows[some].reshape(*share.shape, -1)
            logits = block @ weights[near[classes]].swapaxes(1, 2)
            logits -= logits.max(2, keepdims=True)
            behind = -logits[:, :, 0]
            np.exp(logits, out=logits)
            total = logits.sum(2)
            loss += float(np.vdot(behind + np.log(total), share))
            logits *= (share / total)[:, :, None]
            logits[:, :, 0] -= share
            errors[some] = logits.reshape(-1, n_near)
        table = sparse.csr_array((errors.ravel(), columns, starts), shape=(len(rows), n_classes))
        return loss, np.asarray(gradient + table.T @ rows)

    # At zero the M classes that an example is compared with are equally likely.
    sums = class_sums(rows, codes, n_classes, each)
    chance = np.full(near.size, 1 / n_near, rows.dtype)
    among = sparse.csr_array((chance, near.ravel(), np.arange(0, near.size + 1, n_near)), shape=(n_classes, n_classes))
    at_zero = among.T @ sums - sums - origin / settings.inverse_ridge
    enough = settings.head_tolerance * float(np.linalg.norm(at_zero))
    solution = _descend(value, origin, value(origin), enough, settings)
    weights = solution[:, :-1] if basis is None else begin[:, :-1] + (solution - origin)[:, :-1] @ basis.T
    return weights, solution[:, -1]


def _parts_of_one_count(counts: Ints, most: int) -> list[tuple[Ints, slice]]:
    """Return parts of the classes, `most` at most, and the examples of each part.

    Examples are sorted by the number of examples of their class and then by class; classes of a part have equal ones.
    """
    parts = list[tuple[Ints, slice]]()
    at = 0
    for count in np.unique(counts[counts > 0]).tolist():
        classes = np.flatnonzero(counts == count)
        for first in range(0, len(classes), most):
            some = classes[first : first + most]
            parts.append((some, slice(at, at + count * len(some))))
            at += count * len(some)
    return parts


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
    rows = np.column_stack([points, _ones(points)])
    begin = np.column_stack(start).astype(points.dtype)
    n_classes = len(begin)
    number = np.full(len(begin), -1)
    number[some] = np.arange(len(some))
    kept = begin[number < 0]
    own = number[codes]
    ridge = np.full(rows.shape[1], 1 / settings.inverse_ridge, rows.dtype)
    ridge[-1] = 0
    others = np.full(len(rows), -np.inf, rows.dtype)  # log-sum-exp of the classes that stay
    parts = blocks(len(rows), n_classes)
    for block in parts if len(kept) else ():
        # Down the columns, it takes half the time.
        others[block] = np.logaddexp.reduce(np.ascontiguousarray((rows[block] @ kept.T).T), axis=0)

    def value(weights: Floats) -> tuple[float, Floats]:
        gradient = weights * ridge
        loss = 0.5 * float(np.vdot(weights, gradient))
        for block in parts:
            logits = rows[block] @ weights.T
            share = each[block]
            trained = np.flatnonzero(own[block] >= 0)
            mine = own[block][trained]
            top = np.maximum(logits.max(1), others[block])
            loss -= float(np.dot(logits[trained, mine], share[trained]))
            np.exp(logits - top[:, None], out=logits)
            total = logits.sum(1) + np.exp(others[block] - top)
            loss += float(np.dot(top + np.log(total), share))
            logits *= (share / total)[:, None]
            logits[trained, mine] -= share[trained]
            gradient += logits.T @ rows[block]
        return loss, gradient

    at_zero = each @ rows / n_classes - class_sums(rows, codes, n_classes, each)
    solution = begin.copy()
    enough = settings.head_tolerance * float(np.linalg.norm(at_zero))
    solution[some] = _descend(value, begin[some], value(begin[some]), enough, settings)
    return solution[:, :-1], solution[:, -1]


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


def _rotated(points: Floats) -> tuple[Floats, Floats | None]:
    """Return rows whose last feature is always one, for b, in the span of the points if that is smaller; its basis."""
    basis = None
    if len(points) < points.shape[1]:
        basis, triangle = np.linalg.qr(points.T)
        points = triangle.T
    return np.column_stack([points, _ones(points)]), basis


def _descend(
    value: Callable[[Floats], tuple[float, Floats]],
    here: Floats,
    first: tuple[float, Floats],
    enough: float,
    settings: Settings,
) -> Floats:
    """Minimise by L-BFGS with backtracking (Armijo) until the gradient is at most `enough`; `first` is that of here.

    SciPy's own takes as many steps, in double precision, and twice as long.
    """
    loss, gradient = first
    steps: list[tuple[Floats, Floats, float]] = []
    rounding = settings.training_rounding * float(np.finfo(here.dtype).eps)
    for _ in range(MOST_TRAINING_STEPS):
        if float(np.linalg.norm(gradient)) <= enough:
            break
        direction = _newton(gradient, steps)
        slope = float(np.vdot(gradient, direction))
        step = 1.0
        for _ in range(MOST_HALVINGS):
            there = here - step * direction
            new_loss, new_gradient = value(there)
            # What the step gains can be less than the rounding of the loss.
            if new_loss <= loss - LEAST_DECREASE * step * slope + rounding * abs(loss):
                break
            step /= 2
        else:
            break
        moved = there - here
        turned = new_gradient - gradient
        bend = float(np.vdot(moved, turned))
        if bend > rounding * float(np.vdot(turned, turned)):
            steps = [*steps, (moved, turned, 1 / bend)][-settings.training_memory :]
        here = there
        loss = new_loss
        gradient = new_gradient
    return here


def _newton(gradient: Floats, steps: list[tuple[Floats, Floats, float]]) -> Floats:
    """Return the inverse Hessian times the gradient, as far as the steps remember it (the two-loop recursion)."""
    direction = gradient.copy()
    factors = []
    part = np.empty_like(gradient)
    for moved, turned, inverse in reversed(steps):
        factors.append(inverse * float(np.vdot(moved, direction)))
        direction -= np.multiply(turned, factors[-1], out=part)
    if steps:
        _, turned, inverse = steps[-1]
        direction /= inverse * float(np.vdot(turned, turned))
    for (moved, turned, inverse), factor in zip(steps, reversed(factors), strict=True):
        direction += np.multiply(moved, factor - inverse * float(np.vdot(turned, direction)), out=part)
    return direction


def _ones(points: Floats) -> Floats:
    return np.ones(len(points), points.dtype)


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
    without = (means[own] * s[:, None] - x * copies[:, None]) / rest[:, None]
    # By class: what lies off a mean in one direction is made up for by others of the class.
    odd = (means**2).sum(1).argsort(kind="stable").argsort()[own] % 2
    halves = [np.flatnonzero(odd == 1), np.flatnonzero(odd == 0)]
    order = np.concatenate(halves)
    weights = 1 / s[np.concatenate(halves)]
    axes = [_axes(away[half]) for half in halves[::-1]]
    temperatures = np.array(settings.temperatures)

    def tried(shrinkage: float) -> tuple[Margins, float]:
        """Return the margins of the examples, and V."""
        parts = []
        total = 0.0
        for half, of_others in zip(halves, axes, strict=True):
            turn = _turn(of_others, shrinkage)
            there = means @ turn
            z = x[half] @ turn
            alone = without[half] @ turn
            squares = ((away[half] @ turn) ** 2).sum(1)
            total += float(squares.sum())
            v = float(squares.mean())
            slope = default_slope(there, settings)
            to_all = head_of_means(there, shots, v, slope, settings)
            to_own = head_of_means(alone, rest[half], v, slope, settings)
            own_logits = (z * to_own[0]).sum(1) + to_own[1]
            for block in blocks(len(half), len(means)):
                logits = z[block] @ to_all[0].T + to_all[1]
                logits[np.arange(len(logits)), own[half][block]] = own_logits[block]
                parts.append(Margins.of(logits, own[half][block], temperatures))
        return Margins.joined(parts), total / len(kept)

    trials = [tried(shrinkage) for shrinkage in settings.shrinkages]
    # How many labels are wrong does not depend on the space.
    wrong = HeadCalibration.of(trials[0][0], kept[order], weights, len(means), settings).wrong_share
    best = int(np.argmax([log_likelihood(margins, weights, len(means), wrong)[0].max() for margins, _ in trials]))
    (margins, v) = trials[best]
    shrinkage = settings.shrinkages[best]
    turn = _turn(_axes(away), shrinkage)
    there = means @ turn
    turned, offsets = head_of_means(there, shots, v, default_slope(there, settings), settings)
    calibration = HeadCalibration.of(margins, kept[order], weights, len(means), settings)
    return FittedMeans(turned @ turn.T, offsets, spread, calibration)


def head_of_means(
    means: Floats, shots: Floats, spread: float, slope: float, settings: Settings = DEFAULT
) -> tuple[Floats, Floats]:
    """W = κμ and b = -½κ|μ|² + ½κ g V/s, with κ the slope.

    A mean of s examples lies V/s too far from the items of its class. To take off all of it, g = 1, would be too much:
    such a distance is also noisy, and noise of variance v in a score adds v/2 to the mean of its exponential, so means
    of few examples would win too often by chance.
    """
    excess = settings.share_of_excess * spread / shots
    return slope * means, np.asarray(0.5 * slope * (excess - (means**2).sum(1)))


def default_slope(means: Floats, settings: Settings = DEFAULT) -> float:
    """κ at T = 1."""
    around = float(((means - means.mean(0)) ** 2).sum(1).mean())
    return settings.nats_of_means / around if around > 0 else 1.0


def _axes(away: Floats) -> tuple[Floats, Floats]:
    """Variances along the axes of Σ, one on average, and these axes."""
    values, axes = np.linalg.eigh(away.T @ away)
    level = float(values.mean())
    return np.maximum(values, 0) / level if level > 0 else np.ones_like(values), axes


def _turn(axes: tuple[Floats, Floats], shrinkage: float) -> Floats:
    """R with R Rᵀ = P."""
    return np.asarray(axes[1] / np.sqrt((1 - shrinkage) * axes[0] + shrinkage))
