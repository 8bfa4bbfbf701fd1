"""Vectors that were given: numbers of a model, or measurements, which are kept raw and scaled when they are labelled.

Measurements have units, so what one column of them says depends on the others' spread. That spread is of the examples,
and these grow; so the catalogue keeps what was measured. The first batch of a catalogue says which columns are
measurements and in which order; later ones must have them. Where a measurement is missing, the vector has a zero and
the columns of the item have no such name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.arguments import some_of
from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import GIVEN
from handful.errors import BankError, OptionError
from handful.reading.table import Table
from handful.shapes import Float

FEATURES = "features"


class GivenNumbers(NamedTuple):
    """Vectors in single precision, NaN where a measurement is missing; and the columns that they were measured in."""

    vectors: Float[np.ndarray, "item dim"]
    features: tuple[str, ...]


def given_numbers(table: Table, measured: Sequence[str], *, filled: bool) -> GivenNumbers:
    """Return the vectors of a table; measurements in the order of `measured`, if a catalogue has some.

    With `filled`, a missing number of vectors of a model is the mean of its column.

    Examples
    --------
    >>> table = Table("a table", 2, vectors=np.array([[1.0, 20], [2, 10]]), measured=("m", "cm"))
    >>> given_numbers(table, ("cm", "m"), filled=False).vectors.tolist()
    [[20.0, 1.0], [10.0, 2.0]]
    """
    assert table.vectors is not None
    if measured and not table.measured:
        raise BankError(
            f"the catalogue has measurements in the columns {some_of(list(measured))}, and {table.where} has none; "
            "name the features"
        )
    if table.measured:
        columns = {name: table.vectors[:, k] for k, name in enumerate(table.measured)}
        columns |= {name: one.numbers for name, one in table.not_measured.items()}
        names = tuple(measured) or table.measured
        lacking = [name for name in names if name not in columns]
        if lacking:
            raise BankError(
                f"{table.where} has no numbers in the column {lacking[0]!r}, which the catalogue has; it has "
                f"{some_of(table.measured)}"
            )
        return GivenNumbers(_single(np.stack([columns[name] for name in names], axis=1), table.where), names)
    vectors = _single(table.vectors, table.where)
    if filled:
        gaps = np.isnan(vectors)
        there = np.where(gaps, 0, vectors).sum(0, dtype=np.float64) / np.maximum((~gaps).sum(0), 1)
        vectors = np.where(gaps, there, vectors).astype("<f4")
    return GivenNumbers(vectors, ())


def _single(numbers: Float[np.ndarray, "item dim"], where: str) -> Float[np.ndarray, "item dim"]:
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(numbers, "<f4")
    if np.isinf(vectors).any():
        raise BankError(f"{where} has a number that single precision cannot hold; divide that column")
    return vectors


def measured_in(catalogue: CatalogueFile) -> tuple[str, ...]:
    """Return the columns of measurements of a catalogue, in their order; none if it has no measurements."""
    for event in catalogue.history.events:
        if event.kind == "arrived" and event.about.get(FEATURES):
            return tuple(event.about[FEATURES])
    return ()


def measurements_of(catalogue: CatalogueFile, items: Sequence[int]) -> Table:
    """Return measurements of items as a table, as it was read, which is scaled by that of the examples.

    Parameters
    ----------
    catalogue
        The catalogue.
    items
        Numbers of items.

    Examples
    --------
    >>> from handful.items import bring
    >>> catalogue = CatalogueFile.open()
    >>> _ = bring(catalogue, "monday", {"height": [1.5, 2.5, None], "width": [10.5, 20.5, 7.5]}, missing="mean")
    >>> measurements_of(catalogue, [3, 1]).vectors.tolist()
    [[nan, 7.5], [1.5, 10.5]]
    """
    names = measured_in(catalogue)
    if not names:
        raise OptionError("this catalogue has no measurements; its vectors are compared as they are")
    rows = catalogue.rows(items)
    kept = catalogue.vectors(GIVEN, [row.content for row in rows])
    vectors = np.stack([kept[row.content] for row in rows]) if rows else np.empty((0, len(names)), np.float32)
    for vector, row in zip(vectors, rows, strict=True):
        vector[[name not in (row.columns or {}) for name in names]] = np.nan
    columns = {name: vectors[:, k] for k, name in enumerate(names)}
    return Table("the catalogue", len(rows), vectors=vectors, columns=columns, features=names, measured=names)
