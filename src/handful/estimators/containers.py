"""Containers of X, y and other columns, and tables of answers: arrays, tensors, frames of pandas, polars and Arrow.

None of these libraries is imported here, but pandas for a table: a value of theirs can only be passed if they are
already loaded.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from handful.errors import LabelError, MissingExtraError, TaskError
from handful.fitted.labels import distinct, objects
from handful.reading.class_names import is_missing, plain_labels
from handful.shapes import Bool, Int

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class FrameOf:
    """Makes a table of columns, of the kind of the rows given.

    Attributes
    ----------
    family : str
        `pandas`, `polars`, `pyarrow` or `datasets`; pandas for arrays and tensors.
    index : object
        The index of the rows given, if they have one.
    """

    family: str = "pandas"
    index: Any = None

    def __call__(self, columns: dict[str, Array]) -> Any:
        """Return a table of these columns."""
        if self.family == "polars":
            plain = {name: column.tolist() if column.dtype.kind == "O" else column for name, column in columns.items()}
            return sys.modules["polars"].DataFrame(plain)
        if self.family == "pyarrow":
            arrow = sys.modules["pyarrow"]
            return arrow.table({name: arrow.array(column) for name, column in columns.items()})
        if self.family == "datasets":
            plain = {name: column.tolist() for name, column in columns.items()}
            return sys.modules["datasets"].Dataset.from_dict(plain)
        try:
            return importlib.import_module("pandas").DataFrame(columns, index=self.index)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "a table needs the package 'pandas', which is not installed; run: pip install pandas"
            ) from error

    def rows(self, rows: Array | slice | None) -> FrameOf:
        """Return what makes tables of some of the rows; None for tables about something else than rows."""
        if self.index is None:
            return self
        return FrameOf(self.family, None if rows is None else self.index[rows])


new_frame = FrameOf()


def frame_of(X: Any) -> FrameOf:
    """Return what makes tables like X; for a pair `(X, y)`, like X."""
    X = X[0] if isinstance(X, tuple) and len(X) == 2 else X
    family = family_of(X)
    if type(X).__module__.partition(".")[0] == "datasets":
        return FrameOf("datasets")
    return FrameOf(family if family in ("polars", "pyarrow") else "pandas", X.index if family == "pandas" else None)


def family_of(X: Any) -> str:
    """Return the library of the type of X; an empty text for those that are treated as arrays."""
    families = {kind.__module__.partition(".")[0] for kind in type(X).__mro__}
    return next((name for name in VECTORS if name in families), "")


def vectors_of(X: Any) -> Any:
    """Return X as scikit-learn can check it: the matrix inside a frame with a single column of vectors."""
    family = family_of(X)
    return VECTORS[family](X) if family else _unmasked(X)


def labels_of(y: Any) -> Array:
    """Return labels as an array; blanks at either end of text do not count, see `plain_label`."""
    return plain_labels(np.asarray(values_of(y)))


def values_of(y: Any) -> Any:
    """Return values in a form that scikit-learn can check, unchanged."""
    if family_of(y) == "torch":
        return y.detach().cpu().numpy()
    # scikit-learn would turn the nullable integers of pandas into floats.
    y = y.to_numpy() if family_of(y) == "pandas" else _unmasked(y)
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype.kind == "O"):
        if any(isinstance(label, str) and label.endswith("\0") for label in y):
            raise LabelError("a label ends with a NUL character, which NumPy would drop; remove it")
        if any(isinstance(label, tuple) for label in y):  # NumPy would make a table of text of them
            return objects(list(y))
    return y


def _unmasked(X: Any) -> Any:
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise TaskError("a masked array has masked entries, which cannot be used; fill them in or drop these rows")
        return X.data
    return np.asarray(X) if isinstance(X, np.matrix) else X


def _tensor_vectors(X: Any) -> Array:
    """Numbers of a tensor of any device; those that NumPy does not know in single precision."""
    X = X.detach().cpu()
    return np.asarray(
        X.float() if X.dtype.is_floating_point and X.dtype.itemsize < np.dtype(np.float32).itemsize else X
    )


def _pandas_vectors(X: Any) -> Any:
    if X.ndim == 2 and X.shape[1] == 1 and len(X) and isinstance(X.iloc[0, 0], (list, tuple, np.ndarray)):
        return _stacked(list(X.iloc[:, 0]))
    return X


def _polars_vectors(X: Any) -> Any:
    if len(X.shape) == 2 and X.shape[1] == 1 and X.dtypes[0].is_nested():
        return _stacked(list(X.to_series()))
    return X


def _arrow_vectors(X: Any) -> Any:
    table = sys.modules["pyarrow"].Table
    X = X if isinstance(X, table) else table.from_batches([X])  # scikit-learn knows tables
    if X.num_columns == 1 and X.schema.types[0].num_fields == 1:
        return _stacked(X.column(0).to_numpy().tolist())
    return X


def _stacked(vectors: list[Any]) -> Array:
    try:
        return np.stack([np.asarray(vector, dtype=np.float64) for vector in vectors])
    except (TypeError, ValueError) as error:
        raise TaskError(
            f"the vectors in the column must be numbers and have the same length ({error}); drop or fix these rows"
        ) from error


VECTORS: dict[str, Callable[[Any], Any]] = {
    "torch": _tensor_vectors,
    "pandas": _pandas_vectors,
    "polars": _polars_vectors,
    "pyarrow": _arrow_vectors,
}


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


def rows_by_group(group_of: Int[np.ndarray, "item"]) -> list[Int[np.ndarray, "some"]]:
    """Rows of each group; groups are counted from zero."""
    order = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of)
    return np.split(order, np.cumsum(sizes)[:-1])
