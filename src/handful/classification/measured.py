"""Tables of measurements, such as height and width: the columns of both sides in one order, each scaled.

Measurements have different units, and rows are compared by their directions: without scaling, the column with the
largest numbers would decide alone. Every column is taken about its mean over the examples, in units of its standard
deviation there. Vectors of a model are not scaled.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import Provenance
from handful.catalogue import Catalogue
from handful.errors import BankError
from handful.reading.table import Table


def scaled(catalogue: Table | Catalogue | None, batch: Table, named: Collection[str | None]) -> dict[str, Any]:
    """Return both tables with measurements scaled by those of the catalogue; other vectors stay as they are.

    Parameters
    ----------
    catalogue, batch
        What was read.
    named
        Columns that the caller named as something else, such as the labels: they are no measurements.

    Examples
    --------
    >>> both = [Table("a", 3, vectors=np.array([[1.0, 200], [2, 100], [3, 0]]), measured=("m", "cm"))] * 2
    >>> scaled(*both, [])["batch"].vectors.astype(float).round(1).tolist()
    [[-1.2, 1.2], [0.0, 0.0], [1.2, -1.2]]
    """
    if not isinstance(catalogue, Table):
        if batch.measured:
            raise BankError(
                f"{batch.where} has measurements in the columns {some_of(batch.measured)}, which are scaled by "
                "examples; give the table of examples as the catalogue"
            )
        return {}
    if not (catalogue.measured or batch.measured):
        return {}
    for one, other in ((catalogue, batch), (batch, catalogue)):
        if one.vectors is None or not one.measured:
            raise BankError(
                f"{other.where} has measurements in the columns {some_of(other.measured)}, and {one.where} has not; "
                "name the features of both"
            )
    catalogue, batch = _without(catalogue, named), _without(batch, named)
    indices = {name: index for index, name in enumerate(batch.measured)}
    missing = [name for name in catalogue.measured if name not in indices]
    if missing:
        raise BankError(
            f"{batch.where} has no numbers in the column {missing[0]!r}, which the catalogue has; it has "
            f"{some_of(batch.measured)}: name the features that both have"
        )
    assert catalogue.vectors is not None
    assert batch.vectors is not None
    own = catalogue.vectors.astype(np.float64)
    items = batch.vectors.astype(np.float64)[:, [indices[name] for name in catalogue.measured]]
    mean, spread = own.mean(0), own.std(0)
    spread[spread == 0] = 1
    made_by = Provenance(backbone=f"the columns {some_of(catalogue.measured)}, each scaled")
    return {
        side: replace(table, vectors=((rows - mean) / spread).astype(np.float32), provenance=made_by)
        for side, table, rows in (("catalogue", catalogue, own), ("batch", batch, items))
    }


def _without(table: Table, named: Collection[str | None]) -> Table:
    """Return a table in which the named columns are no measurements."""
    assert table.vectors is not None
    kept = [index for index, name in enumerate(table.measured) if name not in named]
    columns = {
        name: [int(v) if float(v).is_integer() else float(v) for v in table.vectors[:, index]]
        for index, name in enumerate(table.measured)
        if name in named
    }
    if not kept:
        raise BankError(f"{table.where} has no column of features; name them with `features` (--features)")
    return replace(
        table,
        vectors=table.vectors[:, kept],
        measured=tuple(table.measured[index] for index in kept),
        columns={**table.columns, **columns},
    )
