"""What a catalogue tells about unknown items: how unlike its nearest class an item of no class is.

An example compared with the most probable other class shows what an item of no class looks like; the head has seen
other examples of its class. With D the squared distance of an item from the mean of its class, S the score of that
class, and both standardised over left-out examples and their own class,

    t = ((D - mean D)/sd(D) - ½ (S - mean S)/sd(S)) / sd :    0 on average for a known item, ν for an unknown one.

The last sd makes the variance of t one. A tenth of it is common to all items of a class; the rest falls as 1/G in a
group of G. An unknown item is an example compared with the most probable other class (G = 1), or the centroid of its
whole class compared with these (its size): ν, and the variance of t, are straight lines in 1/G.

Where only c of K classes are allowed, an unknown item is farther from the best of them: `ν + f (1 - ln c / ln K)`, with
f so that c = 1 is a class at random.

The log-odds that two examples have the same class are `A + B cos`, by logistic regression on the cosines about the
centre of the class means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from handful.machine.threads import one_thread
from handful.model.head import LinearHead
from handful.model.left_out import Floats, Ints
from handful.model.linear import class_sums, logistic_line, mean_without
from handful.model.links import find_copies
from handful.model.settings import DEFAULT, Settings


class UnknownModel(NamedTuple):
    """What a catalogue tells about items of no class."""

    pair_odds: tuple[float, float]  # A and B
    distance: tuple[float, float]  # mean and deviation of D over left-out examples and their own class
    score: tuple[float, float]  # the same of S, whose deviation is that of as much as it counts
    scale: float  # the last sd of t
    level: tuple[float, float]  # base and extra of ν = base + extra/G
    unknown: tuple[float, float]  # the same of the variance of t of unknown items
    quarter: float  # a quarter of the left-out examples is nearer to its own class than this, squared
    gain: float = 0.0  # S of an example under the head that was fitted to it, minus S left out, on the mean
    farther: float = 0.0  # t of unknown items compared with a class at random, minus that with the best of all classes

    def statistic(self, distances: Floats, scores: Floats) -> Floats:
        """`t`."""
        (d, of_d) = self.distance
        (s, of_s) = self.score
        return np.asarray(((distances - d) / of_d - (scores - s) / of_s) / self.scale)

    def levels(self, sizes: Floats, restriction: Floats) -> Floats:
        """`ν` of groups of these sizes; `restriction` is 0 if all classes are allowed, 1 if one is."""
        base, extra = self.level
        return np.maximum(base + extra / sizes + self.farther * restriction, 0.0)


@one_thread()
def fit_unknown_model(
    head: LinearHead, points: Floats, codes: Ints, settings: Settings = DEFAULT
) -> UnknownModel | None:
    """Learn from the examples that the head was fitted to.

    None if they cannot tell: fewer than 20 could be left out, the head consists of class means, examples of one class
    are not more alike than those of several, or examples compared with another class look like known items.
    """
    examples = _TestedExamples.of(head, points, codes, settings)
    if examples is None:
        return None
    pair_odds = examples.pair_odds(head.means.mean(0, dtype=np.float64))
    distance = examples.spread_of(examples.own.distances)
    score, of_score = examples.spread_of(examples.own.scores)
    wholes, size = examples.wholes()
    if pair_odds[1] <= 0 or distance[1] <= 0 or of_score <= 0 or len(wholes.distances) < 2:
        return None
    near = float(np.quantile(examples.own.distances, settings.near_part))
    quarter = max(near, settings.common * examples.spread)
    gain = float(examples.weights @ (examples.seen_score - examples.own.scores))
    bare = UnknownModel(
        pair_odds, distance, (score, of_score / settings.score_counts), 1.0, (0, 0), (1, 0), quarter, gain
    )
    _, scale = examples.spread_of(bare.statistic(*examples.own))
    if scale <= 0:
        return None
    bare = bare._replace(scale=scale)
    single, deviation = examples.spread_of(bare.statistic(*examples.rival))
    whole = bare.statistic(*wholes)
    slope = (single - float(whole.mean())) / (1 - 1 / size)
    if max(single, single - slope) <= 0:
        return None  # items of no class look no more unlike the classes than others do, neither alone nor in groups
    anyone, _ = examples.spread_of(bare.statistic(*examples.others))
    return bare._replace(
        level=(single - slope, slope),
        unknown=_variances(deviation**2, float(whole.var()), size, settings),
        farther=max(anyone - single, 0.0),
    )


def unknown_reason(head: LinearHead, settings: Settings = DEFAULT) -> str:
    """Say why `fit_unknown_model` returned nothing, and what to do."""
    if len(head.weights) == 1:
        return (
            "With a single class every item has its label, and unknown items cannot be judged; add examples of other "
            "classes."
        )
    if len(head.left_out.rows) < settings.fewest_left_out:
        return (
            f"Unknown items cannot be judged: that needs at least {settings.fewest_left_out} different examples in "
            "classes of two or more; add examples."
        )
    if bool(np.isnan(head.left_out.score).any()):
        return (
            "Unknown items cannot be judged: the catalogue is too large to train on; use fewer examples of each class."
        )
    return (
        "Unknown items cannot be judged: in these features, examples compared with another class look like those "
        "compared with their own; try features of another model."
    )


class _Compared(NamedTuple):
    """D and S of examples, or of groups of them, and a class."""

    distances: Floats
    scores: Floats


class _Distinct(NamedTuple):
    """Examples whose label is likely right, one of each distinct row, ordered by class."""

    rows: Ints  # which of the examples given
    copies: Floats  # of the row
    mass: Floats  # of its class
    place: Ints  # among those that were left out, -1 if it was not

    @classmethod
    def of(cls, head: LinearHead, points: Floats, codes: Ints) -> _Distinct:
        left_out = head.left_out
        place = np.full(len(codes), -1)
        right = np.ones(len(codes))
        place[left_out.rows] = np.arange(len(left_out.rows))
        right[left_out.rows] = left_out.right
        which, copies = find_copies(np.column_stack([codes, points]))
        rows = np.unique(which)
        # In an order that does not depend on that of the examples.
        away = ((points[rows] - points.mean(0)) ** 2).sum(1)
        rows = rows[np.lexsort((away, codes[rows]))]
        mass = head.mass[codes[rows]].astype(np.float64)
        kept = (right[rows] > 0.5) & (mass - copies[rows] >= 0.5)
        rows = rows[kept]
        return cls(rows, copies[rows], mass[kept], place[rows])

    def only(self, some: Ints) -> _Distinct:
        """Return some of them."""
        return _Distinct(self.rows[some], self.copies[some], self.mass[some], self.place[some])


@dataclass(frozen=True, eq=False)
class _TestedExamples:
    """Examples whose label is likely right, one of each distinct row, ordered by class; some of them are `tested`."""

    points: Floats
    codes: Ints
    rank: Ints  # within the class
    n_classes: int
    spread: float
    tested: Ints  # those that were left out
    weights: Floats  # [tested]; classes weigh alike
    own: _Compared  # with its own class, which has not seen it
    seen_score: Floats  # S of its own class under the head that was fitted to it
    rival: _Compared  # with the most probable other class
    rival_means: Floats
    rival_excess: Floats  # V/s of the rival
    others: _Compared  # with all other classes, on the mean
    settings: Settings

    @classmethod
    def of(cls, head: LinearHead, points: Floats, codes: Ints, settings: Settings) -> _TestedExamples | None:
        left_out = head.left_out
        spread = head.spread
        if not spread or len(left_out.rows) < settings.fewest_left_out or bool(np.isnan(left_out.score).any()):
            return None
        points = points.astype(np.float64)
        kept = _Distinct.of(head, points, codes)
        tested = np.flatnonzero(kept.place >= 0)
        if len(tested) < settings.fewest_left_out:
            return None
        some = kept.only(tested)
        x = points[some.rows]
        own = codes[some.rows]
        rival = left_out.rival[some.place]
        means = head.means.astype(np.float64)
        excess = spread / head.mass[rival].astype(np.float64)
        kept_codes = codes[kept.rows]
        own_distance = _distance_from_the_rest(x, means[own], some, spread)
        rival_distance = ((x - means[rival]) ** 2).sum(1) - excess
        n_of = np.bincount(kept_codes, minlength=len(means))
        weights = 1 / np.bincount(own, minlength=len(means))[own]
        return cls(
            points=points[kept.rows],
            codes=kept_codes,
            rank=np.arange(len(kept.rows)) - (n_of.cumsum() - n_of)[kept_codes],
            n_classes=len(means),
            spread=spread,
            tested=tested,
            weights=weights / weights.sum(),
            own=_Compared(own_distance, left_out.score[some.place]),
            seen_score=(x * head.weights[own]).sum(1) + head.offsets[own],
            rival=_Compared(rival_distance, left_out.rival_score[some.place]),
            rival_means=means[rival],
            rival_excess=excess,
            others=_compare_with_others(head, means, x, own, spread),
            settings=settings,
        )

    def spread_of(self, values: Floats) -> tuple[float, float]:
        """Mean and deviation over classes."""
        mean = float(self.weights @ values)
        return mean, float(np.sqrt(self.weights @ (values - mean) ** 2))

    def wholes(self) -> tuple[_Compared, float]:
        """Compare every class with the rivals of its examples; and return how many examples it has on the mean."""
        n = np.bincount(self.codes, minlength=self.n_classes).astype(np.float64)
        ones = np.ones(len(self.codes))
        centroids = class_sums(self.points, self.codes, self.n_classes, ones) / np.maximum(n, 1)[:, None]
        own = self.codes[self.tested]
        tested = np.bincount(own, minlength=self.n_classes)

        def mean_of(values: Floats) -> Floats:
            return np.asarray(np.bincount(own, values, self.n_classes) / np.maximum(tested, 1))

        distances = mean_of(((centroids[own] - self.rival_means) ** 2).sum(1) - self.rival_excess)
        distances += self.spread - self.spread / np.maximum(n, 1)  # a centroid has less noise than an item
        some = (n > 1) & (tested > 0)
        groups = _Compared(distances[some], mean_of(self.rival.scores)[some])
        return groups, float(n[some].mean()) if bool(some.any()) else 2.0

    def pair_odds(self, centre: Floats) -> tuple[float, float]:
        """Fit A and B; classes weigh alike."""
        x = self.points - centre
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        n_of = np.bincount(self.codes, minlength=self.n_classes)
        # Of a large class, examples evenly over the order.
        thinner = np.minimum(self.settings.pairs_per_class / np.maximum(n_of, 1), 1)[self.codes]
        some = np.floor(self.rank * thinner) > np.floor((self.rank - 1) * thinner)
        chosen = x[some]
        own = self.codes[some]
        n_of = np.bincount(own, minlength=self.n_classes)
        pairs_of = n_of * (n_of - 1) / 2
        same = [np.empty(0)]
        weights = [np.empty(0)]
        for step in range(1, int(n_of.max())):
            paired = own[step:] == own[:-step]
            same.append((chosen[step:] * chosen[:-step]).sum(1)[paired])
            weights.append(1 / pairs_of[own[step:][paired]])
        # Of all examples, some evenly over their distances from the centre.
        order = ((self.points - centre) ** 2).sum(1).argsort(kind="stable")
        evenly = np.linspace(0, len(order) - 1, min(len(order), self.settings.pairs_apart))
        some = order[np.unique(evenly.round().astype(int))]
        apart = np.triu(self.codes[some][:, None] != self.codes[some])
        alike = np.concatenate(same)
        other = (x[some] @ x[some].T)[apart]
        if len(alike) == 0 or len(other) == 0:
            return 0.0, 0.0
        weight = np.concatenate(weights)
        truth = np.repeat([1.0, 0.0], [len(alike), len(other)])
        each = np.concatenate([weight / weight.sum(), np.full(len(other), 1 / len(other))])
        cosines = np.concatenate([alike, other])
        return logistic_line(cosines, truth, self.settings.pair_weight * each, self.settings)


def _distance_from_the_rest(x: Floats, means: Floats, some: _Distinct, spread: float) -> Floats:
    """`D` from the mean of its class without the example and its copies."""
    rest = some.mass - some.copies
    without = mean_without(means, some.mass, x, some.copies)
    return np.asarray(((x - without) ** 2).sum(1) - spread / rest)


def _compare_with_others(head: LinearHead, means: Floats, x: Floats, own: Ints, spread: float) -> _Compared:
    """Mean of D and S over all classes but the example's own."""

    def over_others(slopes: Floats, offsets: Floats) -> Floats:
        """Mean of `<slope, x> + offset`."""
        total = x @ slopes.sum(0, dtype=np.float64) + offsets.sum(dtype=np.float64)
        return np.asarray((total - (x * slopes[own]).sum(1) - offsets[own]) / max(len(means) - 1, 1))

    lengths = (means**2).sum(1) - spread / head.mass
    distances = (x**2).sum(1) + over_others(-2 * means, lengths)
    return _Compared(distances, over_others(head.weights, head.offsets))


def _variances(single: float, group: float, size: float, settings: Settings) -> tuple[float, float]:
    """Line through the variance of single items and that of groups; neither rising with G nor down to nothing."""
    extra = (single - group) / (1 - 1 / size) if size > 1 else 0.0
    extra = min(max(extra, 0.0), (1 - settings.common) * single)
    return single - extra, extra
