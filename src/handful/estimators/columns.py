"""Columns that say something about every row: its group, the pool of that group, its place in an order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from handful.catalogue.labels import distinct, objects
from handful.errors import LabelError, TaskError
from handful.estimators.containers import values_of
from handful.reading.class_names import is_missing
from handful.shapes import Bool, Int


def column_of(values: Any, n_items: int, argument: str) -> tuple[npt.NDArray[Any], Int[np.ndarray, "item"]]:
    """Return the distinct values of a column and the place of each item's; several columns make tuples."""
    found = column_values(values, n_items, argument)
    if gaps_in(found).any():
        raise TaskError(f"some rows have no value in {argument}; fill in the column or drop these rows")
    return places_in(found, argument)


def column_values(values: Any, n_items: int, argument: str) -> npt.NDArray[Any]:
    """Return the values of a column, one per item; several columns make tuples."""
    found: npt.NDArray[Any]
    if hasattr(values, "columns") and hasattr(values, "to_numpy") and getattr(values, "ndim", 2) == 2:
        found = values.to_numpy()
    elif isinstance(values, (list, tuple)) and any(isinstance(value, list) for value in values):
        found = np.asarray(values_of([tuple(value) for value in values]))
    elif isinstance(values, (list, tuple)) and len({isinstance(value, str) for value in values}) == 2:
        found = objects(values)
    else:
        found = np.asarray(values_of(values))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim == 2:
        found = objects([tuple(row) for row in found.tolist()])
    if found.ndim != 1 or len(found) != n_items:
        raise TaskError(f"{argument} must have one entry per row of X, {n_items}, got shape {found.shape}")
    return found


def gaps_in(values: npt.NDArray[Any]) -> Bool[np.ndarray, "item"]:
    """Return which items have no value: None, NaN, or a tuple with one of these."""
    if values.dtype.kind not in "fOmM":
        return np.zeros(len(values), bool)
    return np.array([any(map(_is_gap, value if isinstance(value, tuple) else (value,))) for value in values.tolist()])


def _is_gap(value: Any) -> bool:
    return not isinstance(value, str) and is_missing(value)


def places_in(values: npt.NDArray[Any], argument: str) -> tuple[npt.NDArray[Any], Int[np.ndarray, "item"]]:
    """Return the distinct values, in increasing order, and the place of each item's; refuse those of several kinds."""
    try:
        return distinct(values)
    except LabelError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
        raise TaskError(f"{argument} must have values of one kind, such as text or numbers, got {kinds}") from error
