"""Classes that differ from batch to batch of a stack: tables [..., class] or [..., item, class], and positions in them.

Leading axes are the batches of a stack, and a single batch has none. All batches of a stack have as many columns as the
one with most; the others are filled up with classes that were not asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.intp]


def where(chosen: npt.NDArray[np.bool_]) -> Places:
    """Return the positions of the chosen classes, in increasing order, and then of some others.

    Examples
    --------
    >>> where(np.array([[False, True, True], [False, False, True]])).tolist()
    [[1, 2], [2, 0]]
    """
    return np.argsort(~chosen, axis=-1, kind="stable")[..., : int(chosen.sum(-1).max())]


def pick(table: npt.NDArray[Any], columns: Places) -> npt.NDArray[Any]:
    """Return some columns of a table, those of each batch."""
    if columns.ndim == 1:
        return np.asarray(table[..., columns])
    return np.take_along_axis(table, _level(table, columns), -1)


def put(table: npt.NDArray[Any], columns: Places, values: npt.NDArray[Any]) -> None:
    """Replace some columns of a table, those of each batch."""
    if columns.ndim == 1:
        table[..., columns] = values
    else:
        np.put_along_axis(table, _level(table, columns), values, -1)


def _level(table: npt.NDArray[Any], columns: Places) -> Places:
    """Give positions the axis of the items, if the table has one."""
    return columns if columns.ndim == table.ndim else columns[..., None, :]
