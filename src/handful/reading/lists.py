"""Columns of plain values as one table: vectors are a column of lists, one column per dimension, or measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from handful.arguments import counted, some_of
from handful.errors import BankError
from handful.reading.header import (
    FEATURE_NAMES,
    Asked,
    chosen_measurements,
    dimension_columns,
    holds_items,
    is_clear_comma,
    no_rows,
    not_a_number,
    with_point,
)
from handful.reading.measurements import with_measurements
from handful.reading.table import Table


def table_of_lists(columns: Mapping[str, list[Any]], asked: Asked, where: str, **about: Any) -> Table:
    """Make a table from columns of plain values; the vectors are a column of lists, or one column per dimension."""
    n_rows = len(next(iter(columns.values()), ()))
    if not n_rows:
        raise no_rows(where)
    if any(is_clear_comma(value) for values in columns.values() for value in values):
        columns = {name: _with_points(values) for name, values in columns.items()}
    table = Table(where, n_rows, columns=columns, **about)
    if holds_items(list(columns), asked):
        return table
    chosen = _vector_columns(columns, asked.features, where)
    if not chosen:
        named = chosen_measurements(list(columns), asked, lambda name: _has_numbers(columns[name]), where)
        return with_measurements(table, {name: columns[name] for name in named}, _number, asked)
    beside = set(chosen)
    table = replace(table, columns={name: column for name, column in columns.items() if name not in beside})
    rows = columns[chosen[0]]
    if len(chosen) > 1 or not any(isinstance(value, list) for value in rows):
        rows = [list(row) for row in zip(*(columns[name] for name in chosen), strict=True)]
    reasons = {row: _no_vector(v, chosen) for row, v in enumerate(rows) if not _is_vector(v, asked.gaps)}
    reasons |= _of_other_lengths({row: v for row, v in enumerate(rows) if row not in reasons}, chosen[0], where)
    kept = [vector for row, vector in enumerate(rows) if row not in reasons]
    if asked.gaps:
        kept = [[np.nan if _is_gap(value) else value for value in vector] for vector in kept]
    if not kept:
        return table.without(reasons).checked(skip_bad=True)
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        return replace(table.without(reasons), vectors=np.array(kept, np.float32), features=tuple(chosen))


def _of_other_lengths(vectors: Mapping[int, list[Any]], column: str, where: str) -> dict[int, str]:
    """Return the rows whose vectors are shorter or longer than those of most rows, and why they cannot be used."""
    lengths = {row: len(vector) for row, vector in vectors.items()}
    counts = Counter(lengths.values())
    if len(counts) < 2:
        return {}
    usual, n_usual = counts.most_common(1)[0]
    if 2 * n_usual <= len(vectors):
        one, other = (next(row for row, length in lengths.items() if length == each) for each in list(counts)[:2])
        raise BankError(
            f"{where}: vectors of column {column!r} have different lengths, and none is usual: row {one} has "
            f"{lengths[one]:,} numbers, row {other} has {lengths[other]:,}; all must be equally long"
        )
    return {
        row: f"it has {counted(length, 'number')} in {column!r}, and most rows have {usual:,}"
        for row, length in lengths.items()
        if length != usual
    }


def _with_points(values: list[Any]) -> list[Any]:
    """Return a column of numbers with decimal commas as numbers; any other column stays as it is."""
    try:
        numbers = [float(with_point(value)) if isinstance(value, str) and value else value for value in values]
    except ValueError:
        return values
    return numbers if any(map(is_clear_comma, values)) else values


def _is_gap(value: Any) -> bool:
    return value is None or value == ""


def _has_numbers(values: Sequence[Any]) -> bool:
    there = [value for value in values if not _is_gap(value)]
    return bool(there) and all(map(_is_number, there))


def _vector_columns(columns: Mapping[str, list[Any]], asked: str | None, where: str) -> list[str]:
    likely = (asked,) if asked else FEATURE_NAMES
    lists = [name for name in columns if name in likely and any(isinstance(value, list) for value in columns[name])]
    return lists[:1] or dimension_columns(list(columns), asked, where)


def _no_vector(values: Any, columns: Sequence[str]) -> str:
    if isinstance(values, list) and len(values) == len(columns):
        return next(not_a_number(v, name) for v, name in zip(values, columns, strict=True) if not _is_number(v))
    return f"it must have numbers in {some_of(columns)}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _number(value: Any) -> float:
    """Return a number as it is; anything else is a `ValueError`."""
    if not _is_number(value):
        raise ValueError(value)
    return float(value)


def _is_vector(values: Any, gaps: bool) -> bool:
    there = [v for v in values if not (gaps and _is_gap(v))] if isinstance(values, list) else []
    return bool(there) and all(map(_is_number, there))
