"""What a catalogue is made of: number and mean of the examples of each class, a sample of the examples, and names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from handful.fitted.labels import places_of
from handful.shapes import Float

# A sample has rows of at least this many classes, if there are as many. [classes; convention]
FEWEST_CLASSES = 64
# Classes are drawn in the order of a hash of their label, of this length. [bytes; convention]
HASH_BYTES = 8


class _Table:
    """Columns of equal length."""

    def rows(self, kept: npt.NDArray[Any]) -> Self:
        """Keep some of the rows."""
        return type(self)(*(column[kept] for column in vars(self).values()))


Table = TypeVar("Table", bound=_Table)
PerClass = TypeVar("PerClass", "ClassMeans", "ClassNames")


@dataclass(frozen=True, eq=False)
class ClassMeans(_Table):
    """Number and mean of the examples of some classes."""

    classes: npt.NDArray[Any]  # in increasing order
    shots: Float[np.ndarray, "class"]
    means: Float[np.ndarray, "class dim"]  # about the catalogue's origin

    def plus(self, more: ClassMeans) -> ClassMeans:
        """Add the examples of some classes, known or new."""
        if len(self.classes) == 0:
            return more
        places = places_of(more.classes, self.classes)
        known = places >= 0
        own = places[places >= 0]
        shots = more.shots.copy()
        means = more.means.copy()
        shots[known] += self.shots[own]
        sums = means[known] * more.shots[known, None] + self.means[own] * self.shots[own, None]
        means[known] = sums / np.maximum(shots[known], 1)[:, None]
        return merged(self, ClassMeans(more.classes, shots, means))


@dataclass(frozen=True, eq=False)
class ClassNames(_Table):
    """Vectors of the names of some classes, or of descriptions: one per class."""

    classes: npt.NDArray[Any]  # in increasing order
    points: Float[np.ndarray, "class dim"]  # transformed


@dataclass(frozen=True, eq=False)
class Examples(_Table):
    """Labelled rows, in the order in which they were given."""

    labels: npt.NDArray[Any]
    points: Float[np.ndarray, "row dim"]  # transformed
    positions: npt.NDArray[np.int64]  # how many examples the catalogue had been given before each

    def sample(self, most: int) -> Examples:
        """Keep at most `most` rows: the first ones of large classes, then all that is left of some classes.

        A hash of its label decides which classes are kept.
        """
        if len(self.labels) <= most:
            return self
        # One class says nothing about the scale, however many rows it has: no class may take the room of all others.
        few = self.rows(_rank_in_class(self.labels) < max(2, most // FEWEST_CLASSES))
        classes, codes, counts = np.unique(few.labels, return_inverse=True, return_counts=True)
        order = np.argsort([_hash(label) for label in classes.tolist()], kind="stable")
        chosen = order[np.cumsum(counts[order]) <= most]
        return few.rows(np.isin(codes, chosen))


def joined(*parts: Table) -> Table:
    """Put the rows of several parts one after another."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return parts[0] if len(parts) == 1 else type(parts[0])(*map(np.concatenate, columns))


def merged(first: PerClass, second: PerClass) -> PerClass:
    """Make one part of two; of a class that both have, the second counts."""
    known = places_of(second.classes, first.classes) >= 0
    before = np.searchsorted(first.classes, second.classes[~known])
    columns = [
        np.insert(one.astype(np.result_type(one, other), copy=False), before, other[~known], axis=0)
        for one, other in zip(vars(first).values(), vars(second).values(), strict=True)
    ]
    own = np.searchsorted(columns[0], second.classes[known])
    for column, other in zip(columns[1:], list(vars(second).values())[1:], strict=True):
        column[own] = other[known]
    return type(first)(*columns)


def _rank_in_class(labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many rows of the same label come before each row."""
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return rank


def _hash(label: Any) -> str:
    return hashlib.blake2b(repr(label).encode(), digest_size=HASH_BYTES).hexdigest()
