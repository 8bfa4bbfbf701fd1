"""Candidates of a spectrum: the compounds of the library whose precursor is as heavy as its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from handful.errors import OptionError
from handful.fields.spectra.read import PRECURSOR
from handful.machine.untrusted import finite
from handful.reading.class_names import is_missing, plain_label
from handful.reading.labels import label_column
from handful.reading.table import Columns, Table


def by_precursor(
    library: Table, labels: str | None, columns: Mapping[str, Any], tolerance: float
) -> list[list[str] | None]:
    """Return the classes of the library that have a precursor within `tolerance` of that of each item; None means all.

    A list is empty if no class has one. Items whose precursor is not known can have any class.
    """
    if not 0 < tolerance < math.inf:
        raise OptionError(f"the tolerance of precursors must be a positive mass in Da, got {tolerance}")
    for where, there in ((f"the library {library.where}", library.columns), ("the batch", columns)):
        if PRECURSOR not in there:
            raise OptionError(f"{where} has no column {PRECURSOR!r}; leave the tolerance of precursors out")
    column = label_column(library, labels)
    classes = library.classes if not column else library.values(column)
    rows = zip(classes, _masses(library.columns), strict=True)
    listed = [
        (mass, str(plain_label(name)))
        for name, mass in rows
        if mass is not None and not is_missing(name, library.no_label)
    ]
    listed.sort()
    masses = np.array([mass for mass, _ in listed])
    names = [name for _, name in listed]

    def near(mass: float | None) -> list[str] | None:
        if mass is None:
            return None
        first, last = np.searchsorted(masses, (mass - tolerance, mass + tolerance), side="left")
        return sorted(set(names[first:last]))

    return [near(mass) for mass in _masses(columns)]


def _masses(columns: Mapping[str, Any]) -> list[float | None]:
    values: Sequence[Any] = Columns({PRECURSOR: columns[PRECURSOR]}).values()[PRECURSOR]
    found = list[float | None]()
    for value in values:
        try:
            mass = finite(value)
        except ValueError:
            mass = 0.0
        found.append(mass if mass > 0 else None)
    return found
