"""Stacks of groups: those of similar size together, labelled by `handful.inference.open_roll_call`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.inference.open_roll_call import Opened, label_open
from handful.inference.prior import Prior
from handful.methods.roll_call import RollCallOptions
from handful.shapes import Bool, Float, Int

# Scores in one stack, padding included.
STACK_SCORES = 2**22
# In one stack the largest group has at most this many times the items of the smallest, so that padding stays small.
MOST_UNEQUAL = 2


class Stack(NamedTuple):
    """Some groups, labelled together."""

    places: Int[np.ndarray, "task"]  # of the groups
    rows: Int[np.ndarray, "item"]  # of their items, group by group
    there: Bool[Tensor, "task slot"]  # which slots of `found` hold these items
    found: Opened


def stacked(
    catalogue: Catalogue,
    features: Float[Tensor, "item dim"],
    group_of: Int[np.ndarray, "item"],
    options: RollCallOptions,
    prior: Prior | None = None,
) -> Iterator[Stack]:
    """Label every group as one joint batch, a stack of groups at a time; `group_of` counts the groups from zero."""
    order = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of)
    starts = np.cumsum(sizes) - sizes
    for places in _stacks(sizes, np.argsort(sizes, kind="stable"), catalogue.n_classes):
        slots = np.arange(sizes[places].max())
        there = slots < sizes[places][:, None]
        rows = order[np.where(there, starts[places][:, None] + slots, 0)]
        inside = torch.from_numpy(there).to(features.device)
        batches = features[torch.from_numpy(rows).to(features.device)]
        mask = None if there.all() else inside
        known = None if prior is None else prior.rows(torch.from_numpy(places)).to(features.device)
        against = catalogue.against(batches, mask, known)
        found = label_open(against, catalogue.strangers, max_iter=options.max_iter, tol=options.tol)
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
            fits = max(1, STACK_SCORES // (slots * n_classes))
            if stop - start <= fits:
                break
            stop = start + fits
        yield by_size[start:stop]
        start = stop
