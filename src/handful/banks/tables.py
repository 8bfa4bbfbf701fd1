"""What foreign tables have in common: which column is which, and labels of any kind turned into numbers and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.banks.bank import FeatureBank, Provenance
from handful.banks.class_names import merged_names, plain_label
from handful.errors import BankError
from handful.shapes import Int

# Usual names of such columns, the most likely first.
FEATURE_NAMES = ("features", "feature", "embeddings", "embedding", "concat_features", "vectors", "vector", "feats", "x")
LABEL_NAMES = (
    "class_name", "labels", "label", "concat_labels", "fine_label", "targets", "target", "classes", "class", "category",
    "intent", "y",
)  # fmt: skip
NAME_NAMES = ("class_names", "names", "classes")


def find_column(columns: Iterable[str], asked: str | None, likely: Sequence[str], role: str, where: str) -> str:
    """Return the column asked for, or else the most likely one that exists."""
    there = list(columns)
    if asked is not None:
        if asked in there:
            return asked
        raise BankError(f"{where} has no column {asked!r} for the {role}; it has {some_of(there)}")
    by_name = {name.lower(): name for name in reversed(there)}
    for name in likely:
        if name in by_name:
            return by_name[name]
    raise BankError(f"{where} has no column that looks like {role}; it has {some_of(there)}: say which of these to use")


def bank_of(
    features: Any,
    labels: Any,
    class_names: Sequence[object] | None,
    where: str,
    *,
    provenance: Provenance | None = None,
) -> FeatureBank:
    """Make a bank from a table whose labels are numbers or names, one for each row.

    With `class_names`, numbers index them. Without, classes are the labels that occur, in increasing order.
    """
    try:
        values, names, places = _label_array(labels), None, np.empty(0, np.int64)
        if class_names is not None:
            _, names, places = merged_names(places, [_text(name, "class names") for name in class_names])
        if values.dtype.kind in "OUS":
            numbers, names = _numbered([plain_label(_text(label, "labels")) for label in values.tolist()], names)
        elif names is None and values.dtype.kind in "iu":
            present, numbers = np.unique(values, return_inverse=True)
            names = tuple(str(v) for v in present.tolist())
        elif names is not None and len(names) < len(places) and values.dtype.kind in "iu":
            numbers = np.append(places, -1)[np.where((values >= 0) & (values < len(places)), values, len(places))]
        else:
            numbers = values
        return FeatureBank.from_arrays(features, numbers, names or (), provenance=provenance)
    except BankError as error:
        raise BankError(f"{where}: {error}") from error


def _label_array(labels: Any) -> np.ndarray:
    """Return labels as an array, text as objects: as text, each would take as much memory as the longest."""
    try:
        if isinstance(labels, np.ndarray) or not any(isinstance(label, (str, bytes)) for label in labels):
            values = np.asarray(labels)
        else:
            values = np.array(labels, dtype=object)
    except (ValueError, TypeError) as error:
        raise BankError(f"labels must be names or whole numbers, one for each row ({error})") from error
    if values.dtype.kind in "OUS" and values.ndim != 1:
        raise BankError(f"labels must be one for each row, got an array of shape {values.shape}")
    return values


def _text(value: object, role: str) -> str:
    """Return a name as text; in a separate list of class names, whole numbers are names too."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise BankError(f"{role} must be text in UTF-8 ({error})") from error
    if isinstance(value, str) or (role == "class names" and isinstance(value, (int, np.integer))):
        return str(value)
    raise BankError(f"{role} must all be names or all be whole numbers, and none may be missing")


def _numbered(labels: list[str], names: tuple[str, ...] | None) -> tuple[Int[np.ndarray, "row"], tuple[str, ...]]:
    """Return the number of each label, and the names that the numbers stand for."""
    present = sorted(set(labels))
    names = tuple(present) if names is None else names
    position = {name: k for k, name in enumerate(names)}
    if len(position) != len(names):
        repeated = next(name for k, name in enumerate(names) if position[name] != k)
        raise BankError(
            f"{repeated!r} is the name of more than one class, so labels that are names cannot tell them apart; "
            "number the labels, or rename the classes"
        )
    unknown = next((label for label in present if label not in position), None)
    if unknown is not None:
        raise BankError(f"label {unknown!r} is not among the {len(names)} class names")
    return np.array([position[label] for label in labels], dtype=np.int64), names
