"""Corrections: what a person said about items of a batch, as the page saves it and `classify` takes it back.

A file is JSON, `{"handful_corrections": 2, "batch": …, "corrections": […], "new_classes": […], "confirmed": […],
"none_of_these": […]}`. `batch` is the fingerprint of the batch. An item is its row in the batch and its name there,
`{"row": 12, "item": "a.jpg"}`; one that is corrected or confirmed also has a `label`. A new class is `{"label": …,
"items": […]}`. Items under `none_of_these` belong to no class.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from handful.banks.class_names import plain_label
from handful.classification.labelled import NONE, Batch
from handful.errors import FileFormatError, LabelError
from handful.exchange.label_studio import annotated
from handful.machine.untrusted import read_json

FORMAT, VERSION = "handful_corrections", 2


class GivenLabel(NamedTuple):
    """The label that a person gave to the item of a row; None for none of the classes.

    `new` says whether the catalogue lacks the class; None if the file does not say.
    """

    row: int
    item: str
    label: str | None
    new: bool | None


@dataclass(frozen=True)
class Corrections:
    """Labels that a person gave to items of one batch.

    Attributes
    ----------
    batch : str
        Fingerprint of the batch.
    labels : tuple of GivenLabel
        One entry per item, confirmed ones included.
    """

    batch: str
    labels: tuple[GivenLabel, ...]

    @classmethod
    def of(cls, labels: Mapping[int, Any], rows: Sequence[int], names: Sequence[str], fingerprint: str) -> Corrections:
        """Take them from a mapping of rows to labels, or to None for none of the classes."""
        names_of = dict(zip(rows, names, strict=True))
        wrong = next((row for row in labels if row not in names_of), None)
        if wrong is not None:
            raise LabelError(f"a label was given for row {wrong!r}, but the batch has no such row, counted from 0")
        said = (
            GivenLabel(row, names_of[row], None if k is None else str(plain_label(k)), None)
            for row, k in labels.items()
        )
        return cls(fingerprint, tuple(said))

    def check(self, fingerprint: str) -> None:
        """Refuse them if they are for another batch than the one with this fingerprint."""
        if self.batch != fingerprint:
            raise LabelError(
                "the corrections are for another batch, or its items have changed since; use the page that was written "
                "for this batch"
            )

    def of_batch(self, batch: Batch, class_names: Sequence[str]) -> tuple[dict[int, int | None], tuple[str, ...]]:
        """Return positions of items to positions of classes, and the names of the new classes that follow the others.

        An item of no class has None.

        Parameters
        ----------
        batch
            The batch that the corrections are for; another one is refused.
        class_names
            Names of the classes of the catalogue.
        """
        self.check(batch.fingerprint)
        places = {row: position for position, row in enumerate(batch.rows)}
        codes = {name: k for k, name in enumerate(class_names)}
        named: dict[str, int] = {}
        given = dict[int, int | None]()
        for one in self.labels:
            if one.row not in places or batch.names[places[one.row]] != one.item:
                raise LabelError(f"the corrections name the item {one.item!r} in row {one.row}, but it is not there")
            # An export of Label Studio has it as a choice like any other.
            if one.label is None or (one.new is None and one.label == NONE not in codes):
                given[places[one.row]] = None
                continue
            if one.new and one.label in codes:
                raise LabelError(
                    f"the corrections have a new class {one.label!r}, but the catalogue has it; "
                    "write its items under 'corrections'"
                )
            if one.new is False and one.label not in codes:
                raise LabelError(
                    f"the corrections give item {one.item!r} the label {one.label!r}, which the catalogue does not "
                    "have; use the catalogue that the page was made with, or write it under 'new_classes'"
                )
            code = codes.get(one.label)
            given[places[one.row]] = named.setdefault(one.label, len(codes) + len(named)) if code is None else code
        return given, tuple(named)


def read_corrections(path: str | os.PathLike[str]) -> Corrections:
    """Read a file of corrections, or an export of Label Studio; anything else is refused.

    Examples
    --------
    >>> import json, tempfile
    >>> place = Path(tempfile.mkdtemp()) / "today.corrections.json"
    >>> item = {"row": 12, "item": "a.jpg"}
    >>> content = {"corrections": [], "new_classes": [{"label": "crab", "items": [item]}], "confirmed": []}
    >>> content = {"handful_corrections": 2, "batch": "12ab", **content, "none_of_these": []}
    >>> _ = place.write_text(json.dumps(content))
    >>> read_corrections(place).labels
    (GivenLabel(row=12, item='a.jpg', label='crab', new=True),)
    """
    place = Path(path)
    content = read_json(place, FileFormatError, "a file of corrections, or an export of Label Studio,")
    try:
        if isinstance(content, list):
            said = annotated(content, str(place))
            batch = said.batch
            labels = tuple(GivenLabel(_whole(row), item, label, None) for row, item, label in said.labels)
        else:
            if content[FORMAT] != VERSION:
                raise ValueError(f"it says version {content[FORMAT]!r}, expected {VERSION}")
            batch, labels = _text(content["batch"]), tuple(_labels(content))
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{place} is not a file of corrections ({type(error).__name__}: {error}); save it again from the page"
        ) from error
    first: dict[int, GivenLabel] = {}
    for one in labels:
        if first.setdefault(one.row, one) != one:
            raise FileFormatError(
                f"{place} gives item {one.item!r} more than one label, {first[one.row].label!r} and {one.label!r}; "
                "keep one"
            )
    return Corrections(batch, tuple(first.values()))


def _labels(content: dict[str, Any]) -> Iterator[GivenLabel]:
    for one in (*content["corrections"], *content["confirmed"]):
        yield GivenLabel(_whole(one["row"]), _text(one["item"]), _label(one["label"]), False)
    for one in content["none_of_these"]:
        yield GivenLabel(_whole(one["row"]), _text(one["item"]), None, None)
    for new in content["new_classes"]:
        for one in new["items"]:
            yield GivenLabel(_whole(one["row"]), _text(one["item"]), _label(new["label"]), True)


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
