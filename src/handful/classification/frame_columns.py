"""Columns of a frame of pandas, polars or Arrow: read as plain values, and put into a copy."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from handful.errors import OptionError
from handful.estimators.containers import family_of

# Names of columns, and one value per row.
Entries = Mapping[str, list[Any]]
FAMILIES = ("pandas", "polars", "pyarrow")


def refuse_other(frame: Any, added: Sequence[str]) -> None:
    """Refuse anything but a frame that columns can be added to, and a frame that has columns of these names."""
    family = family_of(frame)
    if family not in FAMILIES or len(getattr(frame, "shape", ())) != 2:
        raise OptionError(
            f"label takes a frame of pandas, polars or Arrow, got {type(frame).__name__}; for files there is "
            "handful.classify, for arrays handful.BatchClassifier"
        )
    if family == "polars" and not hasattr(frame, "rows"):
        raise OptionError("label takes a frame that is in memory; collect the LazyFrame first")
    if taken := next((name for name in added if name in _names(frame)), None):
        raise OptionError(f"the frame has a column {taken!r} already, and label adds one; rename or drop it")


def _names(frame: Any) -> list[str]:
    return [str(name) for name in (frame.schema.names if family_of(frame) == "pyarrow" else frame.columns)]


def values_in(frame: Any, column: str) -> list[Any]:
    """Return a column as plain values, as they are in the frame."""
    family = family_of(frame)
    values: list[Any]
    if family == "pandas":
        values = frame.iloc[:, _names(frame).index(column)].tolist()
    else:
        values = frame[column].to_list() if family == "polars" else frame.column(column).to_pylist()
    return values


def with_columns(frame: Any, column: str, values: list[Any], numbers: Entries, texts: Entries) -> Any:
    """Return a copy with other values in a column, and with columns of numbers and of texts added; None is missing.

    The column keeps its type if that can hold the values.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"kind": ["owl", None]})
    >>> with_columns(frame, "kind", ["owl", "fox"], {"certainty": [None, 0.9]}, {}).rows()
    [('owl', None), ('fox', 0.9)]
    """
    put = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[family_of(frame)]
    return put(frame, column, values, numbers, texts)


def _pandas(frame: Any, column: str, values: list[Any], numbers: Entries, texts: Entries) -> Any:
    pandas = sys.modules["pandas"]
    place = _names(frame).index(column)
    dtype = frame.dtypes.iloc[place]
    if isinstance(dtype, pandas.CategoricalDtype):
        there = set(dtype.categories)
        dtype = pandas.CategoricalDtype(
            [*dtype.categories, *dict.fromkeys(one for one in values if isinstance(one, str) and one not in there)],
            dtype.ordered,
        )
    try:
        new = pandas.Series(values, index=frame.index, dtype=dtype)
    except (TypeError, ValueError):
        new = pandas.Series(values, index=frame.index, dtype=object)
    found = frame.copy()
    found.isetitem(place, new)
    for entries, kind in ((numbers, float), (texts, object)):
        for name, of_rows in entries.items():
            found[name] = pandas.Series(of_rows, index=frame.index, dtype=kind)
    return found


def _polars(frame: Any, column: str, values: list[Any], numbers: Entries, texts: Entries) -> Any:
    polars = sys.modules["polars"]
    try:
        new = polars.Series(column, values, dtype=frame.schema[column])
    except (TypeError, polars.exceptions.PolarsError):
        new = polars.Series(column, list(map(_text, values)))
    others = [polars.Series(name, of_rows, dtype=polars.Float64) for name, of_rows in numbers.items()]
    others += [polars.Series(name, of_rows, dtype=polars.String) for name, of_rows in texts.items()]
    return frame.with_columns(new, *others)


def _arrow(frame: Any, column: str, values: list[Any], numbers: Entries, texts: Entries) -> Any:
    arrow = sys.modules["pyarrow"]
    place = frame.schema.get_field_index(column)
    try:
        new = arrow.array(values, type=frame.schema.field(place).type)
    except (arrow.ArrowException, TypeError):
        new = arrow.array(list(map(_text, values)))
    frame = frame.set_column(place, column, new)
    for entries, kind in ((numbers, arrow.float64()), (texts, arrow.string())):
        for name, of_rows in entries.items():
            frame = frame.append_column(name, arrow.array(of_rows, type=kind))
    return frame


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
