"""Arrays of the model: types, some columns of each batch, some rows of a large batch.

Every array about batches has the axes `[batch, item, class]` or some of them, in this order: a single batch is a stack
of one. No entry of the batch axis changes the answer about another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]
ClassColumns = npt.NDArray[np.intp]


def chosen_columns(chosen: Bools) -> ClassColumns:
    """Return the positions of the chosen classes [batch, class] in increasing order, for each batch as many.

    A batch that has fewer than another has some others among them.

    Examples
    --------
    >>> chosen_columns(np.array([[False, True, True], [False, False, True]])).tolist()
    [[1, 2], [0, 2]]
    """
    n_chosen = chosen.sum(-1)
    width = int(n_chosen.max())
    if (n_chosen < width).any():
        # The first positions of a batch hold as many others as it can lack.
        first = slice(0, 2 * width)
        others = ~chosen[:, first]
        chosen = chosen.copy()
        chosen[:, first] |= others & (others.cumsum(-1) <= (width - n_chosen)[:, None])
    return np.asarray(np.nonzero(chosen)[1].reshape(len(chosen), width))


def take_columns(table: npt.NDArray[Any], columns: ClassColumns) -> npt.NDArray[Any]:
    """Return some columns [batch, column] of a table [batch, class] or [batch, item, class]."""
    if len(columns) == 1:
        return np.asarray(table[0].take(columns[0], -1)[None])  # in the order of memory, unlike an index
    return np.asarray(table.ravel().take(_numbers(table, columns)))


def put_columns(table: npt.NDArray[Any], columns: ClassColumns, values: npt.NDArray[Any]) -> None:
    """Replace some columns of a table, those of each batch."""
    if len(columns) == 1:
        table[0][..., columns[0]] = values[0]
    else:
        table.put(_numbers(table, columns), values)


def _numbers(table: npt.NDArray[Any], columns: ClassColumns) -> Ints:
    """Return the numbers of these columns in a table, row after row: taken faster than by an index for each axis."""
    first = np.arange(0, table.size, table.shape[-1]).reshape(*table.shape[:-1], 1)
    return first + (columns if columns.ndim == table.ndim else columns[:, None, :])


def spread_rows(n_rows: int, most: int) -> Ints:
    """Return numbers of rows: one from each of `most` equal parts, at places that look random, or all of them.

    A batch is often sorted, and may have copies. Numbers depend on those of rows and parts alone, so a batch in memory,
    a group and a stream are decided by the same items.

    Examples
    --------
    >>> spread_rows(3, 1024).tolist(), (spread_rows(1000, 4) // 250).tolist()
    ([0, 1, 2], [0, 1, 2, 3])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    ends = np.arange(most + 1) * n_rows // most
    return np.asarray(ends[:-1] + (np.random.default_rng(0).random(most) * np.diff(ends)).astype(np.int64))
