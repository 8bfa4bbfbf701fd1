"""Corrections: what a person said about items of a batch, as the page saves it and `classify` takes it back.

A file is JSON, `{"handful_corrections": 3, "corrections": […], "new_classes": […], "confirmed": […], "none_of_these":
[…]}`. An item is its row in the batch, its name there, and a hash of its content, `{"row": 12, "item": "a.jpg",
"content": "5d41…"}`; one that is corrected or confirmed also has a `label`. A new class is `{"label": …, "items":
[…]}`. Items under `none_of_these` belong to no class; one with `"bad": true` is unfit to be labelled.

The batch may have changed since. An item is found by its content, among several of equal content by its name, and
among several of equal name by its row. What is not found is not applied, and listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from handful.classification.batch import Batch
from handful.classification.labelled import NONE
from handful.errors import FileFormatError, LabelError
from handful.estimators.given import no_such_class, refuse_missing
from handful.machine.untrusted import read_json
from handful.reading.class_names import plain_label
from handful.reading.field import GivenLabel
from handful.reading.registry import given_formats
from handful.reading.table import Skipped

FORMAT = "handful_corrections"
VERSION = 3


def found_in(batch: Batch, labels: Sequence[GivenLabel]) -> tuple[dict[int, GivenLabel], tuple[Skipped, ...]]:
    """Return the labels of items of this batch, by their positions in it, and those not found there.

    If nothing is found, the labels are for another batch, which is refused.
    """
    if not labels:
        return {}, ()
    of_content = dict[str, list[int]]()
    names = set(batch.names)
    for position in range(len(batch.rows)):
        of_content.setdefault(batch.content(position), []).append(position)
    found = dict[int, list[GivenLabel]]()
    lost = list[Skipped]()
    for one in labels:
        equal = of_content.get(one.content, [])
        for value, values in ((one.item, batch.names), (one.row, batch.rows)):
            equal = equal if len(equal) < 2 else [position for position in equal if values[position] == value]
        if len(equal) == 1:
            found.setdefault(equal[0], []).append(one)
        elif one.content in of_content:
            lost.append(
                Skipped(
                    one.row,
                    one.item,
                    "several items of the batch have this content, and its name does not tell which",
                )
            )
        else:
            reason = "it has changed since" if one.item in names else "it is not in the batch"
            lost.append(Skipped(one.row, one.item, reason))
    for position, several in list(found.items()):
        if len({one.label for one in several}) > 1:
            two = " and ".join(repr(one.label) for one in several[:2])
            lost += [Skipped(one.row, one.item, f"it was given more than one label, {two}") for one in several]
            del found[position]
    if not found:
        raise LabelError(
            f"the corrections are for another batch: none of the {len(labels):,} items is in this one, for "
            f"instance {lost[0]}; use corrections of this batch"
        )
    return {position: several[0] for position, several in found.items()}, tuple(lost)


def given_to_rows(labels: Mapping[int, Any], batch: Batch) -> dict[int, GivenLabel]:
    """Return the labels given to rows of this batch, by the positions of the items."""
    position_of = {row: position for position, row in enumerate(batch.rows)}
    found = dict[int, GivenLabel]()
    for row, label in labels.items():
        if row not in position_of:
            raise LabelError(f"a label was given for row {row!r}, but the batch has no such row, counted from 0")
        refuse_missing(row, label)
        name = batch.names[position_of[row]]
        found[position_of[row]] = GivenLabel(row, name, "", None if label is None else str(plain_label(label)), None)
    return found


def labels_of(
    found: Mapping[int, GivenLabel], classes: Sequence[str], new_classes: Sequence[str], *, chosen: bool
) -> dict[int, str | None]:
    """Return the label of each item, None for none of the classes; refuse those that are neither classes nor new.

    With `chosen`, labels come from a file, where people chose them from a list: a choice that is no class was added to
    that list, and is a new one. Otherwise they were typed, and one that is no class may be a mistake.
    """
    known = {*classes, *new_classes}
    labels = dict[int, str | None]()
    for position, one in found.items():
        if one.label is None or (one.new is None and one.label == NONE not in known):
            labels[position] = None  # an export of another tool has it as a choice like any other
        elif one.new or one.label in known or (chosen and one.new is None):
            labels[position] = one.label
        else:
            raise no_such_class(f"item {one.item!r}", one.label, known)
    return labels


def read_corrections(path: str | os.PathLike[str]) -> tuple[GivenLabel, ...]:
    """Read a file of corrections, or labels that another tool exported; anything else is refused.

    Examples
    --------
    >>> import json, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "today.corrections.json"
    >>> item = {"row": 12, "item": "a.jpg", "content": "5d41402abc4b2a76"}
    >>> content = {"corrections": [], "new_classes": [{"label": "crab", "items": [item]}], "confirmed": []}
    >>> _ = file.write_text(json.dumps({"handful_corrections": 3, **content, "none_of_these": []}))
    >>> read_corrections(file)
    (GivenLabel(row=12, item='a.jpg', content='5d41402abc4b2a76', label='crab', new=True, bad=False),)
    """
    file = Path(path)
    others = given_formats()
    content = read_json(file, FileFormatError, " or ".join(["a file of corrections,", *(one.title for one in others)]))
    format_of_tool = next((one for one in others if one.holds(content)), None)
    try:
        if format_of_tool is not None:
            labels = tuple(one._replace(row=_whole(one.row)) for one in format_of_tool.read(content, str(file)))
        else:
            if content[FORMAT] != VERSION:
                raise FileFormatError(
                    f"{file} has corrections in format {content[FORMAT]!r}, and this handful reads {VERSION}; update "
                    "handful if a later version wrote it, or else save them again with this version"
                )
            labels = tuple(_labels(content))
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{file} is not a file of corrections ({type(error).__name__}: {error}); `handful review` writes such files"
        ) from error
    first: dict[tuple[int, str, str], GivenLabel] = {}
    for one in labels:
        if first.setdefault(one[:3], one) != one:
            raise FileFormatError(
                f"{file} gives item {one.item!r} more than one label, {first[one[:3]].label!r} and {one.label!r}; "
                "keep one"
            )
    return tuple(first.values())


def _labels(content: dict[str, Any]) -> Iterator[GivenLabel]:
    for one in (*content["corrections"], *content["confirmed"]):
        yield GivenLabel(*_item(one), _label(one["label"]), False)
    for one in content["none_of_these"]:
        yield GivenLabel(*_item(one), None, None, one.get("bad") is True)
    for new in content["new_classes"]:
        for one in new["items"]:
            yield GivenLabel(*_item(one), _label(new["label"]), True)


def _item(one: Any) -> tuple[int, str, str]:
    return _whole(one["row"]), _text(one["item"]), _text(one["content"])


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text, got {value!r}")
    return value


def _label(value: Any) -> str:
    return str(plain_label(_text(value)))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected the number of a row, got {value!r}")
    return value
