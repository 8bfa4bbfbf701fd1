"""Containers of X and y, and tables of answers: arrays, tensors, and frames of pandas, polars and Arrow.

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

from handful.catalogue.labels import objects
from handful.errors import LabelError, MissingExtraError, TaskError
from handful.reading.class_names import plain_labels

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

    def rows(self, rows: Array | None) -> FrameOf:
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
    return X


def _tensor_vectors(X: Any) -> Array:
    """Numbers of a tensor of any device; those that NumPy does not know in single precision."""
    X = X.detach().cpu()
    return np.asarray(X.float() if X.dtype.is_floating_point and X.dtype.itemsize < 4 else X)


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
