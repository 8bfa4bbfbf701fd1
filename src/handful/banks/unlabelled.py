"""Vectors without labels: the batch to be labelled, with names that identify its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks import store
from handful.banks.arrays import open_npy, opened_archive
from handful.banks.bank import FeatureBank
from handful.banks.carried import Carried
from handful.banks.foreign import has_columns
from handful.banks.parquet import read_vectors
from handful.banks.tables import FEATURE_NAMES, find_column
from handful.banks.wide import is_wide_csv, read_wide_csv
from handful.errors import BankError
from handful.shapes import Float

# Columns that identify a row, and columns that hold its text, the most likely first.
ITEM_NAMES = ("item", "id", "item_id", "path", "file", "filename", "name")
TEXT_NAMES = ("text", "sentence", "utterance", "query")


@dataclass(frozen=True, eq=False)
class Vectors:
    """Features of unlabelled items.

    Attributes
    ----------
    features : Float[ndarray, "row dim"]
        One vector per item.
    names : tuple of str
        How to find an item again: its name or number where the file has such a column, else `row 0` and so on.
    texts : tuple of str or None
        What the items say, where the file has such a column.
    backbone : str
        What made the features, where that is known.
    groups : mapping of str to sequence
        The columns of groups that were asked for, one value per item.
    carried : Carried
        All columns of the file but the vectors.
    rows : sequence of int or None
        Positions of the items in the file; None means all rows.
    """

    features: Float[np.ndarray, "row dim"]
    names: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    backbone: str = ""
    groups: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)
    rows: Sequence[int] | None = None


def read_unlabelled(
    path: str | os.PathLike[str],
    *,
    features: str | None = None,
    groups: Sequence[str] = (),
    item_column: str | None = None,
) -> Vectors:
    """Read vectors from a bank, a folder with `features.npy`, `.npz`, `.npy`, Parquet or CSV; labels are ignored.

    Parameters
    ----------
    path : path
        What holds them. Parquet has a column of lists or one column per dimension, CSV has one column per dimension.
    features : str, optional
        Name of the column or key, or beginning of the names of the dimensions, where it cannot be detected.
    groups : sequence of str
        Columns that say to which group a row belongs; banks and `.npy` have none.
    item_column : str, optional
        Column that identifies a row; by default one with a usual name, such as `id`.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.mkdtemp() + "/batch.npz"
    >>> np.savez(place, embeddings=np.eye(2, dtype="float32"), id=["a7", "b3"])
    >>> read_unlabelled(place).names
    ('a7', 'b3')
    """
    place = Path(path)
    if not place.exists():
        raise BankError(f"{place} does not exist; check the path")
    if place.is_dir() and not any(place.iterdir()):
        raise BankError(f"{place} is an empty folder; check the path")
    if features is not None and not has_columns(place):
        raise BankError(f"{place} has no columns, so none of them is {features!r}; leave the name of the column out")
    ending = place.suffix.lower()
    shards = sorted(place.glob("*.parquet")) if place.is_dir() else [place] if ending in (".parquet", ".pq") else []
    about: dict[str, Any] = {"where": place, "groups": groups, "item_column": item_column}
    if store.is_bank(place):
        bank = FeatureBank.load(place)
        return replace(_vectors(bank.features, {}, **about), backbone=bank.provenance.backbone)
    if (place / "features.npy").exists():
        return _vectors(open_npy(place / "features.npy"), {}, **about)
    if shards:
        return _vectors(*read_vectors(shards, features=features, groups=groups), **about)
    if ending == ".npy":
        return _vectors(open_npy(place), {}, **about)
    if ending == ".npz":
        return _read_npz(place, features, groups, item_column)
    if is_wide_csv(place, features):
        return _vectors(*read_wide_csv(place, features), **about)
    raise BankError(
        f"{place} is not a known kind of file; expected a bank, a folder with features.npy, .npz, .npy, .parquet, or "
        ".csv with one column per dimension"
    )


def _read_npz(file: Path, features: str | None, groups: Sequence[str], item_column: str | None) -> Vectors:
    with opened_archive(file) as archive:
        key = find_column(archive, features, FEATURE_NAMES, "features", str(file))
        matrix, left = archive[key], [name for name in archive if name != key]
        for name in groups:
            find_column(left, name, (), "groups", str(file))
        read = {name: archive[name] for name in left}
        # Other arrays, such as the names of classes, belong to no row.
        by_row = {name: array for name, array in read.items() if name in groups or array.shape == matrix.shape[:1]}
        return _vectors(matrix, by_row, where=file, groups=groups, item_column=item_column)


def _vectors(
    features: np.ndarray, columns: Mapping[str, Any], *, where: Path, groups: Sequence[str], item_column: str | None
) -> Vectors:
    if features.ndim != 2 or features.dtype.kind not in "fiu" or 0 in features.shape:
        raise BankError(
            f"{where}: features must be numbers with the axes (row, dim), got {features.dtype} of shape "
            f"{features.shape}"
        )
    for name in groups:
        if name not in columns:
            raise BankError(
                f"{where} holds vectors alone, so it has no column {name!r} for the groups; use .parquet or .npz"
            )
        if isinstance(columns[name], np.ndarray) and columns[name].shape != (len(features),):
            raise BankError(f"{where}: column {name!r} must have one group for each of the {len(features)} rows")
    if item_column is not None:
        find_column(columns, item_column, (), "items", str(where))
    carried = Carried(columns)
    likely = (*ITEM_NAMES, *TEXT_NAMES)
    read = Carried({name: columns[name] for name in columns if name in (*likely, *groups, item_column)}).values()
    names = named_by(read, item_column, str(where), len(features))
    texts = next((read[name] for name in TEXT_NAMES if name in read and None not in read[name]), None)
    return Vectors(
        features,
        names,
        None if texts is None else tuple(map(str, texts)),
        groups={name: read[name] for name in groups},
        carried=carried,
    )


def named_by(columns: Mapping[str, Sequence[Any]], item_column: str | None, where: str, n_rows: int) -> tuple[str, ...]:
    """Return the names of rows: the column asked for, else one with a usual name and no gaps, else `row 0` and so on.

    Examples
    --------
    >>> named_by({"ticket": ["T9", "T4"], "id": [1, None]}, "ticket", "a table", 2)
    ('T9', 'T4')
    >>> named_by({"ticket": ["T9", "T4"], "id": [1, None]}, None, "a table", 2)
    ('row 0', 'row 1')
    """
    if item_column is not None:
        gaps = [row for row, value in enumerate(columns[item_column]) if value is None or value == ""]
        if gaps:
            raise BankError(
                f"{where}: row {gaps[0]} has no {item_column!r}; fill it in, or name the items by another column"
            )
        return tuple(map(str, columns[item_column]))
    found = next((columns[name] for name in ITEM_NAMES if name in columns and None not in columns[name]), None)
    return tuple(f"row {row}" for row in range(n_rows)) if found is None else tuple(map(str, found))
