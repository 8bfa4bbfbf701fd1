"""What foreign tables have in common: which column is which, and labels of any kind turned into numbers and names."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import BankError
from handful.features.bank import FeatureBank, Provenance

# Names under which people keep such columns, the likelier first.
FEATURE_NAMES = ("features", "feature", "embeddings", "embedding", "concat_features", "vectors", "vector", "feats", "x")
LABEL_NAMES = (
    "class_name", "labels", "label", "concat_labels", "fine_label", "targets", "target", "classes", "class", "category",
    "intent", "y",
)  # fmt: skip
NAME_NAMES = ("class_names", "names", "classes")


def find_column(columns: Iterable[str], asked: str | None, likely: Sequence[str], role: str, where: str) -> str:
    """Return the column asked for, or else the likeliest one there is."""
    there = list(columns)
    if asked is not None:
        if asked in there:
            return asked
        raise BankError(f"{where} has no column {asked!r} for the {role}; it has {', '.join(there)}")
    by_name = {name.lower(): name for name in reversed(there)}
    for name in likely:
        if name in by_name:
            return by_name[name]
    raise BankError(f"{where} has no column that looks like {role}; say which it is, it has {', '.join(there)}")


@contextmanager
def opened_archive(file: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Give the arrays of a `.npz` file by name, each read when it is asked for; nothing is unpickled."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            yield archive
    except (ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, BankError):
            raise
        raise BankError(
            f"{file} cannot be read as a .npz file of numbers and names ({error}); it is cut short or of another kind"
        ) from error


def bank_of(
    features: Any,
    labels: Any,
    class_names: Sequence[str] | None,
    where: str,
    *,
    provenance: Provenance | None = None,
) -> FeatureBank:
    """Make a bank of a table whose labels are numbers or names.

    With `class_names`, numbers index them. Without, classes are the labels that occur, in increasing order.
    """
    values = np.asarray(labels)
    try:
        if values.dtype.kind in "OUS":
            if not all(isinstance(v, (str, bytes)) for v in values.tolist()):
                raise BankError("labels must all be names or all be whole numbers, and none may be missing")
            values = np.array([v.decode() if isinstance(v, bytes) else v for v in values.tolist()])
            present, numbers = np.unique(values, return_inverse=True)
            names = list(class_names) if class_names is not None else present.tolist()
            unknown = sorted(set(present.tolist()) - set(names))
            if unknown:
                raise BankError(f"label {unknown[0]!r} is not among the {len(names)} class names")
            position = {name: k for k, name in enumerate(names)}
            numbers = np.array([position[name] for name in present.tolist()])[numbers]
        elif class_names is None and values.dtype.kind in "iu":
            present, numbers = np.unique(values, return_inverse=True)
            names = [str(v) for v in present.tolist()]
        else:
            numbers, names = values, list(class_names or ())
        return FeatureBank.from_arrays(features, numbers, names, provenance=provenance)
    except BankError as error:
        raise BankError(f"{where}: {error}") from error
