"""Where the items of batches lie, beside what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from handful.model.arrays import Floats, Ints
from handful.model.content import spread_by_content
from handful.model.links import Anchors, Compared, find_copies
from handful.model.reference import Reference


@dataclass(frozen=True, eq=False)
class Vectors:
    """Items [batch, item, dim] about the origin of the head, what they are compared with, and what they were.

    `contents` [item, number] are the items of a single batch as they came; None if these are the points.
    """

    points: Floats
    reference: Reference
    contents: Floats | None = None

    def rows(self, rows: Ints | slice) -> Vectors:
        """Return some of the items."""
        contents = None if self.contents is None else self.contents[rows]
        return Vectors(self.points[:, rows], self.reference, contents)

    @property
    def own(self) -> Floats:
        """What tells the items of a single batch apart."""
        return self.points[0] if self.contents is None else self.contents

    @cached_property
    def spread(self) -> Floats:
        """V [batch]; if the catalogue cannot tell, half the mean squared distance of an item from its nearest mean."""
        head = self.reference.head
        if head.spread is not None:
            return np.full(len(self.points), head.spread)
        nearest = ((head.means**2).sum(1) - 2 * self.points @ head.means.T).min(-1)
        return np.asarray(((self.points**2).sum(-1) + nearest).mean(-1) / 2)

    @cached_property
    def copy_of(self) -> npt.NDArray[np.intp]:
        """The first item that is equal to each, [batch, item]."""
        first, _ = find_copies(self.points)
        return first

    @cached_property
    def anchor_rows(self) -> Ints:
        """Numbers of the items that are anchors; a batch with more items is alone."""
        most = self.reference.settings.most_anchors
        n_batches, n_items, _ = self.points.shape
        if n_items <= most:
            return np.arange(n_items)
        assert n_batches == 1
        return spread_by_content(self.own, most)

    @cached_property
    def anchors(self) -> Anchors:
        """Items that all others are linked with."""
        reference = self.reference
        assert reference.unknown_model is not None
        rows = self.anchor_rows
        some = slice(None) if len(rows) == self.points.shape[1] else rows  # a copy of all would take longer
        copy_of = self.copy_of[:, some]
        pair_odds = reference.unknown_model.pair_odds
        n_items = self.points.shape[1]
        return Anchors.of(self.points[:, some], reference.centre, pair_odds, copy_of, reference.settings, n_items)

    @cached_property
    def compared(self) -> Compared:
        """All items beside the anchors; they are linked twice, before the means move and after."""
        rows = self.anchor_rows
        return self.anchors.compare(self.points, rows, np.arange(len(rows)))

    def without(self, offset: Floats) -> Floats:
        """Return items without the offset [batch, dim] of their batch, [batch, item, dim]."""
        return np.asarray(self.points - offset[:, None]) if offset.any() else self.points
