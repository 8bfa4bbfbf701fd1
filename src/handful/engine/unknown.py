"""Which items of a batch belong to no class: only two populations in one batch are evidence.

Every item has a statistic t, zero on average for items like the examples of its class and m for items of no class; the
catalogue tells m and the variances of both, for groups of n items that belong together. So

    t ~ (1-ρ) N(κ, w v₀) + ρ N(κ + g m, w g v₁).

Three things are not known in advance, and are integrated over:

- **The source.** A batch from the source of the catalogue has κ near zero and w = 1. One from elsewhere is farther from
  the catalogue as a whole, and its items vary more: κ and w are larger.
- **How unlike the unknown items are.** Most batches have g = 1, as the left-out classes of the catalogue. In others,
  g is small: items of no class look nearly like those of some class, and no batch can tell how many there are.
- **The share ρ**: none with chance one half, else with density 2(1-ρ); or a Beta distribution that is known in advance.

A batch in which everything is far is shifted, or has no known items: where the two cannot be told apart the interval of
the share is wide, and the chance of every item is below one half. Items whose class a person said tell κ and w, and
nothing about ρ: people label what they know.

**What the catalogue tells**: how unlike it an item must be to belong to none of its classes. Every class is left out
once as a whole; its examples are then items of no class. With d the squared distance of an item from the mean of its
class, V the spread and S the score of that class, both standardised over left-out examples and their own class,

    t = (d - E d)/σ_d - (S - E S)/σ_S :    0 on average for a known item, larger for an unknown one.

A group of n items that belong together is compared as one: its centroid, less noise, and its mean score.

Known: t has mean 0, and the variance of single examples, of which one tenth is common to all items of a class and the
rest falls as 1/n. Unknown: an example compared with the best other class (n = 1), and the centroid of its whole class
with the best other classes of its examples; level and variance are straight lines in 1/n.

Where only c of K classes are allowed, an unknown item is farther from the best of them: `m + f (1 - ln c / ln K)`, with
f so that c = 1 is a class at random.

The log-odds that two examples have the same class are `A + B cos`, by logistic regression on the cosines about the
centre of the class means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, log_softmax

from handful.engine.head import LinearHead
from handful.engine.left_out import FEWEST_LEFT_OUT, Floats, Ints
from handful.engine.linear import class_sums, logistic_line
from handful.engine.links import find_copies
from handful.machine.threads import one_thread

Bools = npt.NDArray[np.bool_]

# A sum of weights that is divided by is at least this.
SMALLEST = 1e-9
# Share of the variance of t that all items of a class have in common: that of a group does not fall below it.
COMMON = 0.1
# Chance that nothing is unknown, before anything is seen.
NOTHING_UNKNOWN = 0.5
# Chance that a batch comes from elsewhere; the scale of κ if it does, and the deviation of log₄ w.
ELSEWHERE = 0.7
OTHER_SHIFT = 2.0
OTHER_WIDTH = 0.8
# g of batches whose unknown items look nearly known, and the chance of such a batch.
NEAR_LEVEL = 0.3
NEAR_CHANCE = 0.25
# Evidence of more groups than this counts as that of this many: what is wrong with means and variances does not
# average out over a large batch.
MOST_GROUPS = 8.0
# Chance that a label of a person is wrong, and its item looks like none of the class.
WRONG_LABEL = 0.05
# An item is rejected above this chance.
REJECTED = 0.5
# Where a share is told, at most this share of the known items is expected to be rejected; about two thirds of that are.
MOST_KNOWN_REJECTED = 0.15


class UnknownModel(NamedTuple):
    """What a catalogue tells about items of no class; lines are `(base, extra)` of `base + extra/n`."""

    pair_odds: tuple[float, float]  # A and B
    distance: tuple[float, float]  # mean and deviation of d over left-out examples and their own class
    score: tuple[float, float]  # the same of S
    level: tuple[float, float]  # t of unknown items; that of known ones is zero
    known: tuple[float, float]  # variance of t
    unknown: tuple[float, float]
    quarter: float  # a quarter of the left-out examples is nearer to its own class than this, squared
    gain: float = 0.0  # S of an example under the head that was fitted to it, minus S left out, on the mean
    farther: float = 0.0  # t of unknown items compared with a class at random, minus that with the best of all classes

    def statistic(self, distances: Floats, scores: Floats) -> Floats:
        """`t`."""
        (d, of_d) = self.distance
        (s, of_s) = self.score
        return np.asarray((distances - d) / of_d - (scores - s) / of_s)


@one_thread()
def fit_unknown_model(head: LinearHead, points: Floats, codes: Ints) -> UnknownModel | None:
    """Learn from the examples that the head was fitted to.

    None if they cannot tell: fewer than 20 could be left out, the head consists of class means, examples of one class
    are not more alike than those of several, or those of a left-out class look like the others.
    """
    examples = _Examples.of(head, points, codes)
    if examples is None:
        return None
    pair_odds = examples.pair_odds(head.means.mean(0, dtype=np.float64))
    distance = examples.spread_of(examples.own_distance)
    score = examples.spread_of(examples.score)
    if pair_odds[1] <= 0 or distance[1] <= 0 or score[1] <= 0:
        return None
    quarter = max(float(np.quantile(examples.own_distance, 0.25)), COMMON * examples.spread)
    gain = float(examples.weights @ (examples.seen_score - examples.score))
    bare = UnknownModel(pair_odds, distance, score, (0, 0), (1, 0), (1, 0), quarter, gain)
    known = bare.statistic(examples.own_distance, examples.score)
    unknown = bare.statistic(examples.rival_distance, examples.rival_score)
    wholes, of_whole = examples.wholes()
    if len(wholes.distances) < 2:
        return None
    whole = bare.statistic(*wholes)
    single = float(examples.weights @ known**2)
    mean, deviation = examples.spread_of(unknown)
    slope = (mean - float(whole.mean())) / (1 - 1 / of_whole)
    if max(mean, mean - slope) <= 0:
        return None  # items of no class look no more unlike the classes than others do, neither alone nor in groups
    anyone, _ = examples.spread_of(bare.statistic(examples.mean_distance, examples.mean_score))
    return bare._replace(
        farther=max(anyone - mean, 0.0),
        level=(mean - slope, slope),
        known=(COMMON * single, (1 - COMMON) * single),
        unknown=_variances(deviation**2, float(whole.var()), of_whole),
    )


def unknown_reason(head: LinearHead) -> str:
    """Say why `fit_unknown_model` returned nothing, and what to do."""
    if len(head.weights) == 1:
        return (
            "With a single class every item has its label, and unknown items cannot be judged; add examples of other "
            "classes."
        )
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
    seen_score: Floats  # under the head that was fitted to it
    rival_distance: Floats
    rival_score: Floats
    rival_means: Floats
    rival_excess: Floats  # V/s of the rival
    mean_distance: Floats  # over all other classes
    mean_score: Floats

    @classmethod
    def of(cls, head: LinearHead, points: Floats, codes: Ints) -> _Examples | None:
        left_out = head.left_out
        spread = head.spread
        if not spread or len(left_out.rows) < FEWEST_LEFT_OUT or bool(np.isnan(left_out.score).any()):
            return None
        points = points.astype(np.float64)
        which, copies = find_copies(np.column_stack([codes, points]))
        first = np.unique(which)
        at = np.full(len(codes), -1)
        right = np.ones(len(codes))
        at[left_out.rows] = np.arange(len(left_out.rows))
        right[left_out.rows] = left_out.right
        # In an order that does not depend on that of the examples.
        away = ((points[first] - points.mean(0)) ** 2).sum(1)
        order = np.lexsort((away, codes[first]))
        first = first[order]
        many = copies[first]
        mass = head.mass[codes[first]].astype(np.float64)
        kept = (right[first] > 0.5) & (mass - many >= 0.5)
        first = first[kept]
        mass = mass[kept]
        many = many[kept]
        tested = np.flatnonzero(at[first] >= 0)
        if len(tested) < FEWEST_LEFT_OUT:
            return None
        own = codes[first[tested]]
        x = points[first[tested]]
        at = at[first[tested]]
        mass = mass[tested]
        many = many[tested]
        means = head.means.astype(np.float64)
        # Its own mean, without the example and its copies.
        without = (means[own] * mass[:, None] - x * many[:, None]) / (mass - many)[:, None]
        rival = left_out.rival[at]
        excess = spread / head.mass[rival].astype(np.float64)
        kept_codes = codes[first]
        n_of = np.bincount(kept_codes, minlength=len(means))
        weights = 1 / np.bincount(own, minlength=len(means))[own]
        lengths = (means**2).sum(1) - spread / head.mass

        def over_others(slopes: Floats, offsets: Floats) -> Floats:
            """Mean of `<slope, x> + offset` over all classes but the example's own."""
            total = x @ slopes.sum(0, dtype=np.float64) + offsets.sum(dtype=np.float64)
            return np.asarray((total - (x * slopes[own]).sum(1) - offsets[own]) / max(len(means) - 1, 1))

        return cls(
            points=points[first],
            codes=kept_codes,
            rank=np.arange(len(first)) - (n_of.cumsum() - n_of)[kept_codes],
            n_classes=len(means),
            spread=spread,
            tested=tested,
            weights=weights / weights.sum(),
            own_distance=((x - without) ** 2).sum(1) - spread / (mass - many),
            score=left_out.score[at],
            seen_score=(x * head.weights[own]).sum(1) + head.offsets[own],
            rival_distance=((x - means[rival]) ** 2).sum(1) - excess,
            rival_score=left_out.rival_score[at],
            rival_means=means[rival],
            rival_excess=excess,
            mean_distance=(x**2).sum(1) + over_others(-2 * means, lengths),
            mean_score=over_others(head.weights, head.offsets),
        )

    def spread_of(self, values: Floats) -> tuple[float, float]:
        """Mean and deviation over classes."""
        mean = float(self.weights @ values)
        return mean, float(np.sqrt(self.weights @ (values - mean) ** 2))

    def wholes(self) -> tuple[_Groups, float]:
        """Compare every class with the rivals of its examples; and return how many examples it has on the mean."""
        n = np.bincount(self.codes, minlength=self.n_classes).astype(np.float64)
        ones = np.ones(len(self.codes))
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
        thinner = np.minimum(32 / np.maximum(n_of, 1), 1)[self.codes]
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
        some = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), 512)).round().astype(int))]
        apart = np.triu(self.codes[some][:, None] != self.codes[some])
        alike = np.concatenate(same)
        other = (x[some] @ x[some].T)[apart]
        if len(alike) == 0 or len(other) == 0:
            return 0.0, 0.0
        weight = np.concatenate(weights)
        truth = np.repeat([1.0, 0.0], [len(alike), len(other)])
        each = np.concatenate([weight / weight.sum(), np.full(len(other), 1 / len(other))])
        return logistic_line(np.concatenate([alike, other]), truth, 1000 * each)


