"""Which items of a batch belong together: the log-odds that two of them share a class are `A + B cos + b`.

A and B come from the catalogue (`levels`), b from the pairs of the batch. An item keeps its `NEAR` strongest links;
with weights w_nm that sum to one it stands for a group of `n = 1/Σ_m w_nm²` items, or for itself alone. Copies of an
item are linked like others, but twelve of them are neither more evidence nor a group with less noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

Floats = npt.NDArray[np.floating]

# Links that an item keeps.
NEAR = 10
# Items that can be linked with one another.
MOST_LINKED = 512
# Chance that two items share a class: limits, the first guess, and Newton steps.
LEAST_PAIRS, MOST_PAIRS, PAIR_CHANCE, PAIR_STEPS = 1e-4, 0.9, 0.1, 12
# Fewest different items of a new group: a single item is not a class.
SMALLEST = 3


class Links(NamedTuple):
    """Groups of items; leading axes are the batches of a stack."""

    weights: Floats  # [..., item, item], w
    sizes: Floats  # [..., item], n
    copies: Floats  # [..., item], how often the row occurs
    log_odds: Floats  # [..., item, item], that both have the same class
    squares: Floats  # [..., item], squared distance of the group from the centre


class NewGroup(NamedTuple):
    """Items that look like one class that the catalogue does not have."""

    items: npt.NDArray[np.intp]  # positions, the most typical first
    cohesion: float  # mean chance that two of them share a class
    worth: float  # expected number of unknown items times cohesion
    nearest: int  # the known class that describes them best


def link(points: Floats, centre: Floats, pair_odds: tuple[float, float]) -> Links:
    """Link the items of each batch of a stack, [..., item, dim]; cosines are about `centre`.

    Examples
    --------
    >>> points = np.repeat(np.eye(3), 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(12, 3))
    >>> link(points, np.zeros(3), (-5.0, 10.0)).sizes.round().tolist()[:4]
    [4.0, 4.0, 4.0, 4.0]
    """
    away, n_items = points - centre, points.shape[-2]
    lengths = np.maximum(np.linalg.norm(away, axis=-1), np.finfo(points.dtype).tiny)
    directions = away / lengths[..., None]
    cosines = directions @ directions.swapaxes(-1, -2)
    a, b = pair_odds
    odds = b * cosines + a
    odds += _pair_log_odds(odds)[..., None, None].astype(odds.dtype)
    # By odds: many chances are equal to one. Its own link is the strongest.
    nearness, each = -odds, np.arange(n_items)
    nearness[..., each, each] = -np.inf
    n_links = min(NEAR + 1, n_items)
    strongest = np.argpartition(nearness, n_links - 1, axis=-1)[..., :n_links]
    weights = np.zeros_like(odds)
    np.put_along_axis(weights, strongest, expit(-np.take_along_axis(nearness, strongest, -1)), -1)
    weights /= weights.sum(-1, keepdims=True)
    which, copies = copies_of(points)
    of_rows = weights
    if copies.max() > 1:
        of_rows = weights @ (which[..., None] == which[..., None, :]).astype(weights.dtype)
    sizes = np.maximum(1 / (weights * of_rows).sum(-1, dtype=np.float64), 1)
    longer = weights * lengths[..., None, :]
    return Links(weights, sizes, copies, odds, (longer @ cosines * longer).sum(-1))


def copies_of(points: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return for each row the first row of its batch that is equal, and how often it occurs, [..., item] each."""
    rows, n_items = np.ascontiguousarray(points + 0.0), points.shape[-2]
    which = []
    for batch in rows.reshape(-1, n_items, rows.shape[-1]):
        first: dict[bytes, int] = {}
        which.append([first.setdefault(row.tobytes(), place) for place, row in enumerate(batch)])
    found = np.array(which, np.intp)
    flat = found + n_items * np.arange(len(found))[:, None]
    copies = np.bincount(flat.ravel(), minlength=flat.size)[flat].astype(np.float64)
    return found.reshape(points.shape[:-1]), copies.reshape(points.shape[:-1])


def new_groups(
    log_odds: Floats, points: Floats, chances: Floats, scores: Floats, which: npt.NDArray[np.intp]
) -> list[NewGroup]:
    """Return the groups among unknown items, those of most worth first.

    Items join while the mean log-odds of their pairs exceed zero; the closest groups join first.

    Parameters
    ----------
    log_odds
        Of every pair, that both have the same class.
    points, chances, scores
        Their points, chances to be unknown, and scores of the known classes.
    which
        Equal for copies of an item.
    """
    found = []
    for members in _agglomerated(log_odds):
        if len(set(which[members].tolist())) < SMALLEST:
            continue
        inside = points[members]
        members = members[((inside - inside.mean(0)) ** 2).sum(1).argsort(kind="stable")]
        together, n = expit(log_odds[np.ix_(members, members)].astype(np.float64)), len(members)
        cohesion = float((together.sum() - np.trace(together)) / (n * (n - 1)))
        worth = float(chances[members].sum()) * cohesion
        found.append(NewGroup(members, cohesion, worth, int(scores[members].mean(0).argmax())))
    return sorted(found, key=lambda group: -group.worth)


def _pair_log_odds(odds: Floats) -> Floats:
    """Log-odds that two items of a batch share a class, [...]: the most likely ones; the likelihood is concave."""
    more, each = np.expm1(np.minimum(odds.astype(np.float64), 30.0)), np.arange(odds.shape[-1])
    more[..., each, each] = 0  # every pair is there twice, and no item with itself
    more = more.reshape(*odds.shape[:-2], -1)
    chance = np.full(odds.shape[:-2], PAIR_CHANCE)
    for _ in range(PAIR_STEPS if len(each) > 1 else 0):
        ratio = more / (1 + chance[..., None] * more)
        step = ratio.sum(-1) / np.maximum(np.einsum("...i,...i->...", ratio, ratio), np.finfo(np.float64).tiny)
        # At most half of the way to either end, so that no step leaves the interval.
        least, most = np.maximum(chance / 2, LEAST_PAIRS), np.minimum((1 + chance) / 2, MOST_PAIRS)
        before, chance = chance, np.minimum(np.maximum(chance + step, least), most)
        if (np.abs(chance - before) <= 1e-9 * chance).all():
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
