"""Groups of rows: equal keys are one group, whatever types they have, and a row without a key has none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import OptionError, TaskError
from handful.machine.extras import import_extra, import_pyarrow
from handful.reading.header import find_column
from handful.reading.parquet import without_views
from handful.shapes import Int

# Rows after which `complete_groups` ends a table. [rows; work]
ROWS_OF_TABLE = 2**16
# Bytes of a hash of a group. [bytes; convention]
HASH_BYTES = 8
# The hash of rows without a group. [hash; convention]
NO_GROUP = np.uint64(0)


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
        A table ends with a group, after at least this many rows and at most about twice as many, or after one group.

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
    names = group_columns(group_by)
    held: list[Any] = []
    n_held = 0
    for batch in (whole.slice(at, rows) for whole in batches for at in range(0, len(whole), rows)):
        before = [one.slice(len(one) - 1) for one in held[-1:]]
        of_row = RowGroups.of(pa.Table.from_batches([*before, batch]), names).of_row
        others = np.flatnonzero(of_row != of_row[-1])
        start = int(others[-1]) + 1 - len(before) if len(others) else -1  # of the last group, which may go on
        if start >= 0 and n_held + start >= rows:
            yield pa.Table.from_batches([*held, batch.slice(0, start)])
            held = []
            n_held = 0
            batch = batch.slice(start)
        held.append(batch)
        n_held += len(batch)
    if n_held:
        yield pa.Table.from_batches(held)


def group_hashes(table: Any, group_by: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return a hash of the group of each row, `NO_GROUP` for rows without one; equal in every file and process."""
    groups = RowGroups.of(table, group_by)
    keys = [_texts(key_column(table, name).take(groups.first)) for name in group_by]
    digests = (hashlib.blake2b(repr(of).encode(), digest_size=HASH_BYTES) for of in zip(*keys, strict=True))
    hashes = np.fromiter((int.from_bytes(one.digest(), "little") for one in digests), np.uint64, len(groups))
    # Rows without a group are number -1, the last.
    return np.asarray(np.append(np.maximum(hashes, NO_GROUP + np.uint64(1)), NO_GROUP)[groups.of_row])


def _texts(values: Any) -> list[bytes]:
    """Return keys as bytes that do not depend on the type in which a file has them."""
    pa, _ = import_pyarrow()
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ns", values.type.tz)).cast(pa.int64())
    keys = values.to_pylist()
    if pa.types.is_floating(values.type):
        keys = [int(one) if one.is_integer() else one for one in keys]
    return [one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogatepass") for one in keys]
