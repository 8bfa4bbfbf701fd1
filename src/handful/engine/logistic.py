"""Multinomial logistic regression, min over W, b of  Σ_n r_n CE(y_n, x_n W + b) + |W - W0|²/(2C), by L-BFGS.

`logistic` compares every example with all K classes: N·K·d per evaluation; W0 = 0, and b has no penalty.
`logistic_near` compares it with the M classes nearest to its own, N·M·d, and starts from class means.
`logistic_some` trains M of the classes beside the others, which stay: N·K·d once, and N·M·d per evaluation.

W - W0 lies in the span of the examples. If they are fewer than the features, they are rotated into it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]

# Stop when the gradient is this share of that at zero: logits then differ from converged ones by less than 1 %.
TOLERANCE = 1e-3
# L-BFGS: pairs of steps and changes of the gradient that it remembers, and steps that it may take. SciPy's own takes as
# many steps, in double precision, and twice as long.
MEMORY, MOST_STEPS, MOST_HALVINGS = 10, 200, 20
# Numbers in one block of logits: a block fits a second-level cache.
BLOCK_NUMBERS = 2**19


def logistic(
    points: Floats, codes: Ints, n_classes: int, inverse_ridge: float, each: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return W [class, dim] and b [class]; every example is compared with all classes.

    Parameters
    ----------
    points, codes
        Examples [point, dim] and their classes.
    n_classes, inverse_ridge
        K and C.
    each
        r, the weight of each example; one if not given.

    Examples
    --------
    >>> points = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> weights, offsets = logistic(points, np.array([0, 0, 1]), 2, inverse_ridge=30.0)
    >>> (points @ weights.T + offsets).argmax(1).tolist()
    [0, 0, 1]
    """
    size = max(1, BLOCK_NUMBERS // n_classes)
    groups = [(slice(at, at + size), slice(None), codes[at : at + size]) for at in range(0, len(points), size)]
    start = np.zeros((n_classes, points.shape[1] + 1), points.dtype)
    return _minimised(points, _ones(points) if each is None else each, groups, start, 1 / inverse_ridge, 0.0)


def logistic_near(
    points: Floats,
    codes: Ints,
    near: Ints,
    start: tuple[Floats, Floats],
    inverse_ridge: float,
    each: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return W and b; every example is compared with the classes `near[y_n]`, of which its own must be the first.

    The penalty is `(|W - W0|² + |b - b0|²)/(2C)`, with W0 and b0 from `start`. Without that on b, the offset of a class
    that no other class is compared with could grow without limit, and the class would win items far from it.

    Examples
    --------
    >>> points = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]])
    >>> codes, means = np.array([0, 0, 1, 1]), np.eye(2)
    >>> weights, offsets = logistic_near(points, codes, nearest_classes(means, 2), (20 * means, np.zeros(2)), 30.0)
    >>> (points @ weights.T + offsets).argmax(1).tolist()
    [0, 0, 1, 1]
    """
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(near)))
    groups = [
        (slice(end - n, end), near[k], np.zeros(n, dtype=np.int64))
        for k, (end, n) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True))
        if n > 0
    ]
    each = _ones(points) if each is None else each
    begin = np.column_stack(start).astype(points.dtype)
    return _minimised(points[order], each[order], groups, begin, 1 / inverse_ridge, 1 / inverse_ridge)


def logistic_some(
    points: Floats, codes: Ints, start: tuple[Floats, Floats], some: Ints, inverse_ridge: float, each: Floats
) -> tuple[Floats, Floats]:
    """Return W and b of all classes: those of `some` classes are trained from `start`, and the others stay as there.

    Examples
    --------
    >>> points = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]])
    >>> codes, ones, start = np.array([0, 0, 1, 1]), np.ones(4), (np.array([[3.0, 0.0], [0.0, 0.0]]), np.zeros(2))
    >>> weights, offsets = logistic_some(points, codes, start, np.array([1]), 30.0, ones)
    >>> (points @ weights.T + offsets).argmax(1).tolist(), weights[0].tolist()
    ([0, 0, 1, 1], [3.0, 0.0])
    """
    rows, begin = np.column_stack([points, _ones(points)]), np.column_stack(start).astype(points.dtype)
    n_classes, place = len(begin), np.full(len(begin), -1)
    place[some] = np.arange(len(some))
    kept, own = begin[place < 0], place[codes]
    ridge = np.full(rows.shape[1], 1 / inverse_ridge, rows.dtype)
    ridge[-1] = 0
    others = np.full(len(rows), -np.inf, rows.dtype)  # log-sum-exp of the classes that stay
    size = max(1, BLOCK_NUMBERS // n_classes)
    blocks = [slice(at, at + size) for at in range(0, len(rows), size)]
    for block in blocks if len(kept) else ():
        others[block] = np.logaddexp.reduce(rows[block] @ kept.T, axis=1)

    def value(weights: Floats) -> tuple[float, Floats]:
        gradient = weights * ridge
        loss = 0.5 * float(np.vdot(weights, gradient))
        for block in blocks:
            logits, share = rows[block] @ weights.T, each[block]
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
    found = begin.copy()
    found[some] = _descend(value, begin[some], value(begin[some]), TOLERANCE * float(np.linalg.norm(at_zero)))
    return found[:, :-1], found[:, -1]


def nearest_classes(means: Floats, most: int) -> Ints:
    """Return each class itself and then the classes with the nearest means, `most` in all or as many as there are.

    Examples
    --------
    >>> nearest_classes(np.array([[0.0], [1.0], [3.0]]), 2).tolist()
    [[0, 1], [1, 0], [2, 1]]
    """
    most, size = min(most, len(means)), max(1, BLOCK_NUMBERS // len(means))
    halves = 0.5 * (means**2).sum(1)
    found = []
    for at in range(0, len(means), size):
        farness = halves - means[at : at + size] @ means.T
        rows = np.arange(len(farness))
        farness[rows, rows + at] = -np.inf
        nearest = np.argpartition(farness, most - 1)[:, :most]
        found.append(np.take_along_axis(nearest, np.take_along_axis(farness, nearest, 1).argsort(1), 1))
    return np.concatenate(found)


def class_sums(points: Floats, codes: Ints, n_classes: int, each: Floats) -> Floats:
    """Σ r_n x_n of each class, [class, dim]."""
    chosen = sparse.csr_array((each, (codes, np.arange(len(codes)))), shape=(n_classes, len(codes)))
    return np.asarray(chosen @ points)


Group = tuple[slice, Any, Ints]  # examples, the classes they are compared with, and the place of their own among these


def _minimised(
    points: Floats, each: Floats, groups: list[Group], start: Floats, pull: float, lift: float
) -> tuple[Floats, Floats]:
    """Minimise from W0, b0; `pull` and `lift` are the ridges of W and b."""
    basis = None
    if len(points) < points.shape[1]:
        basis, triangle = np.linalg.qr(points.T)
        points = triangle.T
    rows = np.column_stack([points, _ones(points)])  # b is the weight of a feature that is always one
    origin = start if basis is None else np.column_stack([start[:, :-1] @ basis, start[:, -1]])
    ridge = np.full(rows.shape[1], pull, rows.dtype)
    ridge[-1] = lift

    def value(weights: Floats) -> tuple[float, Floats]:
        away = weights - origin
        gradient = away * ridge
        loss = 0.5 * float(np.vdot(away, gradient))
        for some, classes, own in groups:
            block, share, places = rows[some], each[some], np.arange(len(own))
            logits = block @ weights[classes].T
            logits -= logits.max(1, keepdims=True)
            behind = -logits[places, own]
            np.exp(logits, out=logits)
            total = logits.sum(1)
            loss += float(np.dot(behind + np.log(total), share))
            logits *= (share / total)[:, None]
            logits[places, own] -= share
            gradient[classes] += logits.T @ block
        return loss, gradient

    first = value(origin)
    steepest = float(np.linalg.norm((value(np.zeros_like(origin)) if origin.any() else first)[1]))
    found = _descend(value, origin, first, TOLERANCE * steepest)
    weights = found[:, :-1] if basis is None else start[:, :-1] + (found - origin)[:, :-1] @ basis.T
    return weights, found[:, -1]


def _descend(
    value: Callable[[Floats], tuple[float, Floats]], here: Floats, first: tuple[float, Floats], enough: float
) -> Floats:
    """Minimise by L-BFGS with backtracking (Armijo) until the gradient is at most `enough`; `first` is that of here."""
    loss, gradient = first
    steps: list[tuple[Floats, Floats, float]] = []
    rounding = 4 * float(np.finfo(here.dtype).eps)
    for _ in range(MOST_STEPS):
        if float(np.linalg.norm(gradient)) <= enough:
            break
        direction = _newton(gradient, steps)
        slope, step = float(np.vdot(gradient, direction)), 1.0
        for _ in range(MOST_HALVINGS):
            there = here - step * direction
            new_loss, new_gradient = value(there)
            # What the step gains can be less than the rounding of the loss.
            if new_loss <= loss - 1e-4 * step * slope + rounding * abs(loss):
                break
            step /= 2
        else:
            break
        moved, turned = there - here, new_gradient - gradient
        bend = float(np.vdot(moved, turned))
        if bend > rounding * float(np.vdot(turned, turned)):
            steps = [*steps, (moved, turned, 1 / bend)][-MEMORY:]
        here, loss, gradient = there, new_loss, new_gradient
    return here


def _newton(gradient: Floats, steps: list[tuple[Floats, Floats, float]]) -> Floats:
    """Return the inverse Hessian times the gradient, as far as the steps remember it (the two-loop recursion)."""
    direction, factors, part = gradient.copy(), [], np.empty_like(gradient)
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
