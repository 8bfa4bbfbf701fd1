"""Which items of a batch belong together: the log-odds that two of them share a class are `A + B cos + b_0`.

A and B come from the catalogue (`unknown_of_catalogue`), b_0 from the pairs of the batch; items that have different
labels are not linked, whatever their cosine. Items are linked with *anchors*: all items of a batch, or some of those
that decide a larger one, so that the links of an item do not depend on the block in which it is labelled. An item keeps
its ten strongest links; with weights a_nj that sum to one it stands for a group of `G_n = 1/Σ_j a_nj²` items, or for
itself alone. Copies of an item are linked like others, but twelve of them are neither more evidence nor a group with
less noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, logit

from handful.model.arrays import Floats, Ints
from handful.model.limits import CONVERGED, MOST_LOG_ODDS, MULTIPLIED_ANCHORS, NEARLY_EQUAL, PAIR_MOST, PAIR_START
from handful.model.settings import DEFAULT, Settings


class Links(NamedTuple):
    """Groups of items."""

    weights: sparse.csr_array  # [items, anchors] of all batches one after the other, a
    own: Floats  # [batch, item], a of the item itself, if it is not an anchor
    sizes: Floats  # [batch, item], G
    squares: Floats  # [batch, item], squared distance of the group from the centre
    alike: Floats  # [batch, item], expected number of items of the batch that share its class, itself among them

    def means(self, of_anchors: Floats, of_items: Floats) -> Floats:
        """`Σ_j a_nj v_j` of values [batch, anchor, number] and [batch, item, number]."""
        means = (self.weights @ of_anchors.reshape(-1, of_anchors.shape[-1])).reshape(of_items.shape)
        return np.asarray(means + self.own[..., None] * of_items if self.own.any() else means)


class Compared(NamedTuple):
    """Items beside the anchors: what their links need, whatever their labels are."""

    points: Floats  # [batch, item, dim]
    rows: Ints  # items that are anchors themselves,
    anchors: Ints  # and which anchors these are
    is_anchor: npt.NDArray[np.bool_]  # [item]
    lengths: Floats  # [batch, item], distances from the centre
    cosines: Floats  # [batch, item, anchor]; infinity for an anchor and itself
    chances: Floats  # [batch, item, anchor], to share a class; zero for an anchor and itself
    alike: Floats  # [batch, item], see `Links`


class Anchors(NamedTuple):
    """Items that others are linked with."""

    points: Floats  # [batch, anchor, dim]
    lengths: Floats  # [batch, anchor], distances from the centre
    directions: Floats  # [batch, anchor, dim], from the centre
    cosines: Floats  # [batch, anchor, anchor], of these
    copy_of: npt.NDArray[np.intp]  # [batch, anchor], equal for copies
    centre: Floats  # [dim]
    pair_odds: tuple[float, float]  # A and B
    log_odds: Floats  # [batch], b_0
    settings: Settings
    n_items: int  # of the batch that they stand for

    @classmethod
    def of(
        cls,
        points: Floats,
        centre: Floats,
        pair_odds: tuple[float, float],
        copy_of: npt.NDArray[np.intp],
        settings: Settings = DEFAULT,
        n_items: int | None = None,
    ) -> Anchors:
        """Make anchors of items [batch, item, dim], of a batch of `n_items`; all pairs of them tell b_0."""
        lengths, directions, cosines = _compared(points, centre)
        a, b = pair_odds
        log_odds = pair_log_odds(np.asarray(cosines * b + np.asarray(a, cosines.dtype)), settings)
        n_items = n_items or len(lengths[0])
        return cls(points, lengths, directions, cosines, copy_of, centre, pair_odds, log_odds, settings, n_items)

    def __reduce__(self) -> Any:
        """Return what a pickle keeps: nothing that follows from the points."""
        others = (self.copy_of, self.centre, self.pair_odds, self.log_odds, self.settings, self.n_items)
        return _unpickled, (self.points, *others)

    def odds(self, cosines: Floats) -> Floats:
        """Log-odds to share a class with an anchor, from cosines [batch, item, some]."""
        a, b = self.pair_odds
        return np.asarray(cosines * b + np.asarray(self.log_odds + a, cosines.dtype)[..., None, None])

    def compare(self, points: Floats, rows: Ints, anchors: Ints) -> Compared:
        """Compare items [batch, item, dim], of which those of these rows are these anchors themselves."""
        away = points - self.centre
        lengths = _lengths(away)
        along = (away @ self.directions.swapaxes(-1, -2)) / lengths[..., None]
        chances = self.odds(along)
        with np.errstate(over="ignore"):  # one over infinity is zero
            np.exp(np.negative(chances, out=chances), out=chances)
        chances += 1
        np.reciprocal(chances, out=chances)
        chances[:, rows, anchors] = 0
        is_anchor = np.zeros(points.shape[1], bool)
        is_anchor[rows] = True
        others = along.shape[-1] - is_anchor
        in_class = 1 + chances.sum(-1) * (self.n_items - 1) / np.maximum(others, 1)
        along[:, rows, anchors] = np.inf
        return Compared(points, rows, anchors, is_anchor, lengths, along, chances, in_class)

    def link(self, compared: Compared, alike: Floats | float = 1.0) -> Links:
        """Link items with their strongest anchors.

        `alike` is the chance that the labels of an item and of an anchor are equal, [batch, item, anchor].

        Examples
        --------
        >>> points = np.repeat(np.eye(3), 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(12, 3))
        >>> anchors = Anchors.of(points[None], np.zeros(3), (-5.0, 10.0), np.arange(12)[None])
        >>> every, none = np.arange(12), np.arange(0)
        >>> anchors.link(anchors.compare(points[None], every, every)).sizes[0].round().tolist()[:4]
        [4.0, 4.0, 4.0, 4.0]
        >>> anchors.link(anchors.compare(points[None, :1] + 0.01, none, none)).sizes.round().tolist()
        [[5.0]]
        """
        points, rows, anchors, is_anchor, lengths, along, chances, in_class = compared
        chances = chances * alike
        chances[:, rows, anchors] = 1  # its own link is the strongest
        most = self.settings.links
        n_anchors = along.shape[-1]
        strongest = _strongest(chances, min(most + 1, n_anchors))
        # Of all pairs in one row, and of all anchors.
        pairs = strongest + _firsts(along)
        numbers = strongest + _firsts(self.cosines[..., :1, :]).reshape(*self.lengths.shape[:-1], 1, 1)
        cosines = along.take(pairs)
        weights = chances.take(pairs)
        own = np.zeros_like(lengths)
        if not is_anchor.all():  # an item that is no anchor has its own link beside ten others
            if strongest.shape[-1] > most:
                weights *= is_anchor[:, None] | (np.arange(most + 1) != weights.argmin(-1)[..., None])
            own += ~is_anchor
        total = weights.sum(-1) + own
        weights = weights / total[..., None]
        own = own / total
        # |Σ_j a_nj x_j|², from lengths and cosines of pairs.
        reach = weights * self.lengths.take(numbers)
        squares = self._squares(reach, strongest, numbers)
        counted = self._counted(weights, numbers)
        if own.any():
            equal = self._equal(points, cosines, numbers) & ~is_anchor[:, None]
            counted += own * (2 * (weights * equal).sum(-1) + own)
            own_reach = own * lengths
            np.copyto(cosines, 0, where=np.isinf(cosines))
            squares += own_reach * (2 * (reach * cosines).sum(-1) + own_reach)
        ends = np.arange(0, numbers.size + 1, numbers.shape[-1])
        matrix = sparse.csr_array((weights.ravel(), numbers.ravel(), ends), (len(ends) - 1, self.lengths.size))
        return Links(matrix, own, np.maximum(1 / counted.astype(np.float64), 1), squares, in_class)

    def _squares(self, reach: Floats, strongest: Ints, numbers: Ints) -> Floats:
        """Return `Σ_ij r_i r_j cos_ij` over the strongest links of each item, [batch, item]."""
        n_anchors = self.cosines.shape[-1]
        if n_anchors > MULTIPLIED_ANCHORS:
            return _square(reach, self.cosines.take(n_anchors * numbers[..., None] + strongest[..., None, :]))
        every = np.zeros((*reach.shape[:-1], n_anchors), reach.dtype)
        every.put(strongest + _firsts(every), reach)
        return np.asarray(np.einsum("...a,...a->...", every @ self.cosines, every))

    def _counted(self, weights: Floats, numbers: Ints) -> Floats:
        """Return `Σ_j a_nj²`, where copies count as one item."""
        ordered = np.sort(self.copy_of, -1)
        if (ordered[..., 1:] > ordered[..., :-1]).all():
            return np.asarray((weights**2).sum(-1))
        copy_of = self.copy_of.ravel().take(numbers)
        return _square(weights, (copy_of[..., None] == copy_of[..., None, :]).astype(weights.dtype))

    def _equal(self, points: Floats, cosines: Floats, numbers: Ints) -> npt.NDArray[np.bool_]:
        """Which of the strongest are copies of the item, [..., item, near]."""
        # All numbers are compared only where the directions are nearly equal.
        equal = np.asarray(cosines >= NEARLY_EQUAL)
        some = np.nonzero(equal)
        equal[some] = (points[some[:-1]] == self.points.reshape(-1, points.shape[-1])[numbers[some]]).all(-1)
        return equal


def _compared(points: Floats, centre: Floats) -> tuple[Floats, Floats, Floats]:
    """Return distances from the centre, directions from there, and the cosines of these."""
    directions = points - centre
    lengths = _lengths(directions)
    directions /= lengths[..., None]
    return lengths, directions, np.asarray(directions @ directions.swapaxes(-1, -2))


def _unpickled(points: Floats, copy_of: Any, centre: Floats, *others: Any) -> Anchors:
    return Anchors(points, *_compared(points, centre), copy_of, centre, *others)


def pair_log_odds(odds: Floats, settings: Settings) -> Floats:
    """Log-odds that two items of a batch share a class, [batch]: the most likely ones; the likelihood is concave."""
    more = np.expm1(np.minimum(odds, MOST_LOG_ODDS))
    each = np.arange(odds.shape[-1])
    more[..., each, each] = 0  # every pair is there twice, and no item with itself
    more = more.reshape(*odds.shape[:-2], -1)
    chance = np.full(odds.shape[:-2], PAIR_START)
    ratio = np.empty_like(more)
    ones = np.ones(more.shape[-1], more.dtype)
    for _ in range(settings.pair_steps if len(each) > 1 else 0):
        np.multiply(chance[..., None].astype(more.dtype), more, out=ratio)
        ratio += 1
        np.divide(more, ratio, out=ratio)
        curvature = (ratio[..., None, :] @ ratio[..., None])[..., 0, 0]
        step = (ratio @ ones).astype(np.float64) / np.maximum(curvature, np.finfo(more.dtype).tiny)
        # At most half of the way to either end, so that no step leaves the interval.
        least = np.maximum(chance / 2, settings.pair_least)
        most = np.minimum((1 + chance) / 2, PAIR_MOST)
        before = chance
        chance = np.minimum(np.maximum(chance + step, least), most)
        if (np.abs(chance - before) <= CONVERGED * chance).all():
            break
    return np.asarray(logit(chance))


class NewGroup(NamedTuple):
    """Items that look like one class that the catalogue does not have."""

    items: npt.NDArray[np.intp]  # positions, the most typical first
    cohesion: float  # mean chance that two of them share a class
    worth: float  # expected number of unknown items times cohesion
    nearest: int  # the known class that describes them best


def _strongest(values: Floats, n: int) -> Ints:
    """Return the positions of the n largest of values [..., anchor], in any order."""
    n_anchors = values.shape[-1]
    if n == n_anchors:
        return np.broadcast_to(np.arange(n), values.shape)
    return np.asarray(np.argpartition(values, -n, axis=-1)[..., -n:])


def _firsts(values: Floats) -> Ints:
    """Return the number of the first value of each row, [..., 1], as if all were one row."""
    return np.arange(0, values.size, values.shape[-1]).reshape(*values.shape[:-1], 1)


def find_copies(points: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return for each row the first row of its batch that is equal, and how often it occurs, [..., item] each."""
    n_items = points.shape[-2]
    rows = points.reshape(-1, n_items, points.shape[-1])
    copy_of = np.tile(np.arange(n_items), (len(rows), 1))
    sums = np.sort(rows.sum(-1), -1)
    for batch in np.flatnonzero((sums[:, 1:] == sums[:, :-1]).any(-1)):  # those of equal rows are equal
        first: dict[bytes, int] = {}
        contents = np.ascontiguousarray(rows[batch] + 0.0)  # minus zero is zero
        copy_of[batch] = [first.setdefault(row.tobytes(), row_number) for row_number, row in enumerate(contents)]
    flat = copy_of + n_items * np.arange(len(copy_of))[:, None]
    copies = np.bincount(flat.ravel(), minlength=flat.size)[flat].astype(np.float64)
    return copy_of.reshape(points.shape[:-1]), copies.reshape(points.shape[:-1])


