"""Batches of examples that were left out of a catalogue, as batches in use are: of few of its classes.

Every example that can be left out is left out once, in one of `FOLDS` parts; copies of it, and frames of its sequence,
are left out with it: beside a copy in the catalogue everything looks right. In each part, classes are taken in random
order, a few at a time, and the examples of a few classes that were left out are one batch. Three catalogues label it:

    whole   all other examples
    fewer   half of these, of every class
    open    without a third of the classes: their items belong to none of its classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from handful.shapes import Float, Int

# Parts in which examples are left out, and in which classes are. [parts; convention]
FOLDS = 3
# Classes of a batch, as a share of all. [ratio; convention]
PRESENT_SHARE = 1 / 3
# Smallest and largest number of classes of a batch. [classes; convention]
FEWEST_PRESENT = 2
MOST_PRESENT = 5
# Items of one class in a batch. [items; convention]
MOST_OF_CLASS = 15
# Batches of a part. [batches; work]
BATCHES_OF_PART = 40
# Classes that take part; of more, these are drawn, so that the work is bounded. [classes; work]
MOST_CLASSES = 150
# Examples of a class that take part, drawn in the same way. [examples; work]
MOST_EXAMPLES = 20
# Two examples of a class are nearly copies if their squared distance is below this share of the usual one, the median
# over all examples of that to the nearest of the same class. [ratio; convention]
NEAR_SHARE = 0.1
# Largest squared distance of two unit vectors. [squared distance; convention: the triangle inequality]
MOST_SQUARE = 4.0
# What rounding makes of the smallest. [squared distance; convention]
ROUNDING = 1e-5
# Rows that are compared with all of their class at a time. [rows; work]
NEAR_ROWS = 2_048


class Part(NamedTuple):
    """Rows that three catalogues are made of, and batches of rows that none of them has."""

    whole: Int[np.ndarray, "row"]
    fewer: Int[np.ndarray, "row"]
    open: Int[np.ndarray, "row"]
    batches: tuple[Int[np.ndarray, "item"], ...]


class LeftOutBatches(NamedTuple):
    """What is left out when, the same for all encoders.

    Attributes
    ----------
    codes : Int[ndarray, "row"]
        Class of each row.
    group_of : Int[ndarray, "row"]
        Rows of one group, copies of one example, are left out together.
    parts : tuple of Part
        One after the other.
    n_present : int
        Classes of a batch.
    """

    codes: Int[np.ndarray, "row"]
    group_of: Int[np.ndarray, "row"]
    parts: tuple[Part, ...]
    n_present: int

    @classmethod
    def draw(
        cls, codes: Int[np.ndarray, "row"], group_of: Int[np.ndarray, "row"], rng: np.random.Generator
    ) -> LeftOutBatches:
        """Draw them; classes are 0, 1, …, and all rows of a group have one class.

        Examples
        --------
        >>> codes = np.repeat(np.arange(6), 4)
        >>> drawn = LeftOutBatches.draw(codes, np.arange(24), np.random.default_rng(0))
        >>> [len(part.whole) for part in drawn.parts], drawn.n_present
        ([14, 16, 18], 2)
        """
        groups, first, of_row = np.unique(group_of, return_index=True, return_inverse=True)
        members = _by_class(codes[first], rng)
        fold_of_group = np.full(len(groups), -1)
        for own in members:
            if len(own) > 1:
                fold_of_group[own] = (np.arange(len(own)) + rng.integers(FOLDS)) % FOLDS
        fold_of = fold_of_group[of_row]
        absent_in = (rng.permutation(len(members)) % FOLDS)[codes]
        n_several = sum(len(own) > 1 for own in members)
        n_present = int(np.clip(round(n_several * PRESENT_SHARE), FEWEST_PRESENT, MOST_PRESENT))
        parts = []
        for fold in range(FOLDS):
            half = np.zeros(len(groups), bool)
            for own in members:
                stay = own[fold_of_group[own] != fold]
                half[stay[: max(1, len(stay) // 2)]] = True
            stays = fold_of != fold
            whole = np.flatnonzero(stays)
            fewer = np.flatnonzero(stays & half[of_row])
            known = np.flatnonzero(stays & (absent_in != fold))
            batches = _batches(np.flatnonzero(~stays), codes, n_present, rng)
            parts.append(Part(whole, fewer, known, batches))
        return cls(codes, group_of, tuple(parts), n_present)


def drawn_rows(codes: Int[np.ndarray, "row"], rng: np.random.Generator) -> Int[np.ndarray, "some"]:
    """Return the rows that take part: all of few classes with few examples, or some of many.

    Classes of which an example can be left out come first, in random order.
    """
    members = _by_class(codes, rng)
    order = sorted(rng.permutation(len(members)).tolist(), key=lambda k: len(members[k]) < 2)
    return np.sort(np.concatenate([members[k][:MOST_EXAMPLES] for k in order[:MOST_CLASSES]]))


def _by_class(of_class: Int[np.ndarray, "some"], rng: np.random.Generator) -> list[Int[np.ndarray, "some"]]:
    """Return the positions of each class, in random order."""
    mixed = rng.permutation(len(of_class))
    ordered = mixed[np.argsort(of_class[mixed], kind="stable")]
    return np.split(ordered, np.bincount(of_class).cumsum()[:-1])


def _batches(
    rows: Int[np.ndarray, "row"], codes: Int[np.ndarray, "row"], n_present: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, "item"], ...]:
    """Take the classes in random order, a few at a time, until there are enough batches; all classes equally often."""
    there = np.unique(codes[rows])
    batches = list[Int[np.ndarray, "item"]]()
    while len(there) and len(batches) < BATCHES_OF_PART:
        order = rng.permutation(there)
        n_batches = max(1, len(order) // n_present)
        for some in np.array_split(order, n_batches):
            own = (rng.permutation(rows[codes[rows] == k])[:MOST_OF_CLASS] for k in some.tolist())
            batches.append(np.sort(np.concatenate(list(own))))
    return tuple(batches)


def together(
    points: Sequence[Float[np.ndarray, "row dim"]],
    codes: Int[np.ndarray, "row"],
    same: Sequence[Int[np.ndarray, "row"]] = (),
) -> Int[np.ndarray, "row"]:
    """Return the group of each row, numbered by its first row: copies of one example, and what is known to be together.

    Two rows of a class are copies if they are nearly equal for at least half of the encoders: a single one may have the
    same vector for different items.

    Parameters
    ----------
    points
        Unit vectors of every encoder.
    codes
        Class of each row.
    same
        Numbers that are equal for rows that belong together, such as those of a sequence.
    """
    n_rows = len(codes)
    pairs = [np.unique(np.sort(near_copies(own, codes), 1), axis=0) for own in points]
    found, times = np.unique(np.concatenate(pairs), axis=0, return_counts=True)
    links = [found[2 * times >= len(points)]]
    for numbers in same:
        _, first, of_row = np.unique(numbers, return_index=True, return_inverse=True)
        links.append(np.stack([np.arange(n_rows), first[of_row]], 1))
    one, other = np.concatenate(links).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(n_rows, n_rows))
    _, component = connected_components(graph, directed=False)
    _, first, of_row = np.unique(component, return_index=True, return_inverse=True)
    return np.asarray(first[of_row], np.int64)


def near_copies(points: Float[np.ndarray, "row dim"], codes: Int[np.ndarray, "row"]) -> Int[np.ndarray, "pair two"]:
    """Return pairs of rows of one class that are much closer than the nearest of a class usually are."""
    pairs = list[npt.NDArray[np.int64]]()
    squares = list[Float[np.ndarray, "pair"]]()
    nearest = list[Float[np.ndarray, "row"]]()
    for k in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == k)
        own = points[rows]
        norms = (own**2).sum(1)
        for at in range(0, len(rows), NEAR_ROWS):
            some = slice(at, at + NEAR_ROWS)
            square = np.maximum(norms[some, None] + norms - 2 * own[some] @ own.T, 0)
            square[np.arange(len(square)), np.arange(at, at + len(square))] = np.inf
            nearest.append(square.min(1))
            close = np.argwhere(square <= NEAR_SHARE * MOST_SQUARE)  # the limit is known in the end
            pairs.append(rows[close + np.array([at, 0])])
            squares.append(square[close[:, 0], close[:, 1]])
    distance = np.concatenate(nearest)
    distance = distance[np.isfinite(distance) & (distance > 0)]
    usual = float(np.median(distance)) if len(distance) else 0.0
    return np.concatenate(pairs)[np.concatenate(squares) <= NEAR_SHARE * usual + ROUNDING]
