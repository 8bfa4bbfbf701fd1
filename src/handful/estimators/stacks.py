"""Stacks of groups: those of similar size together, whatever their items are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.estimators.inference import without_direction
from handful.inference.head import Head
from handful.inference.open_roll_call import Opened
from handful.inference.prior import Prior
from handful.methods.roll_call import RollCallOptions
from handful.shapes import Bool, Float, Int

# Scores in one stack, padding included.
STACK_SCORES = 2**22
# Groups in one stack: each also takes memory of its own, about 90 kB, however few items and classes it has.
MOST_GROUPS = 2**10
# In one stack the largest group has at most this many times the items of the smallest, so that padding stays small.
MOST_UNEQUAL = 2


class GroupedItems(Protocol):
    """Items of all groups, and what they are compared with."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""

    @property
    def head(self) -> Head | None:
        """What the items are compared with; None if they come with their scores."""

    @property
    def several(self) -> bool:
        """Whether an item may hold several classes."""

    @property
    def unknown_reason(self) -> str | None:
        """Why unknown items cannot be judged; None if they can."""

    @property
    def zero(self) -> Bool[Tensor, "item"]:
        """Items without a direction that could be compared."""

    @property
    def device(self) -> torch.device:
        """Where the items are."""

    def __len__(self) -> int:
        """Return the number of items."""

    def label(
        self, rows: Int[Tensor, "task slot"], mask: Bool[Tensor, "task slot"] | None, prior: Prior | None
    ) -> Opened:
        """Label a stack of batches; `rows` are their items, any row where `mask` is False."""


@dataclass(frozen=True, eq=False)
class CatalogueItems:
    """Items compared with a fitted catalogue; `given` is the class of items that have one for certain, else -1."""

    catalogue: Catalogue
    features: Float[Tensor, "item dim"]
    options: RollCallOptions
    given: Int[np.ndarray, "item"] | None = None

    several = False

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes."""
        return self.catalogue.classes

    @property
    def head(self) -> Head | None:
        """The head of the catalogue."""
        return self.catalogue.head

    @property
    def unknown_reason(self) -> str | None:
        """Why the catalogue cannot judge unknown items; None if it can."""
        return self.catalogue.unknown_reason

    @property
    def zero(self) -> Bool[Tensor, "item"]:
        """Vectors of zeros."""
        return without_direction(self.features, self.catalogue.transform)

    @property
    def device(self) -> torch.device:
        """Where the items are."""
        return self.features.device

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.features)

    def label(
        self, rows: Int[Tensor, "task slot"], mask: Bool[Tensor, "task slot"] | None, prior: Prior | None
    ) -> Opened:
        """Label a stack of batches, and look for unknown items."""
        given = None if self.given is None else torch.from_numpy(self.given).to(rows.device)[rows]
        if given is not None and mask is not None:
            given = given.masked_fill(~mask, -1)
        return self.catalogue.labelled(
            self.features[rows], mask, prior, given, max_iter=self.options.max_iter, tol=self.options.tol
        )


class Stack(NamedTuple):
    """Some groups, labelled together."""

    places: Int[np.ndarray, "task"]  # of the groups
    rows: Int[np.ndarray, "item"]  # of their items, group by group
    there: Bool[Tensor, "task slot"]  # which slots of `found` hold these items
    found: Opened


def stacked(items: GroupedItems, group_of: Int[np.ndarray, "item"], prior: Prior | None = None) -> Iterator[Stack]:
    """Label every group as one joint batch, a stack of groups at a time; `group_of` counts the groups from zero."""
    order = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of)
    starts = np.cumsum(sizes) - sizes
    for places in _stacks(sizes, np.argsort(sizes, kind="stable"), len(items.classes)):
        slots = np.arange(sizes[places].max())
        there = slots < sizes[places][:, None]
        rows = order[np.where(there, starts[places][:, None] + slots, 0)]
        inside = torch.from_numpy(there).to(items.device)
        mask = None if there.all() else inside
        known = None if prior is None else prior.rows(torch.from_numpy(places)).to(items.device)
        found = items.label(torch.from_numpy(rows).to(items.device), mask, known)
        yield Stack(places, rows[there], inside, found)


def _stacks(
    sizes: Int[np.ndarray, "group"], by_size: Int[np.ndarray, "group"], n_classes: int
) -> Iterator[Int[np.ndarray, "task"]]:
    """Cut the groups, the smallest first, into stacks of bounded size with little padding."""
    start = 0
    while start < len(by_size):
        most = MOST_UNEQUAL * sizes[by_size[start]]
        stop = start + int(np.searchsorted(sizes[by_size[start:]], most, side="right"))
        while True:
            slots = int(sizes[by_size[stop - 1]])
            fits = max(1, min(MOST_GROUPS, STACK_SCORES // (slots * n_classes)))
            if stop - start <= fits:
                break
            stop = start + fits
        yield by_size[start:stop]
        start = stop
