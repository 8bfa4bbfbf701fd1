"""What is known about the items of a file, as lists and tables of classes, and as columns of the file itself.

`Known` has the arguments of every function; about files they can also be

- `prior`: the path of a table of classes and weights, see `handful.reading.class_lists`. With the column that groups
  have, each group has its own.
- `candidates`: the path of a list of the classes that can occur, one per line, or of a table with the columns `class`
  and a column of the batch, such as the site or the item: the only classes of the items with this value. Or, for mass
  spectra, a rule such as `precursor:0.01`: only compounds of the catalogue with a precursor this close, in Da, are
  candidates of a spectrum, and one without candidates belongs to no class; both sides need a column `precursor_mz`.
- `sequence`, `pool`, `order`: columns of the batch. Where the numbers of a sequence start again in every group, the
  columns of the group are part of it.
- `coarse`: the column of the catalogue that has the coarse class of each example; the path of a table with the columns
  `class` and `coarse`; or, of classes with a taxonomy such as those of SpeciesNet, `genus`, `family`, `order` or
  `class`.
- `expect_unknown`: the path of predictions of an earlier batch, best of one that was reviewed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import column_names
from handful.classification.batch import Batch
from handful.classification.labelled import NONE
from handful.errors import FileFormatError, LabelError, OptionError
from handful.estimators.context import Known, no_argument
from handful.estimators.given import new_class_names, no_such_class, refuse_missing
from handful.estimators.unknown_share import UnknownShare
from handful.extraction.options import Reading
from handful.machine.untrusted import finite
from handful.reading.class_lists import read_candidates, read_coarse, read_weights, taxa
from handful.reading.class_names import is_missing, plain_label
from handful.reading.field import TAXA
from handful.reading.labels import label_column
from handful.reading.read import read
from handful.reading.table import Columns, Table


def columns_named(known: Known) -> tuple[str, ...]:
    """Return the columns of the batch that are named."""
    if unknown := set(known) - set(Known.__annotations__):
        raise no_argument(min(unknown), Known, Reading.__annotations__)
    asked = {role: known.get(role) for role in ("sequence", "pool", "order")}
    named = {role: one for role, one in asked.items() if one is not None and not isinstance(one, bool)}
    return tuple(name for role, one in named.items() for name in column_names(role, one))


def read_known(known: Known, batch: Batch, classes: Sequence[str], columns: Mapping[str, Any] | None = None) -> Known:
    """Read the files, take the columns, and find the items; return what is known.

    Labels in `given` are by positions in the batch. `columns` are those of the batch by name, if there are others than
    its own; the name of an item is the column `item`.
    """
    found = Known()
    labels = _given_labels(known, batch, classes)
    if labels:
        found["given"] = labels
    classes = (*classes, *new_labels(labels, classes))
    columns = {"item": list(batch.names), **(batch.columns.by_name if columns is None else columns)}
    groups = batch.groups
    if (prior := known.get("prior")) is not None:
        if isinstance(prior, (str, os.PathLike)):
            column = groups.columns[0] if groups is not None and len(groups.columns) == 1 else ""
            prior = read_weights(Path(prior), classes, column, [] if groups is None else groups.names.tolist())
        found["prior"] = prior
    if (candidates := known.get("candidates")) is not None:
        if isinstance(candidates, (str, os.PathLike)):
            candidates = read_candidates(Path(candidates), classes, columns)
            if isinstance(candidates, tuple):
                name, allowed = candidates
                candidates = [allowed.get(str(value)) for value in _values(columns, name)]
        found["candidates"] = candidates
    if (sequence := known.get("sequence")) is not None:
        found["sequence"] = _sequence(columns, column_names("sequence", sequence))
    if (pool := known.get("pool")) is not None and pool is not False:
        found["pool"] = True if pool is True else _column(columns, column_names("pool", pool))
    if (order := known.get("order")) is not None:
        found["order"] = _column(columns, (order,))
    if (coarse := known.get("coarse")) is not None:
        found["coarse"] = coarse if isinstance(coarse, Mapping) else _coarse(coarse, classes)
    if (expected := known.get("expect_unknown")) is not None:
        found["expect_unknown"] = _after(Path(expected)) if isinstance(expected, (str, os.PathLike)) else expected
    return found


def new_labels(given: Mapping[int, str | None], classes: Collection[str]) -> tuple[str, ...]:
    """Return the labels given to items that are no classes yet."""
    known = set(classes)
    return tuple(dict.fromkeys(label for label in given.values() if label is not None and label not in known))


def _after(predictions: Path) -> UnknownShare:
    """Count the unknown items of an earlier batch, by the column of its predictions."""
    if not os.path.isfile(predictions):
        raise OptionError(
            f"expect_unknown is {predictions}: neither a share such as 0.3, nor a range such as 0.1-0.5, nor a file of "
            "predictions"
        )
    table = read(predictions, text="item")
    values = table.values("unknown") if "unknown" in table.columns else [""]
    if all(is_missing(chance, ("",)) for chance in values):
        raise FileFormatError(
            f"{predictions} has no probabilities in a column 'unknown'; give predictions that have them"
        )
    try:
        chances = np.array([finite(chance) for chance in values])
    except ValueError:
        chances = np.full(1, -1.0)
    if (chances < 0).any() or (chances > 1).any():
        raise FileFormatError(
            f"{predictions} must have a probability in every row of 'unknown'; give it as it was written"
        )
    return UnknownShare.after(chances)


def coarse_column(catalogue: Table, labels: str | None, column: str) -> dict[str, str]:
    """Return the coarse class of each class, by a column of the examples; they must agree."""
    found = dict[str, str]()
    names = label_column(catalogue, labels)
    rows = zip(catalogue.classes if not names else catalogue.values(names), catalogue.values(column), strict=True)
    for name, coarse in rows:
        if is_missing(name, catalogue.no_label) or is_missing(coarse, ("",)):
            continue
        own = str(plain_label(name))
        above = str(plain_label(coarse))
        if found.setdefault(own, above) != above:
            raise OptionError(
                f"examples of {own!r} have two values in the column {column!r}, {found[own]!r} and {above!r}; give "
                "each class one coarse class"
            )
    return found


def _coarse(level: Any, classes: Sequence[str]) -> dict[str, str]:
    if not isinstance(level, str) or level not in TAXA:
        if not isinstance(level, (str, os.PathLike)) or not os.path.isfile(level):
            raise OptionError(
                f"coarse is {level!r:.60}: neither a column of the catalogue, nor a table, nor a level of taxa"
            )
        return read_coarse(Path(level), classes)
    found = taxa(classes, str(level))
    if not found:
        raise OptionError(
            f"the classes do not say their {level}, such as {classes[0]!r}; give a table of coarse classes"
        )
    return found


def _given_labels(known: Known, batch: Batch, classes: Sequence[str]) -> dict[int, str | None]:
    """Return the labels given to rows, by positions of items; refuse those that are neither classes nor new."""
    given = known.get("given")
    new = known.get("new_classes")
    new_classes = [] if new is None else list(map(str, new_class_names(new)))
    if given is None:
        if new_classes:
            raise OptionError("new_classes lists labels of given that are new, but no label is given; leave it out")
        return {}
    if not isinstance(given, Mapping):
        raise LabelError(
            f"given must map rows of the batch, counted from 0, to labels, got {given!r:.60}; labels in a "
            "file join a catalogue: handful catalogue add"
        )
    position_of = {row: position for position, row in enumerate(batch.rows)}
    there = {*classes, *new_classes}
    labels = dict[int, str | None]()
    for row, label in given.items():
        if row not in position_of:
            raise LabelError(f"a label was given for row {row!r}, but the batch has no such row, counted from 0")
        refuse_missing(row, label)
        name = None if label is None else str(plain_label(label))
        position = position_of[row]
        if name == NONE and NONE not in there:
            name = None
        if name is not None and name not in there:
            raise no_such_class(f"item {batch.names[position]!r}", name, there)
        labels[position] = name
    return labels


def _values(columns: Mapping[str, Any], name: str) -> list[Any]:
    return Columns({name: columns[name]}).values()[name]


def _sequence(columns: Mapping[str, Any], names: Sequence[str]) -> npt.NDArray[Any]:
    """Return the value of each item, or None; a tuple of several columns."""
    found = _column(columns, names)
    for item, value in enumerate(found.tolist()):
        parts = value if isinstance(value, tuple) else (value,)
        odd = next((part for part in parts if isinstance(part, (list, dict))), None)
        if odd is not None:
            raise FileFormatError(
                f"column {names[0]!r} must contain text or numbers, got {odd!r:.80}; name another column"
            )
        if "" in parts:
            found[item] = None
    return found


def _column(columns: Mapping[str, Any], names: Sequence[str]) -> npt.NDArray[Any]:
    """Return the value of each item; a tuple of several columns."""
    values = [_values(columns, name) for name in names]
    found = np.empty(len(values[0]), dtype=object)
    found[:] = values[0] if len(values) == 1 else list(zip(*values, strict=True))
    return found
