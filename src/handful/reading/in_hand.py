"""What people have in hand, as one table: frames of pandas, polars and Arrow, datasets, arrays, and lists.

None of these libraries is imported here: a value of theirs can only be passed if they are already loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import BLOCK_ROWS, FeatureBank
from handful.errors import BankError
from handful.reading.class_names import is_missing
from handful.reading.contents import IMAGE_SUFFIXES
from handful.reading.header import (
    FEATURE_NAMES,
    PATH_NAME,
    TEXT_NAMES,
    Asked,
    holds_items,
    no_items,
    refuse_equal_names,
)
from handful.reading.lists import table_of_lists
from handful.reading.table import Table
from handful.shapes import Float

WHERE = "the table in hand"
LABEL = "label"


def has_names(value: Any) -> bool:
    """Whether a value in hand has columns with names: a frame, a dataset, a mapping, or a list of mappings."""
    if _is_pair(value):
        return has_names(value[0])
    if isinstance(value, Table):
        return bool(value.columns)
    rows = isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    return rows or isinstance(value, Mapping) or any(hasattr(type(value), name) for name in ("columns", "column_names"))


def table_in_hand(value: Any, asked: Asked) -> Table:
    """Make a table of whatever holds vectors, texts or paths of images.

    Parameters
    ----------
    value
        A frame, a dataset or a mapping of columns; an array or tensor of vectors; a list of texts, of paths of images
        or of vectors; a bank; a table; or a pair of any of these and labels, `(X, y)`.
    asked
        Columns that the caller named.

    Examples
    --------
    >>> table_in_hand((["where is my bag", "wake me"], ["luggage", "alarm"]), Asked())
    Table('the table in hand', 2 rows, columns text, label)
    >>> table_in_hand({"emb": [[0.0, 1.0], [1.0, 0.0]], "label": ["a", "b"]}, Asked("emb")).vectors.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if isinstance(value, Table):
        return value
    if isinstance(value, FeatureBank):
        return Table(WHERE, value.n_rows, vectors=value.features, bank=value, provenance=value.provenance)
    if _is_pair(value):
        return _with_labels(table_in_hand(value[0], asked), value[1])
    if _family(value) == "datasets":
        return _of_dataset(value, asked)
    columns = columns_in_hand(value)
    if columns is not None:
        return _of_columns(columns, asked)
    values = _values(value)
    if isinstance(values, np.ndarray):
        return _of_array(values, asked)
    return _of_list(values, asked)


def _is_pair(value: Any) -> bool:
    """Whether a value is `(X, y)`: a pair whose first part has several entries, and is no text or vector of numbers."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    first, second = value
    return not isinstance(first, (str, bytes, int, float)) and hasattr(first, "__len__") and hasattr(second, "__len__")


def _with_labels(table: Table, labels: Any) -> Table:
    values = list(_values(labels)) if not isinstance(labels, np.ndarray) else labels.tolist()
    if len(values) != table.n_rows:
        raise BankError(f"(X, y) must have one label per row: X has {table.n_rows:,} rows, y has {len(values):,}")
    values = [None if is_missing(label) else label for label in values]
    return replace(table, columns={**table.columns, LABEL: values})


def _of_dataset(dataset: Any, asked: Asked) -> Table:
    """Make a table of a dataset; names of a `ClassLabel` column are those of the classes."""
    if isinstance(dataset, Mapping):
        raise BankError(f"choose one split of the dataset, for instance dataset[{next(iter(dataset), 'train')!r}]")
    names = list(dataset.column_names)
    named = {name: kind.names for name, kind in dataset.features.items() if hasattr(kind, "names")}
    likely = () if holds_items(names, asked) else (asked.features,) if asked.features else FEATURE_NAMES
    column = next((name for name in likely if name in names), None)
    vectors = None if column is None else _vectors_in(dataset, column)
    if vectors is None:
        return replace(_of_columns({name: list(dataset[name]) for name in names}, asked), class_names=named)
    others = {name: list(dataset[name]) for name in names if name != column}
    assert column is not None
    return Table(WHERE, len(vectors), vectors=vectors, columns=others, class_names=named, features=(column,))


def _vectors_in(dataset: Any, column: str) -> Float[np.ndarray, "row dim"] | None:
    """Read vectors block by block, never as lists of all; None if some have other lengths, or no finite numbers."""
    vectors: np.ndarray | None = None
    start = 0
    for batch in dataset.select_columns(column).iter(batch_size=BLOCK_ROWS):
        try:
            block = np.asarray(batch[column], dtype=np.float32)
        except (ValueError, TypeError):
            return None
        if vectors is None and block.ndim == 2:
            vectors = np.empty((len(dataset), block.shape[1]), np.float32)
        if vectors is None or block.shape[1:] != vectors.shape[1:] or not np.isfinite(block).all():
            return None
        vectors[start : start + len(block)] = block
        start += len(block)
    return vectors


def columns_in_hand(value: Any) -> dict[str, Any] | None:
    """Return the columns of a frame as lists, or None."""
    family = _family(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(list(_values(column))) for name, column in value.items()}
    if family == "pandas" and value.ndim == 2:
        refuse_equal_names(list(map(str, value.columns)), WHERE)
        return {str(name): _plain(value[name].tolist()) for name in value.columns}
    if family == "polars" and hasattr(type(value), "columns"):
        value = value.collect() if not hasattr(value, "to_series") else value
        return {name: value[name].to_list() for name in value.columns}
    if family == "pyarrow" and hasattr(value, "column_names"):
        return {name: value.column(name).to_pylist() for name in value.column_names}
    if hasattr(value, "schema") and hasattr(value, "column"):
        return {name: value.column(name).to_pylist() for name in value.schema.names}
    return None


def _family(value: Any) -> str:
    families = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((name for name in families if name in ("pandas", "polars", "pyarrow", "torch", "datasets")), "")


def _values(value: Any) -> Any:
    """Return an array, or a list of plain values."""
    family = _family(value)
    if family == "torch":
        return value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if family in ("pandas", "polars", "pyarrow"):
        tolist = next(getattr(value, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(value, name))
        return _plain(tolist())
    if hasattr(value, "toarray"):
        return value.toarray()
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, np.matrix):
        return np.asarray(value)
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind in "OUS" and value.ndim == 1 else value
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return list(value)
    raise BankError(
        f"a {type(value).__name__} is nothing that can be read; give a path, a frame, an array of vectors, a list of "
        "texts or of paths of images, or a pair (X, y)"
    )


def _plain(values: list[Any]) -> list[Any]:
    """Return missing values as None, and what NumPy made as plain values and lists."""
    plain = [v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v for v in values]
    plain = [np.array(v).tolist() if isinstance(v, (list, tuple)) and _is_of_numpy(v) else v for v in plain]
    return [None if not isinstance(v, (list, tuple)) and is_missing(v) else v for v in plain]


def _is_of_numpy(values: Sequence[Any]) -> bool:
    """Whether a vector is a list of NumPy's numbers, as `list(row)` of an array is."""
    return bool(values) and all(isinstance(one, np.generic) and one.dtype.kind in "fiu" for one in values)


