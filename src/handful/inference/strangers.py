"""Strangers: how unlike a catalogue an item must be to belong to none of its classes.

Everything is learned from the catalogue, where the truth is known. Every class is left out once as a whole; its
examples are then items of no class.

**Statistic.** With d the squared distance of an item from the mean of its class, V the spread and S the score of that
class, both standardised over left-out examples and their own class,

    t = (d - E d)/σ_d - (S - E S)/σ_S :    0 on average for a known item, larger for an unknown one.

A group of n items that belong together is compared as one: its centroid, less noise, and its mean score.

**Levels.** Known: t has mean 0, and a variance that falls with n, from single examples (n = 1) to half a class compared
with its other half. Unknown: an example compared with the best other class (n = 1), and the centroid of its whole class
with the classes given to its examples. Level and variances are straight lines in 1/n.

**Pairs.** The log-odds that two examples have the same class, `A + B cos`, by logistic regression on the cosines about
the centre of the class means.

What the items of a batch then say is read by `handful.inference.unknown_share`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from handful.inference.calibration import evenly
from handful.inference.head import FEWEST_LEFT_OUT, Head
from handful.inference.left_out import first_copies
from handful.shapes import Float, Int

# A class, or half of one, varies at least this share as much as a single item.
LEAST_BASE = 0.05
# Examples that are compared with one another, of each class and of all classes.
MOST_OF_CLASS, MOST_COMPARED = 32, 512
# Times that classes are halved.
DRAWS = 16
# If the chance that an example of a left-out class looks less like the others than a left-out example like its own is
# smaller than this, the catalogue cannot tell. With two examples per class and nothing unknown, nearly all items of a
# batch were rejected at 0.40 (cub200), most of those of one batch in six at 0.57 (banking77), and none above 0.6.
LEAST_AREA = 0.6
# Weight of all pairs of a kind together, against a ridge of one thousandth on A and B.
PAIR_WEIGHT, RIDGE, NEWTON_STEPS = 1000.0, 1e-3, 50


class Line(NamedTuple):
    """`base + extra/n`."""

    base: float
    extra: float

    def at(self, n: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the value for groups of n items."""
        return self.base + self.extra / n


