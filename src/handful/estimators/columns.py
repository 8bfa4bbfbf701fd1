"""Columns that say something about every row: its group, the pool of that group, its place in an order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.catalogue.labels import distinct
from handful.errors import TaskError
from handful.estimators.containers import values_of
from handful.shapes import Int


def column_of(values: Any, n_items: int, argument: str) -> tuple[npt.NDArray[Any], Int[np.ndarray, "item"]]:
    """Return the distinct values of a column and the place of each item's; several columns make tuples."""
    if hasattr(values, "columns") and hasattr(values, "to_numpy") and getattr(values, "ndim", 2) == 2:
        found = values.to_numpy()
    else:
        several = isinstance(values, (list, tuple)) and any(isinstance(value, list) for value in values)
        found = np.asarray(values_of([tuple(value) for value in values] if several else values))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim == 2:
        tuples = np.empty(len(found), dtype=object)
        tuples[:] = [tuple(row) for row in found.tolist()]
        found = tuples
    if found.ndim != 1 or len(found) != n_items:
        raise TaskError(f"{argument} must have one entry per row of X, {n_items}, got shape {found.shape}")
    if found.dtype.kind in {"f", "O", "m", "M"} and any(value is None or value != value for value in found.tolist()):
        raise TaskError(f"some rows have no value in {argument}; fill in the column or drop these rows")
    return distinct(found)
