"""Which classes count as present in a batch, and which ones tables list."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.model.limits import LEAST_LISTED
from handful.shapes import Float, Int

# A class is present if its chance of being present is at least this. [chance; convention]
PRESENT = 0.5


def presence_or_labels(
    presence: npt.NDArray[np.floating[Any]], codes: Int[np.ndarray, "item two"]
) -> npt.NDArray[np.floating[Any]]:
    """Return the chances of presence; where a method does not tell them, one for every class that is a label.

    Examples
    --------
    >>> presence_or_labels(np.full(3, np.nan), np.array([[2, 0], [2, 1]])).tolist()
    [0.0, 0.0, 1.0]
    """
    if not np.isnan(presence).any():
        return presence
    return np.asarray(np.bincount(codes[:, 0], minlength=presence.shape[-1]) > 0, np.float64)


def present_places(
    counts: npt.NDArray[np.floating[Any]], presence: npt.NDArray[np.floating[Any]]
) -> Int[np.ndarray, "place"]:
    """Return the places of the classes that are more likely present than not, those with most items first.

    `counts` and `presence` are of a batch, [class], or of its groups, [group, class]; then in any of them.
    """
    order = np.argsort(-np.atleast_2d(counts).sum(0), kind="stable")
    return np.asarray(order[np.atleast_2d(presence).max(0)[order] >= PRESENT])


def listed_classes(
    counts: Float[np.ndarray, "group class"], presence: Float[np.ndarray, "group class"]
) -> tuple[Int[np.ndarray, "row"], Int[np.ndarray, "row"]]:
    """Return group and class of what tables list: chances of at least 0.02, and always the class with most items."""
    listed = presence >= LEAST_LISTED
    if counts.shape[-1]:  # before the first name there is no class
        listed[np.arange(len(counts)), counts.argmax(-1)] = True
    place, code = np.nonzero(listed)
    order = np.lexsort((-counts[place, code], place))
    return place[order], code[order]
