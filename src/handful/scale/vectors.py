"""Vectors of an Arrow table, and why some rows have none that a model can label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import TaskError
from handful.fitted import FittedModel
from handful.fitted.rows import size_limits
from handful.machine.extras import import_pyarrow
from handful.reading.header import FEATURE_NAMES, find_column
from handful.reading.parquet import is_list, is_number, vector_column
from handful.shapes import Float

NO_VECTOR = "it has no vector"
NO_NUMBER = "its vector has missing numbers"
NOT_FINITE = "its vector has NaN or infinity"
TOO_LARGE = "the numbers of its vector are too large to be squared"
TOO_SMALL = "the numbers of its vector are too small to be squared"


class RowVectors(NamedTuple):
    """Vectors of rows, zero for those that cannot be labelled, and why these cannot be, by their numbers."""

    matrix: Float[np.ndarray, "row dim"]
    reasons: dict[int, str]


def feature_columns(schema: Any, asked: str | Sequence[str] | None, fitted: FittedModel) -> tuple[str, ...]:
    """Return the columns of the vectors: one of lists, or one of numbers for each dimension."""
    pa, _ = import_pyarrow()
    where = "the table"
    if asked is None or isinstance(asked, str):
        found = vector_column(pa, schema, where) if asked is None else asked
        name = find_column(schema.names, found, FEATURE_NAMES, "features", where)
        kind = schema.field(name).type
        if not (is_list(pa, kind) and is_number(pa, kind.value_type)):
            raise TaskError(f"column {name!r} has {kind}, and vectors are lists of numbers; name another column")
        return (name,)
    names = tuple(asked)
    for name in names:
        find_column(schema.names, name, (), "features", where)
        if not is_number(pa, schema.field(name).type):
            raise TaskError(f"column {name!r} has {schema.field(name).type}, and features are numbers; leave it out")
    if len(names) != fitted.dim:
        raise TaskError(f"features names {len(names)} columns, and the vectors of the model have {fitted.dim} numbers")
    return names


def read_vectors(table: Any, columns: Sequence[str], fitted: FittedModel) -> RowVectors:
    """Return the vectors of all rows in single precision."""
    pa, _ = import_pyarrow()
    matrix = np.zeros((len(table), fitted.dim), np.float32)
    reasons = dict[int, str]()
    start = 0
    for batch in table.select(columns).to_batches():
        rows = matrix[start : start + len(batch)]
        is_lists = len(columns) == 1 and is_list(pa, batch.schema.field(0).type)
        lost = _of_lists(batch.column(0), rows) if is_lists else _of_numbers(batch, rows)
        reasons |= {start + row: reason for row, reason in lost.items()}
        start += len(batch)
    least, most = size_limits(fitted.transform, fitted.origin.dtype)
    sizes = np.maximum(matrix.max(1, initial=0), -matrix.min(1, initial=0)).astype(np.float64)
    for row in np.flatnonzero(~((sizes == 0) | ((sizes >= least) & (sizes <= most)))).tolist():
        reasons[row] = NOT_FINITE if not np.isfinite(sizes[row]) else TOO_LARGE if sizes[row] > most else TOO_SMALL
        matrix[row] = 0
    return RowVectors(matrix, reasons)


def _of_lists(column: Any, matrix: npt.NDArray[np.float32]) -> dict[int, str]:
    """Read a column of lists; return why rows have none that the model could label."""
    pa, _ = import_pyarrow()
    n_rows, dim = matrix.shape
    there = np.asarray(column.is_valid())
    reasons = dict.fromkeys(np.flatnonzero(~there).tolist(), NO_VECTOR)
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        lengths = np.full(n_rows, size)
        starts = (column.offset + np.arange(n_rows)) * size
    else:
        offsets = np.asarray(column.offsets).astype(np.int64)
        lengths = np.diff(offsets)
        starts = offsets[:-1]
    fit = there & (lengths == dim)
    for row in np.flatnonzero(there & ~fit).tolist():
        reasons[row] = f"its vector has {lengths[row]:,} numbers, and those of the model have {dim:,}"
    rows = np.flatnonzero(fit)
    if not len(rows):
        return reasons
    first = int(starts[rows[0]])
    flat = column.values.slice(first, int(starts[rows[-1]]) + dim - first)
    with np.errstate(over="ignore"):  # what is not finite has a reason
        numbers = flat.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    if len(numbers) == n_rows * dim:
        matrix[:] = numbers.reshape(n_rows, dim)
    else:
        matrix[rows] = numbers[(starts[rows] - first)[:, None] + np.arange(dim)]
    if flat.null_count:
        missing = np.asarray(flat.is_null())[(starts[rows] - first)[:, None] + np.arange(dim)].any(1)
        reasons |= dict.fromkeys(rows[missing].tolist(), NO_NUMBER)
        matrix[rows[missing]] = 0
    return reasons


def _of_numbers(batch: Any, matrix: npt.NDArray[np.float32]) -> dict[int, str]:
    """Read one column for each dimension; return why rows have none that the model could label."""
    lost = np.zeros(len(batch), bool)
    for place, column in enumerate(batch.columns):
        with np.errstate(over="ignore"):
            matrix[:, place] = column.fill_null(0).to_numpy(zero_copy_only=False)
        if column.null_count:
            lost |= np.asarray(column.is_null())
    matrix[lost] = 0
    return dict.fromkeys(np.flatnonzero(lost).tolist(), NO_NUMBER)
