"""The rest, oddest first: whether an item of every kind was seen.

That few labels are wrong says nothing about kinds: one with a single item may hide among the labels of another, and no
chance that is shown finds it. So once labels are good, a person looks at the items that are least like anything seen:
the one whose nearest seen item has the smallest cosine, then the one least like anything seen or taken, and so on,
`argmin_n max_{m seen or taken} <x_n, x_m>` with directions x from the mean of the batch. A burst of frames is taken
once: the others are like the one that was taken.

A kind is new if it is given to an item of the batch for the first time, whether the catalogue has it or not. With n
items that nobody has seen, a person may stop after

    c √n

items in this order without a new kind. That is a rule and not a chance: nobody knows how many kinds are left, only what
was done. A kind that looks like another one on these features is not odd, and may still be missed.

People overlook exceptions, and an item that was accepted with a wrong label is not asked about again by itself. So a
sheet that has room shows accepted items once more, and so does one more sheet when everything was seen: those whose
nearest answered item of their own label is farthest behind that of another label.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from handful.catalogue.events import LABELLING, Event
from handful.catalogue.said import Said
from handful.shapes import Float, Int

# c: by how many odd items the square root of the number of unseen ones is multiplied. [items; tuned]
ODD_ITEMS = 4.5
# Seen items that unseen ones are compared with at a time. [items; work]
SEEN_AT_A_TIME = 256


class Oddness:
    """Items by how unlike they are to those that were seen.

    Parameters
    ----------
    directions : [item, dim]
        Unit vectors of the items from the mean of the batch.

    Examples
    --------
    >>> items = np.array([[1, 0], [0.96, 0.28], [-0.8, 0.6], [-0.6, 0.8], [0, -1]])
    >>> Oddness(items).first(2, seen=[0]).tolist()
    [2, 4]
    """

    def __init__(self, directions: Float[np.ndarray, "item dim"]) -> None:
        self.directions = directions
        self._seen: frozenset[int] = frozenset()
        self._nearest = np.full(len(directions), -np.inf, directions.dtype)

    def first(self, most: int, seen: Iterable[int]) -> Int[np.ndarray, "some"]:
        """Return up to `most` items that nobody has seen, the oddest first."""
        nearest = self._nearest_seen(frozenset(seen)).copy()
        left = np.ones(len(nearest), dtype=bool)
        left[sorted(self._seen)] = False
        taken = list[int]()
        for _ in range(min(most, int(left.sum()))):
            item = int(np.where(left, nearest, np.inf).argmin())
            taken.append(item)
            left[item] = False
            np.maximum(nearest, self.directions @ self.directions[item], out=nearest)
        return np.array(taken, np.int64)

    def _nearest_seen(self, seen: frozenset[int]) -> Float[np.ndarray, "item"]:
        """Return the largest cosine of each item with a seen one; what was compared before is not compared again."""
        if not self._seen <= seen:
            self._seen = frozenset()
            self._nearest[:] = -np.inf
        new = sorted(seen - self._seen)
        for start in range(0, len(new), SEEN_AT_A_TIME):
            some = self.directions[new[start : start + SEEN_AT_A_TIME]]
            np.maximum(self._nearest, (self.directions @ some.T).max(1), out=self._nearest)
        self._seen = seen
        return self._nearest

    def least_fitting(self, most: int, glanced: Iterable[int], given: Mapping[int, Any]) -> Int[np.ndarray, "some"]:
        """Return up to `most` of some items with a label: those most like an item with another label first.

        Parameters
        ----------
        most
            How many.
        glanced
            Items to choose from.
        given
            The labels that people gave.
        """
        chosen = np.array([item for item in sorted(glanced) if given.get(item) is not None], np.int64)
        labelled = np.array(list(given), np.int64)
        _, code = np.unique([str(given[item]) for item in (*chosen, *labelled)], return_inverse=True)
        fit = np.empty(len(chosen))
        for start in range(0, len(chosen), SEEN_AT_A_TIME):
            some = slice(start, start + SEEN_AT_A_TIME)
            cosines = self.directions[chosen[some]] @ self.directions[labelled].T
            same = code[: len(chosen)][some, None] == code[len(chosen) :]
            itself = chosen[some, None] == labelled
            own = np.where(same & ~itself, cosines, -1.0).max(1, initial=-1.0)
            other = np.where(same, -1.0, cosines).max(1, initial=-1.0)
            fit[some] = own - other
        return chosen[np.argsort(fit, kind="stable")[:most]]


def n_odd_needed(n_unseen: int) -> int:
    """`c √n`: how many odd items without a new kind are enough, if nobody has seen n items.

    Examples
    --------
    >>> n_odd_needed(10), n_odd_needed(50), n_odd_needed(500)
    (10, 32, 101)
    """
    return min(n_unseen, math.ceil(ODD_ITEMS * math.sqrt(n_unseen)))


class OddLooks(NamedTuple):
    """What a person looked at because it is odd.

    Attributes
    ----------
    n_odd : int
        Odd items that were looked at since a kind was seen for the first time.
    glanced : frozenset of int
        Items that were accepted once, together with others.
    n_again : int
        Items that were looked at a second time.
    """

    n_odd: int
    glanced: frozenset[int]
    n_again: int


def odd_looks(events: Sequence[Event], said: Said, items: Collection[int]) -> OddLooks:
    """Return what was looked at because it is odd.

    Parameters
    ----------
    events
        Answers about the batch that count, in order.
    said
        What people said about all batches.
    items
        Numbers of the items of the batch that are there.
    """
    ours = {event.event for event in events}
    # Kinds of items that had a label before the batch was reviewed.
    kinds = {None} | {one.label for item, one in said.answers.items() if item in items and one.event not in ours}
    odd: set[int] = set()
    seen: set[int] = set()
    glanced: set[int] = set()
    n_again = 0
    for event in events:
        shown = {one.item for one in event.items if one.item in items}
        if event.kind in LABELLING:
            answered = shown & set(event.answered)
            given = {event.label_of(one) for one in event.items if one.item in answered}
            new = {said.name_now(event, label) for label in given if label is not None} - kinds
            if event.about.get("oddest"):
                odd |= shown - seen
                n_again += len(shown & seen)
            if new:
                odd.clear()
            kinds |= new
            glanced -= answered
            if len(answered) > 1:
                glanced |= answered - seen
        seen |= shown
    return OddLooks(len(odd), frozenset(glanced), n_again)
