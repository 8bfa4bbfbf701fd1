"""Which items of a batch belong together: the log-odds that two of them share a class are `A + B cos + b`.

A and B come from the catalogue (`unknown`), b from the pairs of the batch. Items are linked with *anchors*: all items
of a batch, or `MOST_ANCHORS` of those that decide a larger one, so that the links of an item do not depend on the block
in which it is labelled. An item keeps its `LINKS` strongest links; with weights w_nm that sum to one it stands for a
group of `n = 1/Σ_m w_nm²` items, or for itself alone. Copies of an item are linked like others, but twelve of them are
neither more evidence nor a group with less noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, logit

from handful.shapes import PerBatch

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

# Links that an item keeps.
LINKS = 10
# Most anchors.
MOST_ANCHORS = 512


class Links(NamedTuple):
    """Groups of items; leading axes are the batches of a stack."""

    anchors: Ints  # [..., item, near], numbers of the strongest
    weights: Floats  # [..., item, near], w
    own: Floats  # [..., item], w of the item itself, if it is not an anchor
    sizes: Floats  # [..., item], n
    squares: Floats  # [..., item], squared distance of the group from the centre
    with_unknown: Floats  # [..., item], chance to share a class with another item that is known to have none, and
    with_known: Floats  # [..., item], with one that is known to have one

    def means(self, of_anchors: Floats, of_items: Floats) -> Floats:
        """`Σ_m w_nm x_m` of values [..., anchor, number] and [..., item, number]."""
        numbers, values = _within_stack(self.anchors, of_anchors)
        ends = np.arange(0, numbers.size + 1, numbers.shape[-1])
        weights = sparse.csr_array((self.weights.ravel(), numbers.ravel(), ends), (len(ends) - 1, len(values)))
        return np.asarray((weights @ values).reshape(of_items.shape) + self.own[..., None] * of_items)


class Anchors(NamedTuple):
    """Items that others are linked with; leading axes are the batches of a stack."""

    away: Floats  # [..., anchor, dim], from the centre
    lengths: Floats  # [..., anchor], of that
    products: Floats  # [..., anchor, anchor], of that
    copy_of: npt.NDArray[np.intp]  # [..., anchor], equal for copies
    centre: Floats  # [dim]
    pair_odds: tuple[float, float]  # A and B
    log_odds: PerBatch  # [...], b
    fixed_unknown: Floats  # [..., anchor], 1 if it is known to have no class, 0 if it has one, NaN if neither

    @classmethod
    def of(
        cls, points: Floats, centre: Floats, pair_odds: tuple[float, float], fixed_unknown: Floats | None = None
    ) -> Anchors:
        """Make anchors of items [..., item, dim]; b is estimated from all pairs of them."""
        fixed_unknown = np.full(points.shape[:-1], np.nan) if fixed_unknown is None else fixed_unknown
        away = points - centre
        lengths, products = _lengths(away), away @ away.swapaxes(-1, -2)
        bare = cls(
            away,
            lengths,
            products,
            find_copies(points)[0],
            centre,
            pair_odds,
            np.zeros(points.shape[:-2]),
            fixed_unknown,
        )
        return bare._replace(log_odds=_pair_log_odds(bare.odds(products, lengths)))

    def odds(self, products: Floats, lengths: Floats) -> Floats:
        """Log-odds that items share a class with each anchor, [..., item, anchor], from products and lengths."""
        a, b = self.pair_odds
        odds = products * (b / lengths)[..., None] / self.lengths[..., None, :]
        odds += np.asarray(self.log_odds + a, odds.dtype)[..., None, None]
        return np.asarray(odds)

    def link(self, points: Floats, anchor_of: Ints) -> Links:
        """Link items [..., item, dim]; `anchor_of` [item] says which anchor an item is, -1 if it is none.

        Examples
        --------
        >>> points = np.repeat(np.eye(3), 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(12, 3))
        >>> anchors = Anchors.of(points, np.zeros(3), (-5.0, 10.0))
        >>> anchors.link(points, np.arange(12)).sizes.round().tolist()[:4]
        [4.0, 4.0, 4.0, 4.0]
        >>> anchors.link(points[:1] + 0.01, np.array([-1])).sizes.round().tolist()
        [5.0]
        """
        away, is_anchor, each = points - self.centre, anchor_of >= 0, np.arange(len(anchor_of))
        lengths, products = _lengths(away), away @ self.away.swapaxes(-1, -2)
        odds = self.odds(products, lengths)
        # By odds: many chances are equal to one. Its own link is the strongest.
        own_links = (..., each[is_anchor], anchor_of[is_anchor])
        odds[own_links] = -np.inf
        with_unknown, with_known = (self._with_kind(odds, kind) for kind in (1, 0))
        odds[own_links] = np.inf
        n_links = min(LINKS + 1, odds.shape[-1])
        strongest = np.argpartition(odds, -n_links, axis=-1)[..., -n_links:]
        weights = expit(np.take_along_axis(odds, strongest, -1))
        if n_links > LINKS:  # an item that is no anchor has its own link beside these
            weakest = weights.argmin(-1)[..., None]
            np.put_along_axis(weights, weakest, np.take_along_axis(weights, weakest, -1) * is_anchor[:, None], -1)
        own = np.broadcast_to(~is_anchor, weights.shape[:-1]).astype(weights.dtype)
        total = weights.sum(-1) + own
        weights, own = weights / total[..., None], own / total
        # |Σ_m w_nm z_m|², and Σ_m w_nm² where copies count as one item.
        beside, n_anchors = np.take_along_axis(products, strongest, -1), self.lengths.shape[-1]
        pairs = n_anchors * strongest[..., None] + strongest[..., None, :]
        near = _taken(self.products.reshape(*self.products.shape[:-2], -1), pairs.reshape(*pairs.shape[:-2], -1))
        near = near.reshape(pairs.shape)
        squares = _square(weights, near) + own * (2 * (weights * beside).sum(-1) + own * lengths**2)
        copy_of = _taken(self.copy_of, strongest)
        copied = copy_of[..., None] == copy_of[..., None, :]
        equal = self._equal(away, beside, lengths, strongest) & ~is_anchor[:, None]
        counted = _square(weights, copied) + own * (2 * (weights * equal).sum(-1) + own)
        return Links(
            strongest, weights, own, np.maximum(1 / counted.astype(np.float64), 1), squares, with_unknown, with_known
        )

    def _with_kind(self, odds: Floats, kind: int) -> Floats:
        """Chance to share a class with an anchor that has none (1) or one (0), [..., item]."""
        some = self.fixed_unknown == kind
        if not some.any():
            return np.zeros(odds.shape[:-1], odds.dtype)
        return np.asarray(expit(np.where(some[..., None, :], odds, -np.inf).max(-1)))

    def _equal(self, away: Floats, products: Floats, lengths: Floats, strongest: Ints) -> npt.NDArray[np.bool_]:
        """Which of the strongest are copies of the item, [..., item, near]."""
        others = _taken(self.lengths, strongest)
        # All numbers are compared only where the directions are nearly equal.
        equal = np.asarray(products >= 0.999 * lengths[..., None] * others)
        some = np.nonzero(equal)
        rows = strongest[some]
        equal[some] = (away[some[:-1]] == self.away[(*some[:-2], rows)]).all(-1)
        return equal


class NewGroup(NamedTuple):
    """Items that look like one class that the catalogue does not have."""

    items: npt.NDArray[np.intp]  # positions, the most typical first
    cohesion: float  # mean chance that two of them share a class
    worth: float  # expected number of unknown items times cohesion
    nearest: int  # the known class that describes them best


def _taken(values: npt.NDArray[Any], numbers: Ints) -> npt.NDArray[Any]:
    """Return values [..., anchor] of numbers [..., item, near]."""
    numbers, values = _within_stack(numbers, values[..., None])
    return values[:, 0].take(numbers)


def _within_stack(numbers: Ints, values: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """Return values [anchor, number] of all batches one after the other, and numbers [..., item, near] among these."""
    n_anchors, lead = values.shape[-2], values.shape[:-2]
    starts = n_anchors * np.arange(math.prod(lead)).reshape(*lead, 1, 1)
    return numbers + starts, values.reshape(-1, values.shape[-1])


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
    log_odds: Floats, points: Floats, chances: Floats, scores: Floats, copy_of: npt.NDArray[np.intp]
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
        if len(set(copy_of[members].tolist())) < 3:  # a few copies of an item are not a class
            continue
        inside = points[members]
        members = members[((inside - inside.mean(0)) ** 2).sum(1).argsort(kind="stable")]
        same, n = expit(log_odds[np.ix_(members, members)].astype(np.float64)), len(members)
        cohesion = float((same.sum() - np.trace(same)) / (n * (n - 1)))
        worth = float(chances[members].sum()) * cohesion
        groups.append(NewGroup(members, cohesion, worth, int(scores[members].mean(0).argmax())))
    return sorted(groups, key=lambda group: -group.worth)


def _pair_log_odds(odds: Floats) -> Floats:
    """Log-odds that two items of a batch share a class, [...]: the most likely ones; the likelihood is concave."""
    more, each = np.expm1(np.minimum(odds, 30)), np.arange(odds.shape[-1])
    more[..., each, each] = 0  # every pair is there twice, and no item with itself
    more = more.reshape(*odds.shape[:-2], -1)
    chance = np.full(odds.shape[:-2], 0.1)
    for _ in range(12 if len(each) > 1 else 0):
        ratio = more / (1 + chance[..., None].astype(more.dtype) * more)
        curvature = (ratio[..., None, :] @ ratio[..., None])[..., 0, 0]
        step = ratio.sum(-1, dtype=np.float64) / np.maximum(curvature, np.finfo(more.dtype).tiny)
        # At most half of the way to either end, so that no step leaves the interval.
        least, most = np.maximum(chance / 2, 1e-4), np.minimum((1 + chance) / 2, 0.9)
        before, chance = chance, np.minimum(np.maximum(chance + step, least), most)
        if (np.abs(chance - before) <= 1e-5 * chance).all():
            break
    return np.asarray(logit(chance))


def _agglomerated(log_odds: Floats) -> list[npt.NDArray[np.intp]]:
    """Join the two groups with the largest mean log-odds of a pair, as long as that is above zero."""
    between = log_odds.astype(np.float64)
    np.fill_diagonal(between, -np.inf)
    n_items = len(between)
    sizes, members = np.ones(n_items), [[item] for item in range(n_items)]
    partner = between.argmax(1) if n_items else np.empty(0, np.int64)
    best = between[np.arange(n_items), partner]
    while n_items > 1:
        a = int(best.argmax())
        b = int(partner[a])
        if best[a] <= 0:
            break
        row = (sizes[a] * between[a] + sizes[b] * between[b]) / (sizes[a] + sizes[b])
        row[a] = row[b] = -np.inf
        between[a], between[:, a] = row, row
        between[b], between[:, b] = -np.inf, -np.inf
        sizes[a] += sizes[b]
        members[a] += members[b]
        members[b] = []
        # Only rows whose nearest group was one of the two need to be searched again; others may now be nearer to a.
        again = np.flatnonzero((partner == a) | (partner == b))
        partner[again] = between[again].argmax(1)
        best[again] = between[again, partner[again]]
        nearer = row > best
        best[nearer], partner[nearer] = row[nearer], a
        partner[a] = row.argmax()
        best[a], best[b] = row[partner[a]], -np.inf
    return [np.array(group) for group in members if group]


def _lengths(away: Floats) -> Floats:
    """Return lengths [..., item] of vectors, none of them zero."""
    return np.asarray(np.maximum(np.linalg.norm(away, axis=-1), np.finfo(away.dtype).tiny))


def _square(weights: Floats, table: npt.NDArray[Any]) -> Floats:
    """Return `wᵀ T w` of weights [..., item, near] and tables [..., item, near, near]."""
    return np.asarray(((weights[..., None, :] @ table.astype(weights.dtype))[..., 0, :] * weights).sum(-1))
