"""What a catalogue is made of: number and mean of the examples of each class, a sample of the examples, and names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.shapes import Float

# A sample has rows of at least this many classes, if there are as many.
FEWEST_CLASSES = 64


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """Number and mean of the examples of some classes."""

    classes: npt.NDArray[Any]  # in increasing order
    shots: Float[np.ndarray, "class"]
    means: Float[np.ndarray, "class dim"]  # about the catalogue's origin

    def rows(self, kept: npt.NDArray[Any]) -> ClassMeans:
        """Keep some of the classes."""
        return ClassMeans(self.classes[kept], self.shots[kept], self.means[kept])


@dataclass(frozen=True, eq=False)
class ClassNames:
    """Vectors of the names of some classes, or of descriptions: one per class."""

    classes: npt.NDArray[Any]  # in increasing order
    points: Float[np.ndarray, "class dim"]  # transformed

    def rows(self, kept: npt.NDArray[Any]) -> ClassNames:
        """Keep some of the classes."""
        return ClassNames(self.classes[kept], self.points[kept])

    def then(self, other: ClassNames) -> ClassNames:
        """Return these names and the others; of a class that has both, the other."""
        classes = np.concatenate([self.classes, other.classes])
        labels, first = np.unique(classes[::-1], return_index=True)
        return ClassNames(labels, np.concatenate([self.points, other.points])[len(classes) - 1 - first])


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled rows, in the order in which they were given."""

    labels: npt.NDArray[Any]
    points: Float[np.ndarray, "row dim"]  # transformed
    positions: npt.NDArray[np.int64]  # how many examples the catalogue had been given before each

    def rows(self, kept: npt.NDArray[np.bool_]) -> Examples:
        """Keep some of the rows."""
        if kept.all():
            return self
        return Examples(self.labels[kept], self.points[kept], self.positions[kept])

    def then(self, other: Examples) -> Examples:
        """Return these rows and the others after them."""
        return Examples(
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.points, other.points]),
            np.concatenate([self.positions, other.positions]),
        )

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


def merged(parts: tuple[ClassMeans, ...]) -> ClassMeans:
    """Make one part of several; of a class that several have, the last counts."""
    if len(parts) == 1:
        return parts[0]
    classes = np.concatenate([part.classes for part in parts])
    # The last of equal labels comes first when the parts are reversed.
    labels, first = np.unique(classes[::-1], return_index=True)
    places = len(classes) - 1 - first
    shots, means = (np.concatenate([getattr(part, name) for part in parts])[places] for name in ("shots", "means"))
    return ClassMeans(labels, shots, means)


def _rank_in_class(labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many rows of the same label come before each row."""
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return rank


def _hash(label: Any) -> str:
    return hashlib.blake2b(repr(label).encode(), digest_size=8).hexdigest()
