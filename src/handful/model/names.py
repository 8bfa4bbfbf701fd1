"""Names: a class may also be known by a vector of its name or description, for example from a text encoder.

Names and items need not lie in the same region: vectors of names and of photographs are far apart, and a name says less
than it varies. Over the classes that have both, with μ their mean examples and θ their names,

    name among examples = centre of μ + a (θ - centre of θ),    a = Σ⟨μ - centre, θ - centre⟩ / Σ|θ - centre|².

There it is one more example, of weight w. Names of a catalogue are informative if Σ⟨μ - centre, θ - centre⟩ is larger
than for names assigned to the classes at random, by two standard deviations; else only classes without examples have
theirs. w is the weight under which left-out examples are most likely. If the name of a class is not used and its only
example is left out, nothing is left of the class, and the chance of the example is that of any class, 1/K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from handful.model.left_out import Bools, Floats, Fold, Ints, Margins, log_likelihood
from handful.model.linear import class_sums
from handful.model.settings import DEFAULT, Settings

# Trains on points, codes and weights, and returns W and b.
Train = Callable[[Floats, Ints, Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class NameVectors:
    """Vectors of the names of some classes, at most one per class.

    Attributes
    ----------
    points
        The vectors [name, dim], about the origin of the examples.
    codes
        Their classes.

    Examples
    --------
    Names are twice as far apart as the classes, and elsewhere:

    >>> means = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    >>> names, shots = NameVectors(2 * means + 5, np.arange(6)), np.full(6, 30.0)
    >>> names.are_informative(means, shots), bool(np.abs(names.aligned(means, shots) - means).max() < 0.1)
    (True, True)
    """

    points: Floats
    codes: Ints

    def aligned(self, means: Floats, shots: Floats, settings: Settings = DEFAULT) -> Floats:
        """Return the names [name, dim] on the side of the examples; `shots` of zero mark classes without any."""
        m, t, centre, of_names = self._both(means, shots)
        away = self.points - of_names
        usual = settings.name_slope_weight * float((away**2).sum(1).mean())
        size = float((t**2).sum()) + usual
        slope = max(float((m * t).sum()) + settings.name_slope * usual, 0.0) / size if size > 0 else 0.0
        return np.asarray(centre + slope * away)

    def are_informative(self, means: Floats, shots: Floats, settings: Settings = DEFAULT) -> bool:
        """Whether names go with the examples of their classes; True if there are too few classes to tell."""
        m, t, _, _ = self._both(means, shots)
        if len(m) < settings.fewest_named:
            return True
        products = (m @ t.T).astype(np.float64)
        deviation = math.sqrt((products**2).sum() / (len(m) - 1))
        return float(products.trace()) > settings.informative_sds * deviation

    def blended(self, means: Floats, shots: Floats, settings: Settings = DEFAULT) -> tuple[Floats, Floats]:
        """Return means and numbers of examples with every name as one more example, or if it is the only one."""
        used = self.are_informative(means, shots, settings) | (shots[self.codes] == 0)
        weights = np.zeros_like(shots)
        weights[self.codes] = settings.usual_name_weight * used
        sums = means * shots[:, None]
        sums[self.codes] += self.aligned(means, shots, settings) * weights[self.codes, None]
        return sums / (shots + weights)[:, None], shots + weights

    def _both(self, means: Floats, shots: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Means and names of classes that have both, each about their centre, and the two centres."""
        both = shots[self.codes] > 0
        m = means[self.codes[both]]
        t = self.points[both]
        if len(m) == 0:  # examples of some classes, names of others
            known = means[shots > 0]
            return m, t, known.mean(0) if len(known) else np.zeros_like(means[0]), self.points.mean(0)
        centre = m.mean(0)
        of_names = t.mean(0)
        return m - centre, t - of_names, centre, of_names


@dataclass(frozen=True, eq=False)
class HeadRows:
    """What a head is trained on: examples, and names as further examples of their classes.

    Attributes
    ----------
    points, codes
        The examples [point, dim] and their classes.
    n_classes
        K.
    names
        Names of some of the classes, or None.
    name_weight
        How many examples a name counts as.
    settings
        Numbers of the fit.
    """

    points: Floats
    codes: Ints
    n_classes: int
    names: NameVectors | None = None
    name_weight: float = 0.0
    settings: Settings = DEFAULT

    @cached_property
    def shots(self) -> Floats:
        """Number of examples of each class."""
        return np.bincount(self.codes, minlength=self.n_classes).astype(self.points.dtype)

    @cached_property
    def of_names(self) -> Floats:
        """Weight of the name of each class; at least one for a class without examples."""
        weights = np.zeros(self.n_classes, self.points.dtype)
        if self.names is not None:
            weights[self.names.codes] = self.name_weight
            weights[self.shots == 0] = max(self.name_weight, self.settings.usual_name_weight)
        return weights

    def training_rows(self, kept: Bools, each: Floats) -> tuple[Floats, Ints, Floats]:
        """Return some of the examples, then the names that count: points, codes and weights."""
        points = self.points[kept]
        codes = self.codes[kept]
        if self.names is None:
            return points, codes, each[kept]
        shots = np.bincount(codes, minlength=self.n_classes).astype(points.dtype)
        sums = class_sums(points, codes, self.n_classes, np.ones_like(each[kept]))
        named = self.names.aligned(sums / np.maximum(shots, 1)[:, None], shots, self.settings)
        weights = self.of_names[self.names.codes]
        used = weights > 0
        return (
            np.concatenate([points, named[used]]),
            np.concatenate([codes, self.names.codes[used]]),
            np.concatenate([each[kept], weights[used]]),
        )

    def leave_out(self, train: Train, out: Bools) -> Fold:
        """Train without some of the examples."""
        left = self.remaining_shots(out)
        weights, offsets = train(*self.training_rows(~out, np.ones_like(self.points[:, 0])))
        # Nothing is left of a class: its logits say nothing, see `left_out_log_likelihood`.
        log_shots = np.log(np.where(left > 0, left, 1))
        return Fold(np.flatnonzero(out), self.points[out], self.codes[out], weights, offsets, log_shots)

    def remaining_shots(self, out: Bools) -> Floats:
        """Return the number of examples of each class without some, names included."""
        return np.asarray(np.bincount(self.codes[~out], minlength=self.n_classes) + self.of_names)

    def left_out_log_likelihood(self, train: Train, left_out: list[Bools]) -> float:
        """Mean log-likelihood of left-out examples, at the best temperature; classes weigh alike."""
        temperatures = np.array(self.settings.temperatures)
        folds = (self.leave_out(train, out) for out in left_out)
        margins = Margins.joined([part for fold in folds for part in fold.margins(temperatures)])
        gone = np.concatenate([self.remaining_shots(out)[self.codes[out]] == 0 for out in left_out])
        behind = np.where(gone, math.log(self.n_classes), margins.behind)
        own = np.concatenate([self.codes[out] for out in left_out])
        margins = margins._replace(behind=behind)
        likelihoods, _ = log_likelihood(margins, 1 / self.shots[own], self.n_classes, settings=self.settings)
        return float(likelihoods.max())

    def with_best_weight(self, train: Train, left_out: list[Bools]) -> HeadRows:
        """Return the same rows with the weight of names under which left-out examples are most likely."""
        best = self
        highest = -math.inf
        for weight in self.settings.name_weights:
            tried = replace(self, name_weight=weight)
            value = tried.left_out_log_likelihood(train, left_out)
            if value <= highest:
                break
            best = tried
            highest = value
        return best