def new_groups(
    log_odds: Floats,
    points: Floats,
    chances: Floats,
    scores: Floats,
    copy_of: npt.NDArray[np.intp],
    settings: Settings = DEFAULT,
) -> list[NewGroup]:
    """Return the groups among unknown items, those of most worth first.

    Items join while the mean log-odds of their pairs exceed zero; the closest groups join first.

    Parameters
    ----------
    log_odds
        Of every pair, that both have the same class.
    points, chances, scores
        Their points, chances to be unknown, and scores of the known classes.
    copy_of
        Equal for copies of an item.
    """
    groups = []
    for members in _agglomerated(log_odds):
        if len(set(copy_of[members].tolist())) < settings.smallest_group:  # a few copies of an item are not a class
            continue
        inside = points[members]
        members = members[((inside - inside.mean(0)) ** 2).sum(1).argsort(kind="stable")]
        same = expit(log_odds[np.ix_(members, members)].astype(np.float64))
        n = len(members)
        cohesion = float((same.sum() - np.trace(same)) / (n * (n - 1)))
        worth = float(chances[members].sum()) * cohesion
        groups.append(NewGroup(members, cohesion, worth, int(scores[members].mean(0).argmax())))
    return sorted(groups, key=lambda group: -group.worth)


def groups_of_answers(anchors: Anchors, points: Floats) -> Ints:
    """Return the group of each of the items that a person called none of these, [item], numbered as they come.

    They join while the mean log-odds of their pairs exceed -1.5 (`few_classes`): these items are of fewer classes than
    those of the batch, so that two of them share a class more often.

    Parameters
    ----------
    anchors
        Items of the batch, a stack of one, which tell how often two items share a class.
    points
        The items that a person called none of these.
    """
    directions = points - anchors.centre
    directions /= _lengths(directions)[:, None]
    log_odds = anchors.odds((directions @ directions.T)[None])[0] + anchors.settings.few_classes
    groups = np.zeros(len(points), np.intp)
    for number, members in enumerate(sorted(_agglomerated(log_odds), key=min)):
        groups[members] = number
    return groups