@dataclass(frozen=True)
class Strangers:
    """What a catalogue tells about items of no class.

    Make one with `fit_strangers`.

    Attributes
    ----------
    pair_odds : tuple of float
        A and B: log-odds that two items with this cosine share a class, at even odds before.
    distance, score : tuple of float
        Mean and deviation of d and S over left-out examples and their own class.
    level : Line
        t of unknown items; that of known ones is zero.
    known, unknown : Line
        Variances of t.

    Examples
    --------
    >>> from handful.inference.head import fit_head
    >>> generator = torch.Generator().manual_seed(0)
    >>> codes = torch.arange(20).repeat_interleave(5)
    >>> points = torch.randn(20, 16, generator=generator)[codes] + 0.5 * torch.randn(100, 16, generator=generator)
    >>> found = fit_strangers(fit_head(points, codes, 20), points, codes)
    >>> found.level.at(torch.tensor([1.0, 5.0])).round().tolist()  # single unknown items, and groups of five
    [10.0, 11.0]
    """

    pair_odds: tuple[float, float]
    distance: tuple[float, float]
    score: tuple[float, float]
    level: Line
    known: Line
    unknown: Line

    def statistic(self, distances: Float[Tensor, "*shape"], scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """`t`."""
        (d, of_d), (s, of_s) = self.distance, self.score
        return (distances - d) / of_d - (scores - s) / of_s


def fit_strangers(head: Head, points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"]) -> Strangers | None:
    """Learn from the examples that the head was fitted to.

    None if they cannot tell: fewer than 20 could be left out, the head consists of class means, examples of one class
    are not more alike than those of several, or left-out classes look like left-out examples.
    """
    examples = _Examples.of(head, points, codes)
    if examples is None:
        return None
    pair_odds = examples.pair_odds(head.means.mean(0))
    distance, score = examples.spread_of(examples.own_distance), examples.spread_of(examples.score)
    if pair_odds[1] <= 0 or distance[1] <= 0 or score[1] <= 0:
        return None
    bare = Strangers(pair_odds, distance, score, Line(0, 0), Line(1, 0), Line(1, 0))
    known = bare.statistic(examples.own_distance, examples.score)
    unknown = bare.statistic(examples.rival_distance, examples.rival_score)
    if examples.area(known, unknown) < LEAST_AREA:
        return None
    halves, of_half = examples.halves()
    wholes, of_whole = examples.wholes()
    if min(len(halves.distances), len(wholes.distances)) < 2:
        return None
    half, whole = bare.statistic(*halves), bare.statistic(*wholes)
    mean, deviation = examples.spread_of(unknown)
    slope = (mean - float(whole.mean())) / (1 - 1 / of_whole)
    return Strangers(
        pair_odds,
        distance,
        score,
        level=Line(mean - slope, slope),
        known=_variances(float(examples.weights @ known.square()), float(half.var(unbiased=False)), of_half),
        unknown=_variances(deviation**2, float(whole.var(unbiased=False)), of_whole),
    )


def unjudged(head: Head) -> str:
    """Say why `fit_strangers` found nothing, and what to do."""
    if len(head.weights) == 1:
        return "Unknown items cannot be judged with a single class; add examples of other classes."
    if len(head.left_out.rows) < FEWEST_LEFT_OUT:
        return (
            f"Unknown items cannot be judged: that needs at least {FEWEST_LEFT_OUT} different examples in classes of "
            "two or more; add examples."
        )
    if bool(head.left_out.score.isnan().any()):
        return (
            "Unknown items cannot be judged: the catalogue is too large to train on; use fewer examples of each class."
        )
    return (
        "Unknown items cannot be judged: in these features, examples of a class that was left out look like those of "
        "the other classes; try features of another model."
    )


class _Groups(NamedTuple):
    """d and S of groups of examples."""

    distances: Float[Tensor, "group"]
    scores: Float[Tensor, "group"]


@dataclass(frozen=True, eq=False)
class _Examples:
    """Examples whose label is likely right, one of each distinct row, ordered by class.

    Those that were left out are `tested`; numbers about them are in double precision.
    """

    points: Float[Tensor, "example dim"]
    codes: Int[Tensor, "example"]
    rank: Int[Tensor, "example"]  # within the class
    n_classes: int
    spread: float
    tested: Int[Tensor, "tested"]
    weights: Float[Tensor, "tested"]  # classes weigh alike
    own_distance: Float[Tensor, "tested"]
    score: Float[Tensor, "tested"]
    rival_distance: Float[Tensor, "tested"]
    rival_score: Float[Tensor, "tested"]
    rival_means: Float[Tensor, "tested dim"]
    rival_excess: Float[Tensor, "tested"]  # V/s of the rival

    @classmethod
    def of(cls, head: Head, points: Float[Tensor, "point dim"], codes: Int[Tensor, "point"]) -> _Examples | None:
        found, spread = head.left_out, head.spread
        if spread is None or not spread > 0 or len(found.rows) < FEWEST_LEFT_OUT or bool(found.score.isnan().any()):
            return None
        first, which = first_copies(points, codes)
        copies = torch.bincount(which)
        left_out = torch.full_like(codes, -1, dtype=torch.int64)
        left_out[found.rows] = torch.arange(len(found.rows), device=codes.device)
        right = torch.ones_like(codes, dtype=torch.float64)
        right[found.rows] = found.right
        # In an order that does not depend on that of the examples.
        away = (points[first] - points.mean(0)).square().sum(1)
        order = away.argsort(stable=True)
        order = order[codes[first[order]].argsort(stable=True)]
        first, many = first[order], copies[order]
        mass = head.mass[codes[first]]
        kept = (right[first] > 0.5) & (mass - many >= 0.5)
        first, mass, many = first[kept], mass[kept].double(), many[kept].double()
        place = left_out[first]
        tested = (place >= 0).nonzero()[:, 0]
        if len(tested) < FEWEST_LEFT_OUT:
            return None
        x, own, many, mass = points[first[tested]].double(), codes[first[tested]].long(), many[tested], mass[tested]
        means, place = head.means.double(), place[tested]
        # Its own mean, without the example and its copies.
        without = (means[own] * mass.unsqueeze(1) - x * many.unsqueeze(1)) / (mass - many).unsqueeze(1)
        rival = found.rival[place]
        excess = spread / head.mass[rival].double()
        kept_codes = codes[first].long()
        n_of = torch.bincount(kept_codes, minlength=len(means))
        weights = 1 / torch.bincount(own, minlength=len(means))[own].double()
        return cls(
            points=points[first].double(),
            codes=kept_codes,
            rank=torch.arange(len(first), device=codes.device) - (n_of.cumsum(0) - n_of)[kept_codes],
            n_classes=len(means),
            spread=spread,
            tested=tested,
            weights=weights / weights.sum(),
            own_distance=(x - without).square().sum(1) - spread / (mass - many),
            score=found.score[place],
            rival_distance=(x - means[rival]).square().sum(1) - excess,
            rival_score=found.rival_score[place],
            rival_means=means[rival],
            rival_excess=excess,
        )

    def spread_of(self, values: Float[Tensor, "tested"]) -> tuple[float, float]:
        """Mean and deviation over classes."""
        mean = self.weights @ values
        return float(mean), float((self.weights @ (values - mean).square()).sqrt())

    def area(self, known: Float[Tensor, "tested"], unknown: Float[Tensor, "tested"]) -> float:
        """Return the chance that the t of an unknown item is above that of a known one; classes weigh alike."""
        order = known.argsort()
        below = torch.cat([known.new_zeros(1), self.weights[order].cumsum(0)])
        return float(self.weights @ below[torch.searchsorted(known[order], unknown)])

    def halves(self) -> tuple[_Groups, float]:
        """Compare half of a class with the rest of it, drawn at random many times; return also the mean half's size."""
        generator = torch.Generator().manual_seed(0)
        n_of = torch.bincount(self.codes, minlength=self.n_classes)
        first = torch.empty_like(self.codes, dtype=torch.bool)
        distances, scores, sizes = [], [], []
        for _ in range(DRAWS):
            # By the rank within a class: neither the numbers of the classes nor other classes change what is drawn.
            order = (
                torch.rand(int(n_of.max()), generator=generator).to(self.codes.device)[self.rank].argsort(stable=True)
            )
            order = order[self.codes[order].argsort(stable=True)]
            first[order] = self.rank < n_of[self.codes] // 2  # classes come in the same places in both orders
            (one, n), (other, n_other) = self._centroids(first), self._centroids(~first)
            score, tested = self._mean_of(self.score, first[self.tested])
            some = (n > 0) & (n_other > 0) & (tested > 0)
            squares = (one - other).square().sum(1) - self.spread / n - self.spread / n_other + self.spread
            distances.append(squares[some])
            scores.append(score[some])
            sizes.append(n[some])
        size = torch.cat(sizes)
        return _Groups(torch.cat(distances), torch.cat(scores)), float(size.mean()) if len(size) else 1.0

    def wholes(self) -> tuple[_Groups, float]:
        """Compare every class with the rivals of its examples; and return how many examples it has on the mean."""
        everyone = torch.ones_like(self.codes, dtype=torch.bool)
        centroids, n = self._centroids(everyone)
        own = self.codes[self.tested]
        squares = (centroids[own] - self.rival_means).square().sum(1) - self.rival_excess
        distance, tested = self._mean_of(squares, everyone[self.tested])
        score, _ = self._mean_of(self.rival_score, everyone[self.tested])
        some = (n > 1) & (tested > 0)
        groups = _Groups((distance - self.spread / n + self.spread)[some], score[some])
        return groups, float(n[some].mean()) if bool(some.any()) else 2.0

    def pair_odds(self, centre: Float[Tensor, "dim"]) -> tuple[float, float]:
        """Fit A and B; classes weigh alike."""
        x = normalize(self.points - centre, dim=1)
        n_of = torch.bincount(self.codes, minlength=self.n_classes)
        # Of a large class, examples evenly over the order.
        thinner = (MOST_OF_CLASS / n_of.clamp(min=1).double()).clamp(max=1)[self.codes]
        some = (self.rank * thinner).floor() > ((self.rank - 1) * thinner).floor()
        chosen, own = x[some], self.codes[some]
        n_of = torch.bincount(own, minlength=self.n_classes)
        pairs_of = (n_of * (n_of - 1) / 2).double()
        same, weights = [], []
        for step in range(1, int(n_of.max())):
            together = own[step:] == own[:-step]
            same.append((chosen[step:] * chosen[:-step]).sum(1)[together])
            weights.append(1 / pairs_of[own[step:][together]])
        # Of all examples, some evenly over their distances from the centre.
        order = (self.points - centre).square().sum(1).argsort(stable=True)
        some = order[evenly(len(order), MOST_COMPARED).to(order.device)]
        apart = (self.codes[some].unsqueeze(1) != self.codes[some]).triu()
        other = (x[some] @ x[some].T)[apart]
        if len(same) == 0 or len(other) == 0:
            return 0.0, 0.0
        alike, weight = torch.cat(same), torch.cat(weights)
        truth = torch.cat([torch.ones_like(alike), torch.zeros_like(other)])
        each = torch.cat([weight / weight.sum(), torch.full_like(other, 1 / len(other))])
        return logistic_line(torch.cat([alike, other]), truth, PAIR_WEIGHT * each)

    def _centroids(self, some: Tensor) -> tuple[Float[Tensor, "class dim"], Float[Tensor, "class"]]:
        """Mean and number of some examples of each class."""
        sums = self.points.new_zeros(self.n_classes, self.points.shape[1])
        n = torch.bincount(self.codes[some], minlength=self.n_classes).double()
        sums.index_add_(0, self.codes[some], self.points[some])
        return sums / n.clamp(min=1).unsqueeze(1), n

    def _mean_of(
        self, values: Float[Tensor, "tested"], some: Tensor
    ) -> tuple[Float[Tensor, "class"], Float[Tensor, "class"]]:
        """Mean over some of the tested examples of each class, and how many there are."""
        own = self.codes[self.tested][some]
        n = torch.bincount(own, minlength=self.n_classes).double()
        return values.new_zeros(self.n_classes).index_add_(0, own, values[some]) / n.clamp(min=1), n


def logistic_line(
    x: Float[Tensor, "pair"], truth: Float[Tensor, "pair"], weights: Float[Tensor, "pair"]
) -> tuple[float, float]:
    """Minimise `Σ w CE(y, A + B x) + ridge (A² + B²)/2` by Newton's method."""
    table = torch.stack([torch.ones_like(x), x], 1)
    ridge = RIDGE * torch.eye(2, dtype=x.dtype, device=x.device)

    def loss(at: Tensor) -> float:
        logits = table @ at
        return float(weights @ (softplus(logits) - truth * logits) + 0.5 * at @ ridge @ at)

    found = table.new_zeros(2)
    for _ in range(NEWTON_STEPS):
        p = torch.sigmoid(table @ found)
        slope = table.T @ (weights * (p - truth)) + ridge @ found
        step = torch.linalg.solve(table.T @ (table * (weights * p * (1 - p)).unsqueeze(1)) + ridge, slope)
        here = loss(found)
        while loss(found - step) > here and float(step.abs().max()) > 1e-9:
            step = step / 2
        found = found - step
        if float(step.abs().max()) < 1e-6:
            break
    return float(found[0]), float(found[1])


def _variances(single: float, group: float, size: float) -> Line:
    """Line through the variance of single items and that of groups; neither rising with n nor down to nothing."""
    extra = (single - group) / (1 - 1 / size) if size > 1 else 0.0
    extra = min(max(extra, 0.0), (1 - LEAST_BASE) * single)
    return Line(single - extra, extra)
