"""Tables of measurements, such as height and width: the columns of both sides in one order, each scaled.

Measurements have different units, and rows are compared by their directions: without scaling, the column with the
largest numbers would decide alone. Every column is taken about its mean over the examples, in units of its standard
deviation there. Vectors of a model are not scaled. Before that, missing numbers of any vectors can be filled with the
mean of their column over the examples.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import Provenance
from handful.errors import BankError, OptionError
from handful.fitted import FittedModel
from handful.reading.measurements import COUNTED, is_count
from handful.reading.table import NotMeasured, Table
from handful.shapes import Float


def scaled(
    catalogue: Table | FittedModel | None,
    batch: Table,
    named: Collection[str | None],
    missing: str | None = None,
    features: str | None = None,
) -> dict[str, Any]:
    """Return both tables with measurements scaled by those of the catalogue; other vectors stay as they are.

    A column is a feature if the catalogue has it and its numbers are measurements, see `_not_features`.

    Parameters
    ----------
    catalogue, batch
        What was read.
    named
        Columns that the caller named as something else, such as the labels: they are no measurements.
    missing
        "mean" to fill missing numbers of vectors, measurements or not, with the mean of the examples' column.
    features
        What the caller named as the features: these columns are measurements, whatever they contain.

    Examples
    --------
    >>> both = [Table("a", 3, vectors=np.array([[1.0, 200], [2, 100], [3, 0]]), measured=("m", "cm"))] * 2
    >>> scaled(*both, [])["batch"].vectors.astype(float).round(1).tolist()
    [[-1.2, 1.2], [0.0, 0.0], [1.2, -1.2]]
    """
    if missing is not None and (not isinstance(catalogue, Table) or catalogue.vectors is None or batch.vectors is None):
        raise OptionError(
            "missing numbers are filled with the mean of the examples, so catalogue and batch must be tables of "
            "vectors; leave missing out"
        )
    if not isinstance(catalogue, Table):
        if batch.measured:
            raise BankError(
                f"{batch.where} has measurements in the columns {some_of(batch.measured)}, which are scaled by "
                "examples; give the table of examples as the catalogue"
            )
        return {}
    if not (catalogue.measured or batch.measured):
        return {} if missing is None else _filled_tables(catalogue, batch)
    for one, other in ((catalogue, batch), (batch, catalogue)):
        if one.vectors is None or not one.measured:
            raise BankError(
                f"{other.where} has measurements in the columns {some_of(other.measured)}, and {one.where} has not; "
                "name the features of both"
            )
    of_catalogue = _numbers(catalogue)
    of_batch = _numbers(batch)
    aside = {} if features else _not_features(catalogue, batch)
    numbers = {name: column for name, column in of_catalogue.items() if name not in (*aside, *named)}
    if not numbers:
        raise BankError(f"{catalogue.where} has no column of features; name them with `features` (--features)")
    lacking = [name for name in numbers if name not in of_batch]
    if lacking:
        raise BankError(
            f"{batch.where} has no numbers in the column {lacking[0]!r}, which the catalogue has; it has "
            f"{some_of(batch.measured)}: name the features that both have"
        )
    own = np.stack(list(numbers.values()), axis=1)
    items = np.stack([of_batch[name] for name in numbers], axis=1)
    if missing is not None:
        own, items = _filled(own, items, [f"the column {name!r}" for name in numbers], catalogue.where)
    else:
        _refuse_gaps(catalogue, list(numbers), own)
        _refuse_gaps(batch, list(numbers), items)
    mean = own.mean(0)
    spread = own.std(0)
    spread[spread == 0] = 1
    made_by = Provenance(encoder=f"the columns {some_of(list(numbers))}, each scaled")
    about: dict[str, Any] = {
        "features": tuple(numbers),
        "measured": tuple(numbers),
        "not_measured": aside,
        "provenance": made_by,
    }
    return {
        side: replace(table, vectors=((rows - mean) / spread).astype(np.float32), **about)
        for side, table, rows in (("catalogue", catalogue, own), ("batch", batch, items))
    }


def _not_features(catalogue: Table, batch: Table) -> dict[str, NotMeasured]:
    """Return the columns of numbers that are no measurements, by both tables.

    Running numbers are none if either table counts: the batch may be 1 … n where the catalogue has a few of many
    numbers. So are numbers that are only a count together. Anything else must hold of both tables that have the column:
    that all of three items were measured between 1900 and 2100 does not make them years.
    """
    columns = [_numbers(catalogue), _numbers(batch)]
    found = dict[str, NotMeasured]()
    for name in dict.fromkeys((*columns[0], *columns[1])):
        there = [of_table[name] for of_table in columns if name in of_table]
        tables = [table for table in (catalogue, batch) if name in (*table.measured, *table.not_measured)]
        kinds = [table.not_measured.get(name) for table in tables]
        counts = [one for one in kinds if one is not None and one.kind == COUNTED]
        if counts:
            found[name] = counts[0]
        elif kinds[0] is not None and None not in kinds:
            found[name] = kinds[0]
        elif is_count(np.concatenate(there)):
            found[name] = NotMeasured(COUNTED, there[0])
    return found


def _refuse_gaps(table: Table, names: Sequence[str], rows: Float[np.ndarray, "row dim"]) -> None:
    """Refuse a missing number in a column that this table alone did not take for measurements."""
    gaps = np.argwhere(np.isnan(rows))
    if len(gaps):
        row, column = gaps[0].tolist()
        raise BankError(
            f"{table.where}: {table.row_name(table.rows[row])} has no number in the column {names[column]!r}; fill it "
            "in, name the features without it (--features), or use the mean of the examples (--missing mean)"
        )


def _numbers(table: Table) -> dict[str, Float[np.ndarray, "row"]]:
    """Return all columns of numbers of a table of measurements, in double precision."""
    assert table.vectors is not None
    measured = {name: table.vectors[:, index].astype(np.float64) for index, name in enumerate(table.measured)}
    return measured | {name: one.numbers for name, one in table.not_measured.items()}


def _filled_tables(catalogue: Table, batch: Table) -> dict[str, Any]:
    """Return the tables of which numbers were missing, filled."""
    assert catalogue.vectors is not None
    assert batch.vectors is not None
    own = catalogue.vectors
    items = batch.vectors
    if own.shape[1] != items.shape[1]:
        return {}  # refused later, as for vectors without gaps
    both = _filled(own, items, [f"number {k + 1} of the vectors" for k in range(own.shape[1])], catalogue.where)
    return {
        side: replace(table, vectors=new)
        for side, table, new in zip(("catalogue", "batch"), (catalogue, batch), both, strict=True)
        if new is not table.vectors
    }


def _filled(
    own: Float[np.ndarray, "row dim"], items: Float[np.ndarray, "item dim"], called: Sequence[str], where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return both with missing numbers replaced by the mean of the column of `own`; those without any as they are."""
    gaps = [np.isnan(one) for one in (own, items)]
    columns = np.flatnonzero(gaps[0].any(0) | gaps[1].any(0))
    mean = np.zeros(own.shape[1])
    for k in columns.tolist():
        there = own[~gaps[0][:, k], k]
        if not len(there):
            raise BankError(
                f"{where} has no number at all for {called[k]}, so there is no mean to fill in; leave it out of the "
                "features"
            )
        mean[k] = there.mean(dtype=np.float64)
    new = [
        np.where(gap, mean, one).astype(one.dtype) if gap.any() else one
        for gap, one in zip(gaps, (own, items), strict=True)
    ]
    return new[0], new[1]
