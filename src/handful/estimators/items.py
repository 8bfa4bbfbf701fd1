"""Items of all groups, and what they are compared with: a fitted catalogue, or the scores that they come with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from handful.fitted import FittedModel
from handful.model.answer import JointAnswer
from handful.model.head import LinearHead
from handful.model.knowledge import Knowledge
from handful.model.labelling import KnownBatch, label_batches, label_scores
from handful.model.settings import DEFAULT, Settings
from handful.model.several import label_several
from handful.shapes import Bool, Float, Int

# Rows of a batch, and what is known about it.
KnownRows: TypeAlias = tuple[Int[np.ndarray, "some"], Knowledge]


@dataclass(frozen=True, eq=False)
class ModelItems:
    """Items compared with a fitted catalogue.

    `names` are the labels of the classes that have a name, if those of the catalogue are positions.
    """

    catalogue: FittedModel
    features: Float[np.ndarray, "item dim"]
    names: npt.NDArray[Any] | None = None

    several = False

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes that have a name."""
        return self.catalogue.classes if self.names is None else self.names

    @property
    def head(self) -> LinearHead | None:
        """The head of the catalogue."""
        return self.catalogue.head

    @property
    def settings(self) -> Settings:
        """Numbers of the model."""
        return self.catalogue.settings

    @property
    def unknown_reason(self) -> str | None:
        """Why the catalogue cannot judge unknown items; None if it can."""
        return self.catalogue.unknown_reason

    def equal_classes(self, counts: Float[np.ndarray, "class"]) -> list[tuple[Any, Any, float]]:
        """Return pairs of classes with the same examples, and how many items they have together, from counts."""
        names = self.classes.tolist()
        pairs = [pair for pair in self.catalogue.equal_classes if max(pair) < len(names)]
        return [(names[first], names[copy], float(counts[first] + counts[copy])) for copy, first in pairs]

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Vectors of zeros, where only directions are compared."""
        return np.asarray(~self.features.any(1) & (self.catalogue.transform == "l2"))

    @property
    def vectors(self) -> Float[np.ndarray, "item dim"]:
        """What tells which items are alike: their points."""
        return self.points

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.features)

    @cached_property
    def points(self) -> Float[np.ndarray, "item dim"]:
        """The transformed items: siblings, questions and explanations need them again."""
        return self.catalogue.points(self.features)

    @property
    def alone(self) -> Int[np.ndarray, "item"]:
        """The most probable class of each item under the head."""
        return np.asarray(self.catalogue.head.scores(self.points)[:, : len(self.classes)].argmax(1))

    def rows(self, rows: Int[np.ndarray, "some"] | slice) -> ModelItems:
        """Return some of the items."""
        some = ModelItems(self.catalogue, self.features[rows], self.names)
        if "points" in vars(self):
            vars(some)["points"] = self.points[rows]
        return some

    def label(self, batches: Sequence[KnownRows]) -> Iterator[JointAnswer]:
        """Label batches of some of the items each, those of one size as stacks."""
        some = (self._batch(rows, known) for rows, known in batches)
        if self.catalogue.only_names:
            return (self.catalogue.label_points(batch.points, batch.knowledge) for batch in some)
        if any(known.labels is not None for _, known in batches):
            reference = self.catalogue.reference
            n_unnamed = self.catalogue.n_unnamed
            named = (batch._replace(knowledge=batch.knowledge.with_unnamed(n_unnamed)) for batch in some)
            return (next(label_batches([batch], reference)) for batch in named)
        return label_batches(some, self.catalogue.reference)

    def _batch(self, rows: Int[np.ndarray, "some"], known: Knowledge) -> KnownBatch:
        """Return some of the items; only of a large batch it matters what they were."""
        # Rows are in increasing order, and a copy of all points would take as long as their scores.
        if len(rows) == len(self):
            return KnownBatch(self.points, known, self.features)
        is_large = len(rows) > self.settings.most_anchors
        return KnownBatch(self.points[rows], known, self.features[rows] if is_large else None)


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """Items that come with their scores."""

    nats: Float[np.ndarray, "item class"]  # relative to the best of each item
    best: Float[np.ndarray, "item"]  # in the same unit
    listed: Bool[np.ndarray, "item class"] | None  # None if an item may have any class
    classes: npt.NDArray[Any]
    several: bool

    head = None
    settings = DEFAULT

    @property
    def unknown_reason(self) -> str | None:
        """Only scores of several classes, each by itself, tell that an item has none of them."""
        return None if self.several else "Unknown items cannot be judged by the scores of another model."

    def equal_classes(self, counts: Float[np.ndarray, "class"]) -> list[tuple[Any, Any, float]]:
        """Scores have no examples."""
        del counts
        return []

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Scores need no direction."""
        return np.zeros(len(self), dtype=bool)

    @property
    def vectors(self) -> Float[np.ndarray, "item class"]:
        """What tells which items are alike: the shares of the classes in their scores."""
        return np.asarray(softmax(self.nats, 1))

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.nats)

    @property
    def alone(self) -> Int[np.ndarray, "item"]:
        """The class of the best score."""
        return np.asarray(self.nats.argmax(1))

    def rows(self, rows: Int[np.ndarray, "some"] | slice) -> ScoredItems:
        """Return some of the items."""
        listed = None if self.listed is None else self.listed[rows]
        return replace(self, nats=self.nats[rows], best=self.best[rows], listed=listed)

    def label(self, batches: Sequence[KnownRows]) -> Iterator[JointAnswer]:
        """Label batches of some of the items each; only scores of several classes tell which items are unknown."""
        for rows, known in batches:
            if self.listed is not None:
                known = replace(known, allowed=_listed_and_allowed(self.listed[rows], known)[None])
            nats = self.nats[rows]
            yield label_several(nats, self.best[rows], known) if self.several else label_scores(nats, known)


def _listed_and_allowed(listed: Bool[np.ndarray, "item class"], known: Knowledge) -> Bool[np.ndarray, "item class"]:
    """Classes that the model lists and an item can have; if there is none, all that it can have."""
    if known.allowed is None:
        return listed
    left = listed & known.allowed[0]
    if known.prior is not None:
        left &= known.prior.possible
    return np.asarray(np.where(left.any(1, keepdims=True), left, known.allowed[0]))


ItemsToLabel: TypeAlias = ModelItems | ScoredItems
