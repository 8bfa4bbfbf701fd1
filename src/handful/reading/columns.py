"""Columns that are not used in any computation: they are returned next to the answers, in their order and unchanged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handful.errors import BankError
from handful.machine.extras import import_extra, import_pyarrow


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of the input, each a list, an array with one axis or an Arrow array; one value per item.

    Arrow arrays stay as they are until they are written, so a long table costs little memory.

    Examples
    --------
    >>> columns = Columns({"ticket": ["T1", "T2", "T3"], "open": np.array([True, False, True])})
    >>> columns.of_items([2, 0]).values()
    {'ticket': ['T3', 'T1'], 'open': [True, True]}
    """

    by_name: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep times that Python cannot hold as the numbers that the file has."""
        object.__setattr__(self, "by_name", {name: _readable(name, column) for name, column in self.by_name.items()})

    def of_items(self, items: Sequence[int]) -> Columns:
        """Keep these items alone, in this order."""
        return Columns({name: _taken(column, items) for name, column in self.by_name.items()})

    def values(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain values."""
        return {name: _plain(column) for name, column in self.by_name.items()}

    def beside(self, taken: Collection[str]) -> Columns:
        """Rename columns whose names are taken: `label` becomes `given_label`; what has no free name is left out."""
        free = {name: f"given_{name}" if name in taken else name for name in self.by_name}
        kept = {new: self.by_name[name] for name, new in free.items() if new == name or new not in self.by_name}
        return Columns(kept)

    def types(self) -> dict[str, Any]:
        """Return the Arrow type of each column; values of several kinds are written as text."""
        return {name: _type_of(column) for name, column in self.by_name.items()}


def _taken(column: Any, items: Sequence[int]) -> Any:
    if isinstance(column, list):
        return [column[item] for item in items]
    if isinstance(column, np.ndarray):
        return column[np.asarray(items, dtype=np.int64)]
    return column.take(np.asarray(items, dtype=np.int64))


def _plain(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if isinstance(column, np.ndarray):
        return column.tolist()  # type: ignore[no-any-return]
    pa, _ = import_pyarrow()
    if not pa.types.is_dictionary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    # One object for all rows of equal text.
    return [
        None if k is None else words[k]
        for part in column.chunks
        for words in [part.dictionary.to_pylist()]
        for k in part.indices.to_pylist()
    ]


def _readable(name: str, column: Any) -> Any:
    if isinstance(column, (list, np.ndarray)):
        return column
    pa, _ = import_pyarrow()
    if pa.types.is_temporal(column.type):
        numbers = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        ends = import_extra("pyarrow.compute", "parquet").min_max(numbers).as_py()
        try:  # if Python can hold the first and the last, it can hold all
            pa.array(list(ends.values()), numbers.type).cast(column.type).to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, LookupError):
            return numbers
    elif pa.types.is_nested(column.type):
        try:
            column.to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, LookupError) as error:
            raise BankError(f"column {name!r} has values that cannot be read ({error}); drop that column") from error
    return column


def _type_of(column: Any) -> Any:
    pa, _ = import_pyarrow()
    if not isinstance(column, (list, np.ndarray)):
        return column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        found = pa.array(column).type
    except (pa.ArrowException, OverflowError, UnicodeError):
        return pa.string()
    return pa.string() if pa.types.is_null(found) else found
