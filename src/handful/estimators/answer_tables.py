"""Answers to read: the most probable classes of every item, tables of items and of classes, and a summary as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from handful.arguments import whole
from handful.errors import OptionError
from handful.machine.untrusted import printable
from handful.shapes import Bool, Float

# Entries of a list, and lines of a table, that a summary has.
MOST_LISTED, MOST_LINES = 10, 20
# If the share of unknown items may be larger than this although none is rejected, that is said. Of batches with nothing
# unknown and five examples per class, 2 of 24 were above it on four banks and 10 of 12 on the two hardest.
UNDECIDED = 0.15


class Top(NamedTuple):
    """The k most probable classes of every item, the most probable first.

    Attributes
    ----------
    labels : ndarray [item, k]
        The classes.
    probabilities : ndarray [item, k]
        Their probabilities.

    Examples
    --------
    >>> labels, probabilities = top_of(np.array([[0.1, 0.7, 0.2]]), np.array(["ant", "bee", "cat"]), 2)
    >>> labels.tolist(), probabilities.tolist()
    ([['bee', 'cat']], [[0.7, 0.2]])
    """

    labels: npt.NDArray[Any]
    probabilities: Float[np.ndarray, "item k"]


def top_of(table: Float[np.ndarray, "item class"], classes: npt.NDArray[Any], k: int) -> Top:
    """Return the k most probable classes of every item, or all if there are fewer; of equal ones the first."""
    k = min(whole("k", k, least=1, error=OptionError), table.shape[1])
    some = np.sort(np.argpartition(-table, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(table, some, 1), axis=1, kind="stable")
    best = np.take_along_axis(some, order, 1)
    return Top(classes[best], np.take_along_axis(table, best, 1))


def undecided(high: float) -> str:
    """Say that many items may be unknown although none is rejected: up to the share `high`; empty if that is small."""
    if high < UNDECIDED:
        return ""
    return f"Up to {high:.0%} of the items may be like none of the classes; this batch does not tell."


def are_doubtful(first: Float[np.ndarray, "item"], second: Float[np.ndarray, "item"]) -> Bool[np.ndarray, "item"]:
    """`p₁ < (1 + p₂) / 2`, for the probabilities of the most probable class and of the next."""
    doubtful: Bool[np.ndarray, "item"] = first < 0.5 + 0.5 * second
    return doubtful


def as_array(values: Any) -> npt.NDArray[Any]:
    """Return the numbers of any container of answers."""
    return np.asarray(values.cpu() if isinstance(values, Tensor) else values)


def columns_of_items(
    table: Float[np.ndarray, "item class"],
    classes: npt.NDArray[Any],
    unknown: Float[np.ndarray, "item"],
    rejected: Bool[np.ndarray, "item"],
) -> dict[str, npt.NDArray[Any]]:
    """Return one entry per item in each column; with a single class there is no runner-up."""
    best = top_of(table, classes, 2)
    first = best.probabilities[:, 0]
    nobody = np.full(len(table), None, dtype=object), np.zeros(len(table))
    runner_up, second = (best.labels[:, 1], best.probabilities[:, 1]) if best.labels.shape[1] == 2 else nobody
    return {
        "label": best.labels[:, 0],
        "probability": first,
        "runner_up": runner_up,
        "runner_up_probability": second,
        "doubtful": are_doubtful(first, second) & ~rejected,
        "unknown": unknown,
        "rejected": rejected,
    }


def listed(values: Sequence[Any] | npt.NDArray[Any]) -> str:
    """Write the first values, and how many more there are."""
    more = len(values) - MOST_LISTED
    return ", ".join(map(str, values[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def counted(n: int, one: str, many: str) -> str:
    """`1 item`, `2 items`."""
    return f"{n:,} {one if n == 1 else many}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows in columns, the first to the left, numbers to the right; every row stays one line."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
