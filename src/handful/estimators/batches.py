"""Batches: the items of every group, labelled jointly one group after the other, whatever they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from handful.catalogue import Catalogue
from handful.engine.head import LinearHead
from handful.engine.model import Context, JointAnswer
from handful.engine.prior import Prior
from handful.estimators.inference import without_direction
from handful.shapes import Bool, Float, Int


class GroupedItems(Protocol):
    """Items of all groups, and what they are compared with."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""

    @property
    def head(self) -> LinearHead | None:
        """What the items are compared with; None if they come with their scores."""

    @property
    def several(self) -> bool:
        """Whether an item may hold several classes."""

    @property
    def unknown_reason(self) -> str | None:
        """Why unknown items cannot be judged; None if they can."""

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Items without a direction that could be compared."""

    def __len__(self) -> int:
        """Return the number of items."""

    def label(self, rows: Int[np.ndarray, "some"], context: Context) -> JointAnswer:
        """Label some of the items as one batch."""


@dataclass(frozen=True, eq=False)
class CatalogueItems:
    """Items compared with a fitted catalogue; `given` is the class of items that have one for certain, else -1."""

    catalogue: Catalogue
    features: Float[Tensor, "item dim"]
    given: Int[np.ndarray, "item"] | None = None

    several = False

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""
        return self.catalogue.classes

    @property
    def head(self) -> LinearHead | None:
        """The head of the catalogue."""
        return self.catalogue.head

    @property
    def unknown_reason(self) -> str | None:
        """Why the catalogue cannot judge unknown items; None if it can."""
        return self.catalogue.unknown_reason

    @property
    def zero(self) -> Bool[np.ndarray, "item"]:
        """Vectors of zeros."""
        return without_direction(self.features, self.catalogue.transform)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.features)

    def label(self, rows: Int[np.ndarray, "some"], context: Context) -> JointAnswer:
        """Label some of the items as one batch, and look for unknown ones."""
        given = None if self.given is None else self.given[rows]
        return self.catalogue.label(
            self.features[rows], Context(context.log_shares, context.concentration, given=given)
        )


def by_group(
    items: GroupedItems, group_of: Int[np.ndarray, "item"], prior: Prior | None = None
) -> Iterator[tuple[int, Int[np.ndarray, "some"], JointAnswer]]:
    """Label every group as one joint batch: yield its place, the rows of its items, and the answer about it.

    `group_of` counts the groups from zero.
    """
    order, sizes = np.argsort(group_of, kind="stable"), np.bincount(group_of)
    for place, rows in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        yield place, rows, items.label(rows, Context.of(prior, place))
