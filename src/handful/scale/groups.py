"""Groups of rows: equal keys are one group, whatever types they have, and a row without a key has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from handful.errors import OptionError, TaskError
from handful.machine.extras import import_extra, import_pyarrow
from handful.reading.header import find_column
from handful.reading.parquet import without_views
from handful.shapes import Int

# Rows after which `complete_groups` ends a table. [rows; work]
ROWS_OF_TABLE = 2**16


def group_columns(group_by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of the group; none if all rows are one."""
    names = () if group_by is None else (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"group_by must name one column or several, each once, got {group_by!r}")
    return names


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of each row: its number, and -1 where a key is missing; and the first row of each group."""

    of_row: Int[np.ndarray, "row"]
    first: Int[np.ndarray, "group"]
    reasons: dict[int, str]  # why rows are in no group

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.first)

    @classmethod
    def of(cls, table: Any, group_by: Sequence[str]) -> RowGroups:
        """Make those of an Arrow table."""
        there = np.ones(len(table), bool)
        codes = np.zeros(len(table), np.int64)
        reasons = dict[int, str]()
        for name in group_by:
            own = _codes(key_column(table, name))
            lost = there & (own < 0)
            reasons |= dict.fromkeys(np.flatnonzero(lost).tolist(), f"it has no {name!r}, and so no group")
            there &= ~lost
            _, codes = np.unique(codes * (int(own.max(initial=0)) + 1) + np.maximum(own, 0), return_inverse=True)
        numbers = np.full(len(table), -1)
        _, first, numbers[there] = np.unique(codes[there], return_index=True, return_inverse=True)
        return cls(numbers, np.flatnonzero(there)[first], reasons)


def key_column(table: Any, name: str) -> Any:
    """Return the values of a key in one piece; NaN is missing, and minus zero is zero."""
    pa, _ = import_pyarrow()
    find_column(table.column_names, name, (), "group", "the table")
    column = table.column(name).combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = without_views(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
    kind = column.type
    if pa.types.is_nested(kind):
        raise TaskError(f"column {name!r} has {kind}; group by numbers, text, dates or booleans")
    if pa.types.is_floating(kind):
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return pa.array(numbers, from_pandas=True)  # NaN is missing
    return column


def _codes(column: Any) -> Int[np.ndarray, "row"]:
    """Return a number for each distinct value, -1 where it is missing."""
    compute = import_extra("pyarrow.compute", "parquet")
    indices = compute.fill_null(column.dictionary_encode().indices, -1)
    return np.asarray(indices.to_numpy(zero_copy_only=False).astype(np.int64))


def complete_groups(batches: Iterable[Any], group_by: str | Sequence[str], rows: int = ROWS_OF_TABLE) -> Iterator[Any]:
    """Yield tables of complete groups from Arrow batches in which the rows of a group come one after the other.

    Parameters
    ----------
    batches : iterable of RecordBatch
        For example, what DuckDB gives for `SELECT … ORDER BY site, day`.
    group_by : str or sequence of str
        The columns of the group.
    rows : int
        A table ends with the first group after so many rows.

    Yields
    ------
    pyarrow.Table
        Complete groups, for `label_table`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"site": list("aaabbccc"), "row": list(range(8))})
    >>> [part["row"].to_pylist() for part in complete_groups(table.to_batches(2), "site", rows=4)]
    [[0, 1, 2, 3, 4], [5, 6, 7]]
    """
    pa, _ = import_pyarrow()
    names = list(group_columns(group_by))
    held: list[Any] = []
    n_held = 0
    last: Any = None
    for batch in batches:
        if not len(batch):
            continue
        while len(batch):
            cut = _end_of_group(batch, names, last, max(rows - n_held, 0))
            held.append(batch.slice(0, cut))
            n_held += cut
            last = batch.slice(cut - 1, 1) if cut else last
            batch = batch.slice(cut)
            if len(batch):
                yield pa.Table.from_batches(held)
                held = []
                n_held = 0
                last = None
    if n_held:
        yield pa.Table.from_batches(held)


def _end_of_group(batch: Any, names: Sequence[str], last: Any, least: int) -> int:
    """Return after how many rows of a batch a group ends that ends after at least so many; all if none does."""
    pa, _ = import_pyarrow()
    columns = [key_column(pa.Table.from_batches([batch]), name) for name in names]
    changes = np.zeros(len(batch), bool)
    for name, column in zip(names, columns, strict=True):
        codes = _codes(column)
        changes[1:] |= codes[1:] != codes[:-1]
        if last is not None:
            before = key_column(pa.Table.from_batches([last]), name)
            changes[0] |= before[0] != column[0]
    starts = np.flatnonzero(changes)
    later = starts[starts >= least]
    return int(later[0]) if len(later) else len(batch)
