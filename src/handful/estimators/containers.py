"""Containers of X, y and answers: arrays, tensors, and frames of pandas, polars and Arrow.

None of these libraries is imported here: a value of theirs can only be passed if they are already loaded.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from handful.errors import LabelError, MissingExtraError, TaskError

Array: TypeAlias = npt.NDArray[Any]
# A dataclass with the fields labels, unknown and probabilities.
Answer = TypeVar("Answer", bound=Any)


@dataclass(frozen=True)
class Container:
    """How to take vectors out of one kind of container, and how to return an answer in it.

    Attributes
    ----------
    vectors : callable
        `X -> X`, or the matrix inside where X is a frame with a single column of equally long vectors.
    labels : callable
        `(X, labels [row]) -> ` the same labels beside the rows of X.
    probabilities : callable
        `(X, probabilities [row, class], classes [class]) -> ` the same table beside the rows of X.
    numbers : callable
        `(X, numbers [row], name) -> ` the same numbers beside the rows of X.
    frame : callable
        `(columns, like) -> ` a table of these columns; with pandas, it has the index of `like`, unless that is None.
    rows : callable
        `(answer, rows) -> ` some rows of labels, probabilities or numbers.
    """

    vectors: Callable[[Any], Any]
    labels: Callable[[Any, Array], Any]
    probabilities: Callable[[Any, Tensor, Array], Any]
    numbers: Callable[[Any, Array, str], Any]
    frame: Callable[[dict[str, Array], Any], Any]
    rows: Callable[[Any, Array], Any] = lambda answer, rows: answer[rows]


def container_of(X: Any) -> Container:
    """Return the container for the type of X; unknown types are treated as arrays."""
    families = {kind.__module__.partition(".")[0] for kind in type(X).__mro__}
    return next((known for name, known in CONTAINERS.items() if name in families), ARRAYS)


def beside(X: Any, found: Answer, classes: Array) -> Answer:
    """Return an answer with labels, probabilities and chances of unknown items in the container of X."""
    container = container_of(X)
    return replace(
        found,
        labels=container.labels(X, found.labels),
        unknown=container.numbers(X, found.unknown, "unknown"),
        probabilities=container.probabilities(X, found.probabilities, classes),
    )


def labels_of(y: Any) -> Any:
    """Return labels in a form that scikit-learn can check, with unchanged values."""
    if isinstance(y, Tensor):
        return y.detach().cpu().numpy()
    # scikit-learn would turn the nullable integers of pandas into floats.
    y = y.to_numpy() if container_of(y) is CONTAINERS["pandas"] else _unmasked(y)
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype.kind == "O"):
        if any(isinstance(label, str) and label.endswith("\0") for label in y):
            raise LabelError("a label ends with a NUL character, which NumPy would drop; remove it")
        if any(isinstance(label, tuple) for label in y):  # NumPy would make a table of text of them
            labels = np.empty(len(y), dtype=object)
            labels[:] = list(y)
            return labels
    return y


def _unmasked(X: Any) -> Any:
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise TaskError("a masked array has masked entries, which cannot be used; fill them in or drop these rows")
        return X.data
    return X


def _as_array(probabilities: Tensor) -> Array:
    return probabilities.cpu().numpy()


def _names(classes: Array) -> list[str]:
    return [str(name) for name in classes.tolist()]


def _tensor_labels(X: Tensor, labels: Array) -> Any:
    """Numbers as a tensor on the device of X; names, which a tensor cannot hold, as an array."""
    return torch.from_numpy(labels).to(X.device) if labels.dtype.kind in "biuf" else labels


def _pandas_vectors(X: Any) -> Any:
    if X.ndim == 2 and X.shape[1] == 1 and len(X) and isinstance(X.iloc[0, 0], (list, tuple, np.ndarray)):
        return _stacked(list(X.iloc[:, 0]))
    return X


def _polars_vectors(X: Any) -> Any:
    if X.shape[1] == 1 and X.dtypes[0].is_nested():
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
            f"the vectors in the column must hold numbers and be equally long ({error}); drop or fix these rows"
        ) from error


def _pandas_labels(X: Any, labels: Array) -> Any:
    return sys.modules["pandas"].Series(labels, index=X.index, name="label")


def _pandas_probabilities(X: Any, probabilities: Tensor, classes: Array) -> Any:
    return sys.modules["pandas"].DataFrame(_as_array(probabilities), index=X.index, columns=classes)


def _new_pandas_frame(columns: dict[str, Array], like: Any) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "a table needs the package 'pandas', which is not installed; run: pip install pandas"
        ) from error
    return pandas.DataFrame(columns)


def _pandas_frame(columns: dict[str, Array], like: Any) -> Any:
    return sys.modules["pandas"].DataFrame(columns, index=None if like is None else like.index)


def _polars_frame(columns: dict[str, Array], like: Any) -> Any:
    plain = {name: column.tolist() if column.dtype.kind == "O" else column for name, column in columns.items()}
    return sys.modules["polars"].DataFrame(plain)


def _arrow_frame(columns: dict[str, Array], like: Any) -> Any:
    arrow = sys.modules["pyarrow"]
    return arrow.table({name: arrow.array(column) for name, column in columns.items()})


def _polars_labels(X: Any, labels: Array) -> Any:
    return sys.modules["polars"].Series("label", labels.tolist() if labels.dtype.kind == "O" else labels)


def _polars_probabilities(X: Any, probabilities: Tensor, classes: Array) -> Any:
    return sys.modules["polars"].DataFrame(_as_array(probabilities), schema=_names(classes))


def _arrow_labels(X: Any, labels: Array) -> Any:
    return sys.modules["pyarrow"].array(labels)


def _arrow_probabilities(X: Any, probabilities: Tensor, classes: Array) -> Any:
    as_column = sys.modules["pyarrow"].array
    columns = [as_column(np.ascontiguousarray(column)) for column in _as_array(probabilities).T]
    return type(X).from_arrays(columns, names=_names(classes))


ARRAYS = Container(
    _unmasked,
    lambda X, labels: labels,
    lambda X, probabilities, classes: _as_array(probabilities),
    lambda X, numbers, name: numbers,
    _new_pandas_frame,
)
CONTAINERS = {
    "torch": Container(
        lambda X: X,
        _tensor_labels,
        lambda X, probabilities, classes: probabilities,
        lambda X, numbers, name: torch.from_numpy(numbers).to(X.device),
        _new_pandas_frame,
    ),
    "pandas": Container(
        _pandas_vectors,
        _pandas_labels,
        _pandas_probabilities,
        lambda X, numbers, name: sys.modules["pandas"].Series(numbers, index=X.index, name=name),
        _pandas_frame,
        lambda answer, rows: answer.iloc[rows],
    ),
    "polars": Container(
        _polars_vectors,
        _polars_labels,
        _polars_probabilities,
        lambda X, numbers, name: sys.modules["polars"].Series(name, numbers),
        _polars_frame,
    ),
    "pyarrow": Container(
        _arrow_vectors,
        _arrow_labels,
        _arrow_probabilities,
        lambda X, numbers, name: sys.modules["pyarrow"].array(numbers),
        _arrow_frame,
        lambda answer, rows: answer.take(rows),
    ),
}