def _of_columns(columns: Mapping[str, list[Any]], asked: Asked) -> Table:
    lists = {
        name: [list(v) if isinstance(v, (tuple, np.ndarray)) else v for v in values] for name, values in columns.items()
    }
    if not lists:
        raise BankError(f"{WHERE} has no columns; expected vectors, texts or paths of images")
    if asked.features is None and not holds_items(list(lists), asked):
        nested = [name for name, values in lists.items() if any(isinstance(v, list) for v in values)]
        if len(nested) == 1:
            asked = asked._replace(features=nested[0])
    table = table_of_lists(lists, asked, WHERE)
    if table.vectors is None and not asked.text and not {*TEXT_NAMES, PATH_NAME} & set(lists):
        raise no_items(list(lists), WHERE, asked)
    return table


def _of_array(values: np.ndarray, asked: Asked) -> Table:
    if asked.features or asked.text:
        raise BankError(f"an array has no columns, so it has no column {asked.features or asked.text!r}; leave it out")
    if values.ndim == 1 and values.dtype.kind in "fiub":
        raise BankError("an array must have the axes (row, dim), got one axis; one vector is a batch [vector]")
    bad = np.empty((0, 2), np.int64)
    if values.dtype.kind == "f" and values.ndim == 2:
        bad = np.argwhere(np.isinf(values) if asked.gaps else ~np.isfinite(values))
    if len(bad):
        row, column = bad[0].tolist()
        raise BankError(
            f"row {row}, column {column} of the array is {values[row, column]}, and {len(bad) - 1:,} more values are "
            "not numbers; fill them in, or drop these rows"
        )
    return Table(WHERE, len(values), vectors=values)


def _of_list(values: Sequence[Any], asked: Asked) -> Table:
    if not len(values):
        raise BankError("the list has no entries; give one text, path or vector per item")
    if all(isinstance(value, os.PathLike) for value in values) or all(map(_is_image_path, values)):
        paths = [os.fspath(value) for value in values]
        return Table(WHERE, len(paths), columns={PATH_NAME: paths})
    if all(value is None or isinstance(value, str) for value in values):
        return Table(WHERE, len(values), columns={TEXT_NAMES[0]: list(values)})
    if all(isinstance(value, Mapping) for value in values):
        names = dict.fromkeys(str(name) for row in values for name in row)
        return _of_columns({name: _plain([row.get(name) for row in values]) for name in names}, asked)
    try:
        return _of_array(np.array([np.asarray(value, np.float32) for value in values]), Asked(gaps=asked.gaps))
    except (TypeError, ValueError) as error:
        if isinstance(error, BankError):
            raise
        kinds = some_of(sorted({type(value).__name__ for value in values}))
        raise BankError(
            f"the list has {kinds}; give texts, paths of images, or vectors of one length, the same for all items"
        ) from error


def _is_image_path(value: Any) -> bool:
    return isinstance(value, str) and Path(value).suffix.lower() in IMAGE_SUFFIXES and "\n" not in value