def _agglomerated(log_odds: Floats) -> list[npt.NDArray[np.intp]]:
    """Join the two groups with the largest mean log-odds of a pair, as long as that is above zero."""
    between = log_odds.astype(np.float64)
    np.fill_diagonal(between, -np.inf)
    n_items = len(between)
    sizes = np.ones(n_items)
    members = [[item] for item in range(n_items)]
    partner = between.argmax(1) if n_items else np.empty(0, np.int64)
    best = between[np.arange(n_items), partner]
    while n_items > 1:
        a = int(best.argmax())
        b = int(partner[a])
        if best[a] <= 0:
            break
        row = (sizes[a] * between[a] + sizes[b] * between[b]) / (sizes[a] + sizes[b])
        row[a] = row[b] = -np.inf
        between[a] = row
        between[:, a] = row
        between[b] = -np.inf
        between[:, b] = -np.inf
        sizes[a] += sizes[b]
        members[a] += members[b]
        members[b] = []
        # Only rows whose nearest group was one of the two need to be searched again; others may now be nearer to a.
        again = np.flatnonzero((partner == a) | (partner == b))
        partner[again] = between[again].argmax(1)
        best[again] = between[again, partner[again]]
        nearer = row > best
        best[nearer] = row[nearer]
        partner[nearer] = a
        partner[a] = row.argmax()
        best[a] = row[partner[a]]
        best[b] = -np.inf
    return [np.array(group) for group in members if group]


def _lengths(away: Floats) -> Floats:
    """Return lengths [..., item] of vectors, none of them zero."""
    lengths = np.sqrt(np.einsum("...d,...d->...", away, away))
    return np.asarray(np.maximum(lengths, np.finfo(away.dtype).tiny))


def _square(weights: Floats, table: Floats) -> Floats:
    """Return `aᵀ T a` of weights [..., item, near] and tables [..., item, near, near]."""
    return np.asarray(((weights[..., None, :] @ table)[..., 0, :] * weights).sum(-1))
