"""Head: S_nk = <x_n, W_k> + b_k, nats under equal shares of all classes; fitted once per catalogue.

1. Every example is scored by a head that did not see it (five folds). Copies of a row share a fold. A class with one
   distinct example stays in training.
2. They tell the temperature T and the chance r_n that a label is right (`handful.model.left_out`). If no label is
   expected to be wrong, all r_n are one.
3. `W, b` by logistic regression on all examples, once: `min Σ_n r_n CE(y_n, x_n W + b) + |W|²/(2C)`, with C = 30 for
   rows of unit length. A fold has r = 1.
4. `S = (x W + b - ln s)/T` with s = Σ r_n of each class: subtracting ln s takes the numbers of examples out of
   the odds.

Names of classes are further examples, of a weight that left-out examples choose (`handful.model.names`); s is then the
number of examples and that weight together.

Training costs N·K·d per evaluation. Beyond `full_work` each example is compared with the `near_classes` nearest to its
own; beyond `trained_numbers`, or if some examples are not known, the head is made of class means in a space where the
classes are round: `LinearHead.of_means`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handful.machine.threads import one_thread
from handful.model.left_out import (
    Bools,
    Floats,
    Fold,
    HeadCalibration,
    Ints,
    LeftOutExamples,
    Margins,
    assign_folds,
)
from handful.model.limits import LEAST_SUM, NAME_WEIGHT_EXAMPLES
from handful.model.linear import (
    Axes,
    class_sums,
    default_slope,
    fit_class_means,
    head_of_means,
    logistic,
    logistic_near,
    logistic_some,
    nearest_classes,
)
from handful.model.names import HeadRows, NameVectors, Train
from handful.model.settings import DEFAULT, Settings


@dataclass(frozen=True, eq=False)
class LinearHead:
    """S_nk = <x_n, W_k> + b_k: nats under equal shares of all classes, whatever their numbers of examples.

    Make one with `fit_head` or `LinearHead.of_means`. Points and means have the origin of the points that these get.

    Attributes
    ----------
    weights, offsets
        W [class, dim] and b [class].
    means
        Class means [class, dim]; doubtful examples count less.
    mass
        Effective number of examples of each class, Σ r_n.
    spread
        Mean squared distance of an example from the mean of its class, unbiased; None if there are too few examples.
    temperature
        T, already part of weights and offsets.
    wrong_share
        ε, the share of wrong labels among the examples.
    confidence
        Mean of the largest probability of left-out examples; None if nothing could be left out.
    left_out
        What was found about single examples; may be empty.
    n_fitted
        Examples when all of the head was last fitted; 0 if `update_head` cannot start from it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat(np.arange(10), 5)
    >>> points = rng.normal(size=(10, 16))[codes] + 0.5 * rng.normal(size=(50, 16))
    >>> head = fit_head(points, codes, 10)
    >>> bool((head.scores(points).argmax(1) == codes).all()), len(head.left_out.rows)
    (True, 50)
    """

    weights: Floats
    offsets: Floats
    means: Floats
    mass: Floats
    spread: float | None
    temperature: float
    wrong_share: float
    confidence: float | None
    left_out: LeftOutExamples
    n_fitted: int = 0

    def scores(self, points: Floats) -> Floats:
        """`S_nk` [item, class]."""
        return np.asarray(points @ self.weights.T + self.offsets)

    @classmethod
    def of_names(cls, names: Floats) -> LinearHead:
        """W = t - mean of t, b = 0: a catalogue of names alone, whose scale the items have to tell."""
        weights = names - names.mean(0)
        offsets = np.zeros_like(names[:, 0])
        return cls._calibrated(
            weights, offsets, names, np.ones_like(offsets), None, HeadCalibration.without_examples(1.0)
        )

    @classmethod
    def of_means(
        cls, means: Floats, shots: Floats, points: Floats, codes: Ints, settings: Settings = DEFAULT
    ) -> LinearHead:
        """Make one of class means, for any number of classes: `handful.model.linear`.

        Parameters
        ----------
        means, shots
            Mean [class, dim] and number of all examples of each class, known or not.
        points, codes
            Some of these examples.
        settings
            Numbers of the fit.
        """
        weights, offsets, spread, calibration = fit_class_means(means, shots, points, codes, settings)
        return cls._calibrated(weights, offsets, means, shots, spread, calibration)

    @classmethod
    def _calibrated(
        cls,
        weights: Floats,
        offsets: Floats,
        means: Floats,
        mass: Floats,
        spread: float | None,
        calibration: HeadCalibration,
    ) -> LinearHead:
        examples, t, wrong_share, confidence = calibration
        return cls(weights / t, offsets / t, means, mass, spread, t, wrong_share, confidence, examples)


@one_thread()  # on a busy machine several wait for one another, much longer than one takes
def fit_head(
    points: Floats,
    codes: Ints,
    n_classes: int,
    square_norm: float | None = None,
    names: NameVectors | None = None,
    begin: Callable[[int], Callable[[int], None]] | None = None,
    settings: Settings = DEFAULT,
) -> LinearHead:
    """Fit a head to all examples of a catalogue, and to the names of its classes.

    Parameters
    ----------
    points, codes
        The examples [point, dim], at least one of every class that has no name, and their classes 0 … K-1.
    n_classes
        K.
    square_norm
        Mean squared norm of the examples before their origin was moved, so that the ridge does not depend on the
        origin; that of `points` if it was not moved.
    names
        Names of some of the classes or of all, about the same origin.
    begin
        Called with the number of fits, one without each part of the examples and one with all; returns what is called
        with 1 after each.
    settings
        Numbers of the fit.
    """
    rows = HeadRows(points, codes, n_classes, settings=settings)
    right = np.ones_like(points[:, 0])
    dim = points.shape[1]
    n_rows = len(points) + (0 if names is None else len(names.codes))
    if n_rows * dim > settings.trained_numbers:
        shots = rows.shots
        means: Floats = class_sums(points, codes, n_classes, right) / np.maximum(shots, 1)[:, None]
        if names is not None:
            means, shots = names.blended(means, shots, settings)
        return LinearHead.of_means(means, shots, points, codes, settings)

    work = n_rows * n_classes * min(n_rows, dim)
    near = work > settings.full_work
    if near:
        work = settings.near_cost * n_rows * settings.near_classes * dim
    folded = work <= settings.folded_work
    if square_norm is None:
        square_norm = float((points**2).sum(1, dtype=np.float64).mean())
    length = math.sqrt(square_norm or 1.0)
    train = _trainer(points, None, n_classes, length, near, settings)
    if names is not None:
        with_names = _trainer(points, names, n_classes, length, near, settings)
        rows = _with_names(rows, names, with_names)
        train = train if rows.names is None else with_names
    calibration = HeadCalibration.without_examples(1.0)
    left_out = _sets_to_leave_out(rows, settings.folds if folded else 1)
    n_fits = len(left_out) + 1
    if begin is not None:
        train = _reported(train, begin(n_fits))
    if left_out:
        folds = [rows.leave_out(train, out) for out in left_out]
        calibration = HeadCalibration.of_folds(folds, rows.shots, settings)
        calibration = calibration.with_scores(folds, rows.shots + rows.of_names, shorter=not near)
    right = _weights(calibration.examples, codes, n_classes, right)
    x, y, each = rows.training_rows(np.ones(len(points), dtype=bool), right)
    mass = np.bincount(y, each, n_classes).astype(points.dtype)
    means = class_sums(x, y, n_classes, each) / mass[:, None]
    weights, offsets = train(x, y, each)
    if near and not left_out:
        slope = default_slope(means, settings)
        calibration = HeadCalibration.without_examples(settings.near_slope / (square_norm or 1.0) / slope)
    elif not left_out:
        scores = means @ weights.T + offsets - np.log(mass)
        calibration = HeadCalibration.without_examples(temperature_without_left_out(scores, settings))
    spread = _spread(points, codes, n_classes, right, settings)
    head = LinearHead._calibrated(weights, offsets - np.log(mass), means, mass, spread, calibration)
    return replace(head, n_fitted=0 if near or names is not None or not left_out else len(points))


def temperature_without_left_out(scores: Floats, settings: Settings = DEFAULT) -> float:
    """`T² = (K min(sd/c, T₀)² + K₀ T₀²) / (K + K₀)`, with sd the deviation of the scores of other classes.

    Nothing can be left out, so nobody knows how much a class mean scores of its own class. What it scores of the
    others is chance: items of two classes are alike by chance only, and c nats of that are typical of the banks.
    """
    n_classes = len(scores)
    others = (scores - scores.mean(1, keepdims=True))[~np.eye(n_classes, dtype=bool)]
    usual = settings.usual_temperature
    chance = float(others.std(dtype=np.float64)) / settings.chance_nats if n_classes > 1 else 0.0
    squares = n_classes * min(chance, usual) ** 2 + settings.usual_classes * usual**2
    return math.sqrt(squares / (n_classes + settings.usual_classes))


def _reported(train: Train, report: Callable[[int], None]) -> Train:
    """Return the same training, which reports every fit."""

    def trained(*given: Any) -> Any:
        found = train(*given)
        report(1)
        return found

    return trained


@one_thread()
def update_head(
    before: LinearHead,
    classes: Ints,
    points: Floats,
    codes: Ints,
    n_classes: int,
    n_known: int,
    square_norm: float,
    *,
    however_many: bool = False,
    settings: Settings = DEFAULT,
) -> LinearHead | None:
    """Fit a head to more examples from the head without them: only W and b of the classes with new examples change.

    T, ε and what is known about the earlier examples stay. `before` has not seen the new examples, so those of classes
    it knows are left-out examples. None if all has to be fitted again: more than a quarter of the examples, or of the
    classes, would be new or changed since that was done.

    Parameters
    ----------
    before, classes
        The head, and the number of each of its classes among all.
    points, codes, n_classes
        All examples and their classes, as in `fit_head`; the first `n_known` are those of `before`.
    n_known
        Examples that `before` was fitted to.
    square_norm
        As in `fit_head`.
    however_many
        Whether this is done however many examples are new.
    settings
        Numbers of the fit.
    """
    some = np.unique(codes[n_known:])
    many_examples = len(points) - before.n_fitted > settings.refit_share * before.n_fitted
    many_classes = len(some) > settings.refit_share * n_classes
    if (many_examples or many_classes) and not however_many:
        return None
    t = before.temperature
    length = math.sqrt(square_norm or 1.0)
    dim = points.shape[1]
    number = np.full(n_classes, -1)
    number[classes] = np.arange(len(classes))
    log_mass = np.log(before.mass)
    shots = np.bincount(codes, minlength=n_classes).astype(points.dtype)
    known = n_known + np.flatnonzero(number[codes[n_known:]] >= 0)
    fold = Fold(known, points[known], number[codes[known]], before.weights * t, before.offsets * t + log_mass, log_mass)
    calibration = HeadCalibration.without_examples(t)
    if len(known):
        margins = Margins.joined(fold.margins(np.array([t])))
        ones = np.ones(len(known))
        calibration = HeadCalibration.of(margins, known, ones, len(classes), before.wrong_share, settings)
        calibration = calibration.with_scores([fold], shots[classes], shorter=True)
    columns = zip(before.left_out, calibration.examples, strict=True)
    examples = LeftOutExamples(*(np.concatenate(pair) for pair in columns))
    examples = examples._replace(rival=classes[examples.rival])
    right = _weights(examples, codes, n_classes, np.ones_like(points[:, 0]))
    mass = np.bincount(codes, right, n_classes).astype(points.dtype)
    means = class_sums(points, codes, n_classes, right) / mass[:, None]
    weights = np.zeros((n_classes, dim), points.dtype)
    offsets = np.full(n_classes, fold.offsets.mean(), points.dtype)
    centre = points.mean(0)
    weights[classes] = fold.weights * length
    offsets[classes] = fold.offsets + fold.weights @ centre
    weights, offsets = logistic_some((points - centre) / length, codes, (weights, offsets), some, right, settings)
    weights = weights / length
    offsets = offsets - weights @ centre
    spread = _spread(points, codes, n_classes, right, settings)
    whole = HeadCalibration(examples, t, before.wrong_share, before.confidence)
    head = LinearHead._calibrated(weights, offsets - np.log(mass), means, mass, spread, whole)
    return replace(head, n_fitted=before.n_fitted)


def _weights(examples: LeftOutExamples, codes: Ints, n_classes: int, right: Floats) -> Floats:
    """Return the weight of each example: the chance that its label is right, if a label is expected to be wrong."""
    right[examples.rows] = np.maximum(examples.right, LEAST_SUM)
    if float((1 - right).sum(dtype=np.float64)) < 1:
        right[:] = 1
    # A class keeps at least the weight of one example, however doubtful its examples are. With less, its offset would
    # win items that look like nothing in particular.
    right /= np.minimum(np.bincount(codes, right, n_classes), 1).astype(right.dtype)[codes]
    return right


def _trainer(
    examples: Floats, names: NameVectors | None, n_classes: int, length: float, near: bool, settings: Settings
) -> Train:
    """Return what fits W and b to some of the examples and names; b follows the numbers of examples."""
    spanned = examples - examples.mean(0)
    if names is not None:
        spanned = np.concatenate([spanned, names.points - names.points.mean(0)])
    axes = Axes.of(spanned / length)

    def train(points: Floats, codes: Ints, each: Floats) -> tuple[Floats, Floats]:
        # About their mean and of unit length, rows of any origin and scale take the same steps to the minimum.
        centre = points.mean(0)
        x = (points - centre) / length
        if near:
            mass = np.bincount(codes, each, n_classes).astype(x.dtype)
            means = class_sums(x, codes, n_classes, each) / mass[:, None]
            spread = _spread(x, codes, n_classes, each, settings) or 0.0
            w, b = head_of_means(means, mass, spread, settings.near_slope, settings)
            rivals = nearest_classes(means, settings.near_classes)
            weights, offsets = logistic_near(x, codes, rivals, (w, b + np.log(mass)), each, settings, axes)
        else:
            weights, offsets = logistic(x, codes, n_classes, each, settings, axes)
        weights = weights / length
        return weights, offsets - weights @ centre

    return train


def _with_names(rows: HeadRows, names: NameVectors, train: Train) -> HeadRows:
    """Add names, with the weight under which left-out examples are most likely."""
    everywhere = bool((rows.shots > 0).all())
    named = replace(rows, names=names)
    ones = np.ones_like(rows.points[:, 0])
    means = class_sums(rows.points, rows.codes, rows.n_classes, ones) / np.maximum(rows.shots, 1)[:, None]
    settings = rows.settings
    if not names.are_informative(means, rows.shots, settings):
        return rows if everywhere else named
    best = replace(named, name_weight=settings.usual_name_weight)
    # Each weight that is tried takes a head per fold.
    left_out = _sets_to_leave_out(best, settings.folds, NAME_WEIGHT_EXAMPLES)
    if left_out:
        best = best.with_best_weight(train, left_out)
    return rows if best.name_weight == 0 and everywhere else best


def _sets_to_leave_out(rows: HeadRows, n_folds: int, enough: float = math.inf) -> list[Bools]:
    """Return sets of examples to leave out, until there are enough; none if there are too few examples or classes."""
    folds = assign_folds(rows.points, rows.codes, rows.of_names > 0, rows.settings)
    if (folds >= 0).sum() < rows.settings.fewest_left_out or rows.n_classes == 1:
        return []
    sets = [folds == fold for fold in range(n_folds) if (folds == fold).any()]
    n_out = np.cumsum([out.sum() for out in sets])
    return sets[: 1 + int((n_out < enough).sum())]


def _spread(points: Floats, codes: Ints, n_classes: int, each: Floats, settings: Settings) -> float | None:
    """Σ r_n |x_n - μ_y|² / (Σ r_n - K), or None if there are too few examples."""
    mass = np.bincount(codes, each, n_classes).astype(points.dtype)
    freedom = float(each.sum(dtype=np.float64)) - int((mass > 0).sum())
    if freedom < settings.fewest_for_spread:
        return None
    means = class_sums(points, codes, n_classes, each) / np.maximum(mass, 1)[:, None]
    return float(np.dot(each, ((points - means[codes]) ** 2).sum(1))) / freedom
