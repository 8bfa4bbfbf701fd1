"""How unlike a catalogue an item must be to belong to none of its classes.

Everything is learned from the catalogue, where the truth is known. Every class is left out once as a whole; its
examples are then items of no class.

**Statistic.** With d the squared distance of an item from the mean of its class, V the spread and S the score of that
class, both standardised over left-out examples and their own class,

    t = (d - E d)/σ_d - (S - E S)/σ_S :    0 on average for a known item, larger for an unknown one.

A group of n items that belong together is compared as one: its centroid, less noise, and its mean score.

**Levels.** Known: t has mean 0, and the variance of single examples, of which one tenth is common to all items of a
class and the rest falls as 1/n. Unknown: an example compared with the best other class (n = 1), and the centroid of its
whole class with the classes given to its examples; level and variance are straight lines in 1/n.

**Pairs.** The log-odds that two examples have the same class, `A + B cos`, by logistic regression on the cosines about
the centre of the class means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from handful.engine.head import LinearHead
from handful.engine.links import copies_of
from handful.engine.logistic import class_sums

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

# Fewest examples that have to be left out to learn from them.
FEWEST_LEFT_OUT = 20
# Share of the variance of t that all items of a class have in common: that of a group does not fall below it.
COMMON = 0.1
# How near a batch is to the catalogue is read off the nearest quarter of its items: unknown ones are rarely among
# them.
QUARTER = 0.25
# Examples that are compared with one another, of each class and of all classes.
MOST_OF_CLASS, MOST_COMPARED = 32, 512
# Weight of all pairs of a kind together, against a ridge of one thousandth on A and B.
PAIR_WEIGHT, RIDGE = 1000.0, 1e-3


class Levels(NamedTuple):
    """What a catalogue tells about items of no class; lines are `(base, extra)` of `base + extra/n`."""

    pair_odds: tuple[float, float]  # A and B
    distance: tuple[float, float]  # mean and deviation of d over left-out examples and their own class
    score: tuple[float, float]  # the same of S
    level: tuple[float, float]  # t of unknown items; that of known ones is zero
    known: tuple[float, float]  # variance of t
    unknown: tuple[float, float]
    quarter: float  # a quarter of the left-out examples is nearer to its own class than this, squared

    def statistic(self, distances: Floats, scores: Floats) -> Floats:
        """`t`."""
        (d, of_d), (s, of_s) = self.distance, self.score
        return np.asarray((distances - d) / of_d - (scores - s) / of_s)


def fit_levels(head: LinearHead, points: Floats, codes: Ints) -> Levels | None:
    """Learn from the examples that the head was fitted to.

    None if they cannot tell: fewer than 20 could be left out, the head consists of class means, examples of one class
    are not more alike than those of several, or those of a left-out class look like the others.
    """
    examples = _Examples.of(head, points, codes)
    if examples is None:
        return None
    pair_odds = examples.pair_odds(head.means.mean(0, dtype=np.float64))
    distance, score = examples.spread_of(examples.own_distance), examples.spread_of(examples.score)
    if pair_odds[1] <= 0 or distance[1] <= 0 or score[1] <= 0:
        return None
    quarter = max(float(np.quantile(examples.own_distance, QUARTER)), COMMON * examples.spread)
    bare = Levels(pair_odds, distance, score, (0, 0), (1, 0), (1, 0), quarter)
    known = bare.statistic(examples.own_distance, examples.score)
    unknown = bare.statistic(examples.rival_distance, examples.rival_score)
    wholes, of_whole = examples.wholes()
    if len(wholes.distances) < 2:
        return None
    whole, single = bare.statistic(*wholes), float(examples.weights @ known**2)
    mean, deviation = examples.spread_of(unknown)
    slope = (mean - float(whole.mean())) / (1 - 1 / of_whole)
    if max(mean, mean - slope) <= 0:
        return None  # items of no class look no more unlike the classes than others do, neither alone nor in groups
    return bare._replace(
        level=(mean - slope, slope),
        known=(COMMON * single, (1 - COMMON) * single),
        unknown=_variances(deviation**2, float(whole.var()), of_whole),
    )


def unjudged(head: LinearHead) -> str:
    """Say why `fit_levels` found nothing, and what to do."""
    if len(head.weights) == 1:
        return "Unknown items cannot be judged with a single class; add examples of other classes."
    if len(head.left_out.rows) < FEWEST_LEFT_OUT:
        return (
            f"Unknown items cannot be judged: that needs at least {FEWEST_LEFT_OUT} different examples in classes of "
            "two or more; add examples."
        )
    if bool(np.isnan(head.left_out.score).any()):
        return (
            "Unknown items cannot be judged: the catalogue is too large to train on; use fewer examples of each class."
        )
    return (
        "Unknown items cannot be judged: in these features, examples of a class that was left out look like those of "
        "the other classes; try features of another model."
    )


class _Groups(NamedTuple):
    """d and S of groups of examples."""

    distances: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class _Examples:
    """Examples whose label is likely right, one of each distinct row, ordered by class; some of them are `tested`."""

    points: Floats
    codes: Ints
    rank: Ints  # within the class
    n_classes: int
    spread: float
    tested: Ints  # those that were left out
    weights: Floats  # [tested]; classes weigh alike
    own_distance: Floats
    score: Floats
    rival_distance: Floats
    rival_score: Floats
    rival_means: Floats
    rival_excess: Floats  # V/s of the rival

    @classmethod
    def of(cls, head: LinearHead, points: Floats, codes: Ints) -> _Examples | None:
        found, spread = head.left_out, head.spread
        if not spread or len(found.rows) < FEWEST_LEFT_OUT or bool(np.isnan(found.score).any()):
            return None
        points = points.astype(np.float64)
        which, copies = copies_of(np.column_stack([codes, points]))
        first = np.unique(which)
        place, right = np.full(len(codes), -1), np.ones(len(codes))
        place[found.rows], right[found.rows] = np.arange(len(found.rows)), found.right
        # In an order that does not depend on that of the examples.
        away = ((points[first] - points.mean(0)) ** 2).sum(1)
        order = np.lexsort((away, codes[first]))
        first = first[order]
        many = copies[first]
        mass = head.mass[codes[first]].astype(np.float64)
        kept = (right[first] > 0.5) & (mass - many >= 0.5)
        first, mass, many = first[kept], mass[kept], many[kept]
        tested = np.flatnonzero(place[first] >= 0)
        if len(tested) < FEWEST_LEFT_OUT:
            return None
        own, x, place = codes[first[tested]], points[first[tested]], place[first[tested]]
        mass, many, means = mass[tested], many[tested], head.means.astype(np.float64)
        # Its own mean, without the example and its copies.
        without = (means[own] * mass[:, None] - x * many[:, None]) / (mass - many)[:, None]
        rival = found.rival[place]
        excess = spread / head.mass[rival].astype(np.float64)
        kept_codes = codes[first]
        n_of = np.bincount(kept_codes, minlength=len(means))
        weights = 1 / np.bincount(own, minlength=len(means))[own]
        return cls(
            points=points[first],
            codes=kept_codes,
            rank=np.arange(len(first)) - (n_of.cumsum() - n_of)[kept_codes],
            n_classes=len(means),
            spread=spread,
            tested=tested,
            weights=weights / weights.sum(),
            own_distance=((x - without) ** 2).sum(1) - spread / (mass - many),
            score=found.score[place],
            rival_distance=((x - means[rival]) ** 2).sum(1) - excess,
            rival_score=found.rival_score[place],
            rival_means=means[rival],
            rival_excess=excess,
        )

    def spread_of(self, values: Floats) -> tuple[float, float]:
        """Mean and deviation over classes."""
        mean = float(self.weights @ values)
        return mean, float(np.sqrt(self.weights @ (values - mean) ** 2))

    def wholes(self) -> tuple[_Groups, float]:
        """Compare every class with the rivals of its examples; and return how many examples it has on the mean."""
        n, ones = np.bincount(self.codes, minlength=self.n_classes).astype(np.float64), np.ones(len(self.codes))
        centroids = class_sums(self.points, self.codes, self.n_classes, ones) / np.maximum(n, 1)[:, None]
        own = self.codes[self.tested]
        tested = np.bincount(own, minlength=self.n_classes)

        def mean_of(values: Floats) -> Floats:
            return np.asarray(np.bincount(own, values, self.n_classes) / np.maximum(tested, 1))

        distance = mean_of(((centroids[own] - self.rival_means) ** 2).sum(1) - self.rival_excess)
        some = (n > 1) & (tested > 0)
        noise = self.spread / np.maximum(n, 1)
        groups = _Groups((distance - noise + self.spread)[some], mean_of(self.rival_score)[some])
        return groups, float(n[some].mean()) if bool(some.any()) else 2.0

    def pair_odds(self, centre: Floats) -> tuple[float, float]:
        """Fit A and B; classes weigh alike."""
        x = self.points - centre
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        n_of = np.bincount(self.codes, minlength=self.n_classes)
        # Of a large class, examples evenly over the order.
        thinner = np.minimum(MOST_OF_CLASS / np.maximum(n_of, 1), 1)[self.codes]
        some = np.floor(self.rank * thinner) > np.floor((self.rank - 1) * thinner)
        chosen, own = x[some], self.codes[some]
        n_of = np.bincount(own, minlength=self.n_classes)
        pairs_of = n_of * (n_of - 1) / 2
        same, weights = [np.empty(0)], [np.empty(0)]
        for step in range(1, int(n_of.max())):
            together = own[step:] == own[:-step]
            same.append((chosen[step:] * chosen[:-step]).sum(1)[together])
            weights.append(1 / pairs_of[own[step:][together]])
        # Of all examples, some evenly over their distances from the centre.
        order = ((self.points - centre) ** 2).sum(1).argsort(kind="stable")
        some = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_COMPARED)).round().astype(int))]
        apart = np.triu(self.codes[some][:, None] != self.codes[some])
        alike, other = np.concatenate(same), (x[some] @ x[some].T)[apart]
        if len(alike) == 0 or len(other) == 0:
            return 0.0, 0.0
        weight = np.concatenate(weights)
        truth = np.repeat([1.0, 0.0], [len(alike), len(other)])
        each = np.concatenate([weight / weight.sum(), np.full(len(other), 1 / len(other))])
        return logistic_line(np.concatenate([alike, other]), truth, PAIR_WEIGHT * each)


def logistic_line(x: Floats, truth: Floats, weights: Floats) -> tuple[float, float]:
    """Minimise `Σ w CE(y, A + B x) + ridge (A² + B²)/2`.

    Examples
    --------
    >>> a, b = logistic_line(np.array([-1.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    >>> abs(a) < 1e-6, b > 1
    (True, True)
    """

    def sums(each: Floats) -> Floats:
        return np.array([each.sum(), each @ x])

    def loss(at: Floats) -> tuple[float, Floats]:
        logits = at[0] + at[1] * x
        each = np.maximum(logits, 0) + np.log1p(np.exp(-np.abs(logits))) - truth * logits
        return float(weights @ each + RIDGE / 2 * at @ at), sums(weights * (expit(logits) - truth)) + RIDGE * at

    def curvature(at: Floats) -> Floats:
        p = expit(at[0] + at[1] * x)
        each = weights * p * (1 - p)
        return np.stack([sums(each), sums(each * x)]) + RIDGE * np.eye(2)

    found = minimize(loss, np.zeros(2), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-8}).x
    return float(found[0]), float(found[1])


def _variances(single: float, group: float, size: float) -> tuple[float, float]:
    """Line through the variance of single items and that of groups; neither rising with n nor down to nothing."""
    extra = (single - group) / (1 - 1 / size) if size > 1 else 0.0
    extra = min(max(extra, 0.0), (1 - COMMON) * single)
    return single - extra, extra
