"""Batch: items to label: vectors, or images or sentences to embed, with their names, columns and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handful.errors import BankError, TaskError
from handful.extraction.items import Items, list_items
from handful.reading.contents import Contents, pick
from handful.reading.header import TEXT_NAMES, find_column
from handful.reading.images import FOLDER, is_folder, with_folders
from handful.reading.registry import is_copied
from handful.reading.table import Columns, Skipped, Table
from handful.shapes import Float, Int


class Groups(NamedTuple):
    """Which item is in which group: names of the columns, distinct groups in increasing order, group of each item.

    A group is the value of one column, or a tuple of the values of several.
    """

    columns: tuple[str, ...]
    names: npt.NDArray[Any]
    group_of: Int[np.ndarray, "item"]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], where: str) -> Groups:
        """Read them off the columns of a table; every row must have a group.

        Examples
        --------
        >>> groups = Groups.of({"site": ["wood", "marsh", "wood"], "day": [1, 1, 1]}, "a table")
        >>> groups.names.tolist(), groups.group_of.tolist()
        ([('marsh', 1), ('wood', 1)], [1, 0, 1])
        """
        for name, values in columns.items():
            _refuse_gaps(name, values, where)
        keys = list(zip(*columns.values(), strict=True))
        distinct = sorted(set(keys))
        names = np.empty(len(distinct), dtype=object)
        names[:] = [key[0] for key in distinct] if len(columns) == 1 else distinct
        position = {key: number for number, key in enumerate(distinct)}
        return cls(tuple(columns), names, np.array([position[key] for key in keys], dtype=np.int64))

    @property
    def of_items(self) -> npt.NDArray[Any]:
        """The group of each item."""
        found: npt.NDArray[Any] = self.names[self.group_of]
        return found


@dataclass(frozen=True, eq=False)
class Batch:
    """Items to label.

    Attributes
    ----------
    rows, names : sequence of int, tuple of str
        Position of each item in what was given, from 0, and its name there.
    contents : Contents or None
        The images or sentences, not yet read; None if only vectors were given.
    skipped : tuple of Skipped
        Items that were left out, each with its position in what was given, its name, and why.
    columns : Columns
        The other columns of what was given, which come back with the predictions.
    source : Path or None
        The file they came from, where answers can go back into a file of its kind.
    points : Float[ndarray, "item dim"] or None
        One vector per item; None for images and sentences that are not embedded yet, and for items with scores.
    items : Items or None
        What has to be embedded to make `points`; None if vectors were given.
    encoder : str
        What made the vectors, where that is known.
    groups : Groups or None
        The groups of the items; None if all are one batch.
    features : tuple of str
        The columns that the vectors were made of, where they have names.
    not_measured : mapping of str to str
        Columns of numbers that are no features, and what they are instead, such as running numbers.
    """

    rows: Sequence[int]
    names: tuple[str, ...]
    contents: Contents | None
    skipped: tuple[Skipped, ...]
    columns: Columns = field(default_factory=Columns)
    source: Path | None = None
    points: Float[np.ndarray, "item dim"] | None = None
    items: Items | None = None
    encoder: str = ""
    groups: Groups | None = None
    features: tuple[str, ...] = ()
    not_measured: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: Table, *, group_by: Sequence[str] = (), columns: Sequence[str] = (), id_column: str | None = None
    ) -> Batch:
        """Make a batch from a table; labels in it are ignored.

        Parameters
        ----------
        table : Table
            Vectors, images or sentences.
        group_by : sequence of str
            Columns that say to which group an item belongs, see `handful.reading.images` for `folder`.
        columns : sequence of str
            Other columns that must be there.
        id_column : str, optional
            Column that identifies an item; by default one with a usual name, such as `id`.

        Examples
        --------
        >>> table = Table("a list", 2, vectors=np.eye(2), columns={"id": ["a7", "b3"], "site": ["wood", "marsh"]})
        >>> batch = Batch.of(table, group_by=["site"])
        >>> batch.names, batch.groups.names.tolist()
        (('a7', 'b3'), ['marsh', 'wood'])
        """
        named = tuple(dict.fromkeys((*group_by, *columns)))
        in_folders = table.vectors is None and table.classes is not None
        if in_folders:
            _check_folders(table, named)
        # Images in folders have no such column.
        rows = table.rows
        names = table.item_names(None if in_folders else id_column)
        table = with_folders(table, named, table.names or names)
        _check_columns(table, named)
        groups = Groups.of({name: table.values(name) for name in group_by}, table.where) if group_by else None
        beside = Columns() if in_folders and not named else table.row_columns()
        if table.vectors is None:
            items = list_items(table, labelled=False, id_column=id_column)
            return cls(items.rows, items.names, items.source, items.skipped, beside, items=items, groups=groups)
        texts = _texts(table)
        path = Path(table.where).absolute()
        return cls(
            rows,
            names,
            texts,
            table.skipped,
            beside,
            source=path if is_copied(path) else None,
            points=table.vectors,
            encoder=table.provenance.encoder,
            groups=groups,
            features=table.features,
            not_measured={name: one.kind for name, one in table.not_measured.items()},
        )

    def take(self, items: Sequence[int]) -> Batch:
        """Keep these items alone; the groups are left out."""
        return Batch(
            [self.rows[i] for i in items],
            tuple(self.names[i] for i in items),
            None if self.contents is None else pick(self.contents, items),
            (),
            self.columns.of_items(items),
            points=None if self.points is None else self.points[np.asarray(items, np.int64)],
            items=None if self.items is None else self.items.take(items),
            encoder=self.encoder,
            features=self.features,
            not_measured=self.not_measured,
        )

    def with_points(
        self, points: Float[np.ndarray, "item dim"], lost: Mapping[int, str], encoder: str
    ) -> tuple[Batch, list[int]]:
        """Return the items with their vectors, and their positions; those at the positions in `lost` have none."""
        kept = [item for item in range(len(self.rows)) if item not in lost]
        skipped = (*self.skipped, *(Skipped(self.rows[at], self.names[at], why) for at, why in sorted(lost.items())))
        about: dict[str, Any] = {"points": points, "items": None, "encoder": encoder}
        return replace(self.take(kept), skipped=skipped, **about), kept


def _texts(table: Table) -> tuple[str, ...] | None:
    """Return the texts beside vectors: of the column that was named, or of the first with a usual name and no gap."""
    there = table.row_columns().by_name
    for name in (table.text,) if table.text else TEXT_NAMES:
        if name in there and None not in (values := table.values(name)):
            return tuple(map(str, values))
    return None


def _check_columns(table: Table, names: Sequence[str]) -> None:
    """Refuse columns that are not there, or do not have one value for each row."""
    for name in names:
        if not table.columns:
            raise BankError(
                f"{table.where} contains only vectors, so it has no column {name!r} for the groups; use .parquet or "
                ".npz"
            )
        find_column(table.columns, name, (), "groups", table.where)
        if name not in table.row_columns().by_name:
            raise BankError(f"{table.where}: column {name!r} must have one group for each of the {table.n_rows} rows")


def _check_folders(table: Table, names: Sequence[str]) -> None:
    """Refuse columns of images in folders that are no folders, and images outside of folders."""
    if (other := next((name for name in names if not is_folder(name)), None)) is not None:
        raise BankError(
            f"{table.where} has images in folders, which have no column {other!r}; group them by {FOLDER!r}, or list "
            "paths and groups in a table"
        )
    outside = next((name for name in table.names or () if "/" not in name), None)
    if outside is not None and names:
        raise BankError(
            f"{outside!r} is in no folder of {table.where}, so it belongs to no group; move it into one, or remove it"
        )


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
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TaskError(f"{where}: groups must be of one kind, text, numbers or dates; column {name!r} has {listed}")
