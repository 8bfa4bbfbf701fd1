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
from handful.banks.parquet import read_vectors
from handful.banks.tables import FEATURE_NAMES, find_column
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
        How to find an item again: its name or number where the file has such a column, else `row 1` and so on.
    texts : tuple of str or None
        What the items say, where the file has such a column.
    backbone : str
        What made the features, where that is known.
    groups : mapping of str to sequence
        The columns of groups that were asked for, one value per item.
    """

    features: Float[np.ndarray, "row dim"]
    names: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    backbone: str = ""
    groups: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def read_unlabelled(
    path: str | os.PathLike[str], *, features: str | None = None, groups: Sequence[str] = ()
) -> Vectors:
    """Read vectors from a bank, a folder with `features.npy`, a `.npz`, a `.npy`, or Parquet; labels are ignored.

    Parameters
    ----------
    path : path
        What holds them.
    features : str, optional
        Name of the column or key, where it cannot be detected.
    groups : sequence of str
        Further columns to read, which say to which group a row belongs; only Parquet and `.npz` have columns.

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
    ending = place.suffix.lower()
    shards = sorted(place.glob("*.parquet")) if place.is_dir() else [place] if ending in (".parquet", ".pq") else []
    if store.is_bank(place):
        bank = FeatureBank.load(place)
        found = _vectors(bank.features, {}, place, groups)
        return replace(found, backbone=bank.provenance.backbone)
    if (place / "features.npy").exists():
        return _vectors(open_npy(place / "features.npy"), {}, place, groups)
    if shards:
        matrix, columns = read_vectors(shards, features=features, others=(*ITEM_NAMES, *TEXT_NAMES), groups=groups)
        return _vectors(matrix, columns, place, groups)
    if ending == ".npy":
        return _vectors(open_npy(place), {}, place, groups)
    if ending == ".npz":
        return _read_npz(place, features, groups)
    raise BankError(
        f"{place} is not a known kind of file; expected a bank, a folder with features.npy, .npz, .npy or .parquet"
    )


def _read_npz(file: Path, features: str | None, groups: Sequence[str]) -> Vectors:
    with opened_archive(file) as archive:
        key = find_column(archive, features, FEATURE_NAMES, "features", str(file))
        left = [name for name in archive if name != key]
        grouped = [find_column(left, name, (), "groups", str(file)) for name in groups]
        wanted = dict.fromkeys([*ITEM_NAMES, *TEXT_NAMES, *grouped])
        columns = {name: archive[name].tolist() for name in wanted if name in left}
        return _vectors(archive[key], columns, file, groups)


def _vectors(features: np.ndarray, columns: Mapping[str, Sequence[Any]], where: Path, groups: Sequence[str]) -> Vectors:
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
        if not isinstance(columns[name], list) or len(columns[name]) != len(features):
            raise BankError(f"{where}: column {name!r} must have one group for each of the {len(features)} rows")
    whole = {name: values for name, values in columns.items() if len(values) == len(features) and None not in values}
    names = next((whole[name] for name in ITEM_NAMES if name in whole), None)
    texts = next((whole[name] for name in TEXT_NAMES if name in whole), None)
    return Vectors(
        features,
        _numbered(len(features)) if names is None else tuple(map(str, names)),
        None if texts is None else tuple(map(str, texts)),
        groups={name: columns[name] for name in groups},
    )


def _numbered(n_rows: int) -> tuple[str, ...]:
    return tuple(f"row {row + 1}" for row in range(n_rows))
