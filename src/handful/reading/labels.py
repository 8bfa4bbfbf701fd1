"""Labels of a table: rows that have one, as a bank of examples, and rows that have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from handful.banks.bank import FeatureBank, Provenance
from handful.errors import BankError
from handful.reading.class_names import is_missing, merged_names, plain_label
from handful.reading.header import find_column, no_columns
from handful.reading.parquet import damaged_notes
from handful.reading.read import kind_of, read
from handful.reading.table import Table
from handful.shapes import Int


def read_bank(
    path: Any,
    *,
    features: str | None = None,
    labels: str | None = None,
    trust_pickle: bool = False,
    skip_bad: bool = False,
    header_row: int | None = None,
) -> FeatureBank:
    """Read a bank from anything with vectors and labels.

    Parameters
    ----------
    path : path, frame, dataset or (X, y)
        Anything that `read` reads and that has vectors and labels. Names of a `ClassLabel` column of a Hugging Face
        dataset become the class names.
    features, labels : str, optional
        Names of the columns or keys, if they cannot be detected; for one column per dimension, the prefix of their
        names.
    trust_pickle, skip_bad : bool
        Whether to open pickles, and to leave out any number of rows that cannot be read, see `read`.
    header_row : int, optional
        Line of the names of columns, see `read`.

    Returns
    -------
    FeatureBank
        The bank.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.mkdtemp() + "/features.npz"
    >>> np.savez(place, embeddings=np.eye(3, dtype="float32"), y=["ant", "bee", "ant"])
    >>> read_bank(place).class_names
    ('ant', 'bee')
    """
    if trust_pickle and not kind_of(path).pickles:
        raise BankError(f"{path} contains no pickle; leave trust-pickle out")
    table = read(path, features=features, trust_pickle=trust_pickle, skip_bad=skip_bad, header_row=header_row)
    return labelled(table, labels)


def labelled(table: Table, labels: str | None = None) -> FeatureBank:
    """Return the vectors of the rows that have a label, as a bank; warn of the others."""
    if table.vectors is None:
        kind = "texts" if table.text else "images"
        raise BankError(f"{table.where} contains {kind} and no vectors; extract their features first")
    if labels is None and table.bank is not None:
        return _plain_names(table.bank)
    table = with_labels(table, labels)
    table.warn_of_skipped()
    bank = bank_of(table.vectors, table.classes, table.class_names.get(""), table.where, provenance=table.provenance)
    if table.splits is None:
        return bank
    try:
        about: dict[str, Any] = {"provenance": bank.provenance, "splits": table.splits}
        return FeatureBank.from_arrays(bank.stored, bank.labels, bank.class_names, **about)
    except (TypeError, ValueError, AttributeError) as error:
        raise damaged_notes(table.where, error) from error


def _plain_names(bank: FeatureBank) -> FeatureBank:
    """Return the bank with names as `plain_label` returns them; classes whose names are then equal are one class."""
    labels, names, places = merged_names(bank.labels, bank.class_names)
    if names == bank.class_names:
        return bank
    splits = {name: tuple(dict.fromkeys(places[list(of_split)].tolist())) for name, of_split in bank.splits.items()}
    return replace(bank, labels=labels, class_names=names, splits=splits, recorded_hash=None)


def with_labels(table: Table, labels: str | None = None) -> Table:
    """Return the rows that have a label, as `classes`, without other columns; the others are left out and listed."""
    if labels is None and table.bank is not None:
        return table
    column = label_column(table, labels)
    classes = table.values(column) if column else table.classes
    names = {"": table.class_names[column]} if column in table.class_names else {}
    alone = replace(table, columns={}, classes=classes, class_names=names, splits=table.splits if column else None)
    lost = missing_labels(classes, table)
    if lost and len(classes) == table.n_rows:
        alone = alone.without(lost, "without label")
        return replace(alone, classes=_whole(alone.classes))
    return alone


def _whole(labels: Sequence[Any]) -> Sequence[Any]:
    """Return whole numbers that a missing one beside them made floating as what they are."""
    floating = all(isinstance(label, float) and label.is_integer() for label in labels)
    return [int(label) for label in labels] if floating else labels


def missing_labels(labels: Any, table: Table) -> dict[int, str]:
    """Return the rows without a label, each with the reason; a table in which no row has one is refused."""
    if isinstance(labels, np.ndarray) and (labels.ndim != 1 or labels.dtype.kind not in "fOUS"):
        return {}
    lost = {row: label for row, label in enumerate(labels) if is_missing(label, table.no_label)}
    if lost and len(lost) == len(labels):
        raise BankError(f"{table.where} has no row with a label; name another column, or fill some in")
    reason = "it has no label"
    if lost and _looks_merged([row not in lost for row in range(len(labels))]):
        reason += "; merged cells keep theirs in the first row alone: unmerge them and fill it in everywhere"
    written = {row: plain_label(label) for row, label in lost.items() if isinstance(label, str)}
    return {
        row: f"its label is {written[row]!r}, which means no label in this kind of file" if written.get(row) else reason
        for row in lost
    }


def _looks_merged(has_label: Sequence[bool]) -> bool:
    """Whether each row with a label has rows without one below it, as merged cells do."""
    few = 1 < sum(has_label) <= len(has_label) / 2
    return few and has_label[0] and not any(own and below for own, below in pairwise(has_label))


def label_column(table: Table, labels: str | None = None) -> str:
    """Return the column of labels; an empty name where the kind of file has the classes of its rows."""
    if labels is None and table.classes is not None:
        return ""
    if labels is not None and not table.columns:
        raise no_columns(table.where, labels)
    return find_column(table.columns, labels, table.label_names, "labels", table.where)


def without_labels(table: Table, labels: str | None = None) -> Table:
    """Keep the rows that have no label."""
    column = label_column(table, labels)
    values = table.values(column)
    rows = [row for row, label in enumerate(values) if is_missing(label, table.no_label)]
    if not rows:
        raise BankError(f"{table.where}: every row has a label in column {column!r}, so there is none to label")
    return table.of_rows(rows)


def parted(table: Table, column: str) -> tuple[Table, Table]:
    """Return the rows that have a label in a column, and those that have none."""
    without = missing_labels(table.values(column), table)
    examples = table.of_rows([row for row in range(table.n_rows) if row not in without])
    columns = {**examples.columns, column: _whole(examples.values(column))}
    return replace(examples, columns=columns), table.of_rows(sorted(without))


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
        values = _label_array(labels)
        names = None
        places = np.empty(0, np.int64)
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