def _variances(single: float, group: float, size: float) -> tuple[float, float]:
    """Line through the variance of single items and that of groups; neither rising with n nor down to nothing."""
    extra = (single - group) / (1 - 1 / size) if size > 1 else 0.0
    extra = min(max(extra, 0.0), (1 - COMMON) * single)
    return single - extra, extra


class UnknownEvidence(NamedTuple):
    """What the items of a batch look like; leading axes are the batches of a stack."""

    t: Floats  # [..., item], the statistic
    sizes: Floats  # [..., item], of the group that it stands for
    weights: Floats  # [..., item], what it counts as evidence
    labelled: Bools  # [..., item], whether a person said its class
    restriction: Floats  # [..., item], 0 if it may have all classes, 1 if it may have one, see `BatchItems.restriction`

    @classmethod
    def of(cls, t: Floats) -> UnknownEvidence:
        """Make those of single items."""
        return cls(t, np.ones_like(t), np.ones_like(t), np.zeros(t.shape, bool), np.zeros_like(t))


@dataclass(frozen=True, eq=False)
class UnknownPosterior:
    """What is known about the share of unknown items of each batch of a stack.

    Attributes
    ----------
    model : UnknownModel
        Of the catalogue.
    grid : Floats
        Posterior of share, shift, width and level, [..., share, shift, width, level].
    interval : Floats
        Of the share, 90 %, [..., 2].
    of_evidence : Floats
        Chance of each item of the evidence to be unknown, [..., item], as that of `of_items`.
    """

    model: UnknownModel
    grid: Floats
    interval: Floats
    of_evidence: Floats

    @classmethod
    def of(
        cls, model: UnknownModel, evidence: UnknownEvidence, unknown_share: Floats | None = None
    ) -> UnknownPosterior:
        """Integrate over everything; `unknown_share` is [..., 2] as in `Context`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> model = UnknownModel((0.0, 1.0), (0, 1), (0, 1), (6.0, 0.0), (1.0, 0.0), (1.0, 0.0), 1.0)
        >>> evidence = UnknownEvidence.of(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)]))
        >>> posterior = UnknownPosterior.of(model, evidence)
        >>> int((posterior.of_items(evidence) > REJECTED).sum())
        20
        >>> shifted = UnknownEvidence.of(rng.normal(3, 1, 60))  # everything is
        >>> int((UnknownPosterior.of(model, shifted).of_items(shifted) > REJECTED).sum())
        0
        """
        lead = np.shape(evidence.t)[:-1]
        n_items = np.shape(evidence.t)[-1]
        t, n, w, r = (
            np.asarray(each, np.float64).reshape(-1, n_items)
            for each in (evidence.t, evidence.sizes, evidence.weights, evidence.restriction)
        )
        labelled = evidence.labelled.reshape(-1, n_items)
        prior = _prior(np.full((len(t), 2), np.nan) if unknown_share is None else unknown_share.reshape(-1, 2))
        size = max(1, 256 // n_items)
        parts = [slice(at, at + size) for at in range(0, len(t), size)]
        found = [_integrated(model, prior[part], t[part], n[part], w[part], labelled[part], r[part]) for part in parts]
        return cls(
            model, *(np.concatenate(each).reshape(*lead, *each[0].shape[1:]) for each in zip(*found, strict=True))
        )

    def of_items(self, evidence: UnknownEvidence) -> npt.NDArray[np.float64]:
        """Chance of each item to be unknown, by its own evidence, [..., item]."""
        shape = evidence.t.shape
        n_items = evidence.t.shape[-1]
        shares = _grid().shares
        t, sizes, restriction = (
            each.reshape(-1, n_items) for each in (evidence.t, evidence.sizes, evidence.restriction)
        )
        grid = self.grid.reshape(len(t), len(shares), -1)
        unknown = np.zeros(t.shape)
        high = max(1, 256 // n_items)
        wide = 256  # densities that fit a cache
        for top in range(0, len(t), high):
            some = slice(top, top + high)
            sources, weights = _likely(grid[some])
            for left in range(0, n_items, wide):
                here = some, slice(left, left + wide)
                inverse = 1 / _unknown_ratio(self.model, t[here], sizes[here], restriction[here], sources)
                for number in range(1, len(shares)):
                    chance = _item_posterior(inverse, shares[number])
                    unknown[here] += (chance @ weights[:, number, :, None])[..., 0]
        return unknown.reshape(shape).clip(0, 1)


def rejection_limit(unknown: Floats, unknown_share: Floats | None) -> Floats:
    """Chance above which an item is rejected, [...]: one half, as long as no share is told.

    If a share is told, as many items are rejected as are expected to be unknown, `Σ_n c_n`, the most likely ones; but
    no more than so that `MOST_KNOWN_REJECTED` of the known items are expected to be among them.

    Examples
    --------
    >>> rejection_limit(np.array([0.95, 0.4, 0.45, 0.1]), np.array([3.0, 7.0]))
    array(0.45)
    >>> rejection_limit(np.array([0.99, 0.98, 0.9, 0.6, 0.0, 0.0]), None)
    array(0.5)
    """
    limit = np.full(unknown.shape[:-1], REJECTED)
    if unknown_share is None:
        return limit
    falling = -np.sort(-np.nan_to_num(unknown), axis=-1)
    known = 1 - falling
    few = known.cumsum(-1) <= MOST_KNOWN_REJECTED * known.sum(-1, keepdims=True)
    expected = np.rint(falling.sum(-1, keepdims=True)).astype(np.intp)
    most = np.minimum(few.sum(-1, keepdims=True), expected)
    falling = np.concatenate([falling, np.zeros((*unknown.shape[:-1], 1))], -1)
    return np.where(np.isnan(unknown_share[..., 0]), limit, np.take_along_axis(falling, most, -1)[..., 0])


def _prior(unknown_share: Floats) -> Floats:
    """Chance of each share, [batch, share], from a and b of each batch."""
    a = unknown_share[:, 0, None]
    b = unknown_share[:, 1, None]
    shares = _grid().shares
    ends = np.linspace(0, 1, len(shares))
    beta = np.diff(betainc(np.maximum(a, np.finfo(np.float64).tiny), b, ends))
    beta = np.where(a > 0, np.pad(beta, [(0, 0), (1, 0)]), shares == 0)
    default = np.concatenate([[NOTHING_UNKNOWN], (1 - NOTHING_UNKNOWN) * np.diff(1 - (1 - ends) ** 2)])
    return np.where(np.isnan(a), default, beta)


def known_probability(unknown: Floats) -> npt.NDArray[np.float64]:
    """Chance of each item to have a class; one if the catalogue cannot tell."""
    return np.where(np.isnan(unknown), 1.0, 1 - unknown)


def single_known_probability(model: UnknownModel, t: Floats, restriction: Floats) -> Floats:
    """Chance that a single item has a class, at even odds and without shift, [..., item]."""
    flat = np.asarray(t).reshape(1, -1)
    shifts = _grid().shifts
    shape = _grid().log_prior.shape
    source = np.ravel_multi_index((np.searchsorted(shifts, 0.0), 0, shape[-1] - 1), shape)
    ratio = _unknown_ratio(model, flat, np.ones_like(flat), restriction.reshape(1, -1), np.array([source]))
    return np.asarray(1 / (1 + ratio)).reshape(np.shape(t))


class _Grid(NamedTuple):
    """Values that are summed over. A source is a shift, a width and a level, with the log of its prior chance."""

    shifts: Floats  # [shift], κ
    widths: Floats  # [width], w
    factors: Floats  # [level], g
    shares: Floats  # [share], ρ
    log_prior: Floats  # [shift, width, level]


@cache
def _grid() -> _Grid:
    # Items of another laboratory vary up to eight times as much: some are measured as the examples were, others not.
    shifts = np.linspace(-1, 7, 17)
    log_widths = np.linspace(0, 1.5, 4)
    same = np.full((len(shifts), len(log_widths)), -np.inf)
    same[:, 0] = log_softmax(-0.5 * (shifts / 0.4) ** 2)
    # A Cauchy distribution: a batch may be very far.
    of_shifts = -np.log1p((shifts / OTHER_SHIFT) ** 2)
    of_widths = -0.5 * (log_widths / OTHER_WIDTH) ** 2
    other = log_softmax(of_shifts)[:, None] + log_softmax(of_widths)
    both = np.logaddexp(np.log(1 - ELSEWHERE) + same, np.log(ELSEWHERE) + other)
    log_prior = np.asarray(both[..., None] + np.log([NEAR_CHANCE, 1 - NEAR_CHANCE]))
    shares = np.concatenate([[0.0], (np.arange(12) + 0.5) / 12])
    return _Grid(shifts, 4.0**log_widths, np.array([NEAR_LEVEL, 1.0]), shares, log_prior)


def _integrated(
    model: UnknownModel, prior: Floats, t: Floats, n: Floats, w: Floats, labelled: Bools, restriction: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return grids [batch, share, shift, width, level], intervals [batch, 2] and chances of items [batch, item]."""
    shifts, widths, _, shares, log_prior = _grid()
    known = (model.known[0] + model.known[1] / n)[:, None]

    def log_known(weights: Floats) -> Floats:
        """Log-density of these items if all of them are known, [batch, source]."""
        total = weights.sum(1)[:, None, None]
        squares = ((t[:, None] - shifts[:, None]) ** 2 / known) @ weights[..., None]
        log = -0.5 * (squares / widths + (np.log(known) @ weights[..., None] + total * np.log(widths)))
        log *= np.minimum(1.0, MOST_GROUPS / np.maximum(total, SMALLEST))
        return np.repeat(log, log_prior.shape[-1], axis=-1).reshape(len(t), -1)

    ratio = _unknown_ratio(model, t, n, restriction, np.arange(log_prior.size))
    free = np.where(labelled, 0.0, w)
    log = np.zeros((len(t), len(shares), log_prior.size))
    for number in range(1, len(shares)):
        mixed = ratio * np.float32(shares[number]) + np.float32(1 - shares[number])
        log[:, number] = (free[:, None].astype(np.float32) @ np.log(mixed))[:, 0]
    log *= np.minimum(1.0, MOST_GROUPS / np.maximum(free.sum(1), SMALLEST))[:, None, None]
    log += log_known(free)[:, None]
    if labelled.any():
        said = np.where(labelled, w, 0.0)
        right = np.log(ratio * np.float32(WRONG_LABEL) + np.float32(1 - WRONG_LABEL))
        of_wrong = (said[:, None].astype(np.float32) @ right)[:, 0]
        of_wrong *= np.minimum(1.0, MOST_GROUPS / np.maximum(said.sum(1), SMALLEST))[:, None]
        log += (of_wrong + log_known(said))[:, None]
    with np.errstate(divide="ignore"):
        log += log_prior.ravel()
        log += np.log(prior)[..., None]
    log -= log.max((1, 2), keepdims=True)
    grid = np.exp(np.maximum(log, -80, dtype=np.float32))  # smaller numbers take much longer
    grid /= grid.sum((1, 2), keepdims=True)
    return grid.reshape(len(t), len(shares), *log_prior.shape), *_share_in_batch(grid, ratio, n, labelled)


def _unknown_ratio(
    model: UnknownModel, t: Floats, n: Floats, restriction: Floats, sources: npt.NDArray[np.intp]
) -> Floats:
    """How many times as likely items are if they are unknown, [batch, item, source].

    Its log is a parabola in x = t - κ. Before its turning point it is nearly constant: an item farther out is never
    less likely to be unknown.
    """
    shifts, widths, factors, _, log_prior = _grid()
    shift, width, level = np.unravel_index(sources, log_prior.shape)
    w = np.repeat(widths, len(factors))
    g = np.tile(factors, len(widths))
    m, known, unknown = ((base + extra / n)[..., None] for base, extra in (model.level, model.known, model.unknown))
    v0 = w * known
    m = np.maximum(g * (m + model.farther * restriction[..., None]), 0.1)
    # Unknown items that vary less than known ones would explain any batch: its middle is narrow.
    v1 = np.maximum(v0, w * g * unknown)
    parabola = (1 / v0 - 1 / v1) / 2, m / v1, np.log(v0 / v1) / 2 - m**2 / (2 * v1)
    turning_point = -m * v0 / np.maximum(v1 - v0, 1e-4)
    # A product with ones and zeros is faster than `take`.
    chosen = (np.arange(w.size)[:, None] == len(factors) * width + level).astype(np.float32)
    a, b, c, turning_point = (each.astype(np.float32) @ chosen for each in (*parabola, turning_point))
    x = t.astype(np.float32)[..., None] - shifts[shift].astype(np.float32)
    outer = np.maximum(x, turning_point)
    log = (a * outer + b) * outer + c + np.float32(1e-3) * (x - outer)
    return np.asarray(np.exp(np.minimum(np.maximum(log, -40, out=log), 60, out=log), out=log))


def _item_posterior(inverse_ratio: Floats, share: float) -> Floats:
    """Chance of each item to be unknown if sources and share hold, [batch, item, source]."""
    chance = inverse_ratio * np.float32((1 - share) / share)
    chance += 1
    return np.asarray(np.reciprocal(chance, out=chance))


def _likely(grid: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the sources that count in any batch, and the grid of these, [batch, share, source]; zero if too small."""
    likely = grid > 1e-8 * grid.max((1, 2), keepdims=True)
    sources = np.flatnonzero(likely.any((0, 1)))
    return sources, (grid * likely).take(sources, -1)


def _share_in_batch(grid: Floats, ratio: Floats, n: Floats, labelled: Bools) -> tuple[Floats, Floats]:
    """5 % and 95 % quantiles of the share of unknown items [batch, 2], and the chance of each item [batch, item].

    The share has a normal distribution for each cell of the grid. A quantile is rounded outwards to 60ths: it is the
    number of ends below which lies less than the tail, counted in halves.
    """
    shares = _grid().shares
    free = ~labelled
    (sources, weights) = _likely(grid)
    inverse = 1 / ratio.take(sources, -1)
    mean = np.zeros_like(weights)
    variance = np.zeros_like(weights)
    counted = (np.stack([free, n * free], 1) / free.shape[1]).astype(np.float32)
    unknown = np.zeros(free.shape)
    for number in range(1, len(shares)):
        chance = _item_posterior(inverse, shares[number])
        unknown += (chance @ weights[:, number, :, None])[..., 0]
        mean[:, number], variance[:, number] = (counted @ chance).swapaxes(0, 1)
        variance[:, number] -= (counted[:, 1:] @ np.multiply(chance, chance, out=chance))[:, 0]
    # Of each batch, the cells that count: one after the other.
    cells = np.flatnonzero(weights > 1e-4 * weights.max((1, 2), keepdims=True))
    mean, variance, weights = (each.take(cells) for each in (mean, variance, weights))
    sizes = np.bincount(cells // (len(shares) * len(sources)))
    firsts = sizes.cumsum() - sizes
    # Φ(x) is ½ + ½ tanh(y + 0.0692 y³) with y = 0.7988 x, to within 0.0002.
    steepness = np.float32(0.7988) / np.sqrt(np.maximum(variance / free.shape[1], np.float32(1e-12)))
    tails = np.array([[0.05], [0.95]])
    ends_below = np.zeros((2, len(grid)), int)
    total = np.add.reduceat(weights, firsts)
    for width in (32, 16, 8, 4, 2, 1):
        end = ends_below + width - 1
        y = np.repeat((end / 60 + 1e-5).astype(np.float32), sizes, axis=1)
        y -= mean
        y *= steepness
        y *= 1 + np.float32(0.0692) * y * y
        below = np.add.reduceat(np.tanh(y, out=y) * weights, firsts, 1)
        ends_below = ends_below + width * (((total + below) / 2 < tails) & (end < 60))
    return np.stack([np.maximum(ends_below[0] - 1, 0), ends_below[1]], 1) / 60, unknown.clip(0, 1)
