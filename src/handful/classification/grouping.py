"""Which items make a batch of their own: groups read off the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import TaskError
from handful.shapes import Int

Key = tuple[Any, ...]


class Grouping(NamedTuple):
    """Which item is in which group: names of the columns, distinct groups in increasing order, group of each item."""

    columns: tuple[str, ...]
    groups: tuple[Key, ...]
    group_of: Int[np.ndarray, "item"]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], where: str) -> Grouping:
        """Read it off the columns of a table; every row must have a group.

        Examples
        --------
        >>> found = Grouping.of({"site": ["wood", "marsh", "wood"], "day": [1, 1, 1]}, "a table")
        >>> found.groups, found.group_of.tolist()
        ((('marsh', 1), ('wood', 1)), [1, 0, 1])
        """
        for name, values in columns.items():
            _refuse_gaps(name, values, where)
        keys = list(zip(*columns.values(), strict=True))
        groups = tuple(sorted(set(keys)))
        place = {key: number for number, key in enumerate(groups)}
        return cls(tuple(columns), groups, np.array([place[key] for key in keys], dtype=np.int64))

    @property
    def names(self) -> npt.NDArray[Any]:
        """The distinct groups: values of one column, or tuples of several."""
        found = np.empty(len(self.groups), dtype=object)
        found[:] = [key[0] for key in self.groups] if len(self.columns) == 1 else self.groups
        return found

    def of_items(self, rows: Sequence[int]) -> Grouping:
        """Keep these items alone; groups that lose all their items are left out."""
        left, group_of = np.unique(self.group_of[np.asarray(rows, dtype=np.int64)], return_inverse=True)
        return Grouping(self.columns, tuple(self.groups[place] for place in left.tolist()), group_of)


def _refuse_gaps(name: str, values: Sequence[Any], where: str) -> None:
    """Refuse rows without a group, and values that cannot be sorted."""
    gaps = [row for row, value in enumerate(values) if value is None or value != value or value == ""]
    if gaps:
        have = "1 row has" if len(gaps) == 1 else f"{len(gaps):,} rows have"
        raise TaskError(
            f"{where}: {have} no {name!r} and so no group, the first is row {gaps[0]}; fill in or drop such rows"
        )
    kinds = {type(value) for value in values}
    if kinds & {list, dict, bytes} or (len(kinds) > 1 and kinds != {int, float}):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TaskError(f"{where}: groups must be of one kind, text, numbers or dates; column {name!r} has {found}")
