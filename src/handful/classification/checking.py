"""What should be looked at in a catalogue: its examples, what people disagree on, and files that are gone."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.classification.page_data import SMALL, pictures
from handful.fitted import FittedModel, Record, Source
from handful.fitted.check import KINDS, Finding, check_catalogue
from handful.fitted.record import shown_rows
from handful.items.bringing import FILE, FOLDER
from handful.items.fitting import examples_in, model_of, names_of_items
from handful.items.looking_up import pictures_of
from handful.machine.outputs import linked_file

# Digits of the hash of a content, and letters of a date.
CONTENT_DIGITS = 16
DATE = len("2026-11-17")


def check_file(file: CatalogueFile, *, fewest: int = 2, installed: str = "") -> tuple[FittedModel, list[Finding]]:
    """Return the model of a catalogue, whose examples have the numbers of their items, and what should be looked at.

    Parameters
    ----------
    file
        The catalogue.
    fewest
        Classes with fewer examples than this are listed.
    installed
        The encoder of that name on this machine, as a record has it; empty if that is not known.
    """
    model = described_model(file)
    folder = Path() if file.path is None else linked_file(file.path).parent
    found = [*check_catalogue(model, folder, fewest=fewest, model=installed), *_disputed(file)]
    order = list(KINDS)
    return model, sorted(found, key=lambda one: order.index(one.kind))


def described_model(file: CatalogueFile) -> FittedModel:
    """Return the model of a catalogue with where its examples are, who said what they are, and how some look."""
    model = model_of(file)
    items = list(examples_in(file))
    rows = file.rows(items)
    events = {event.event: event for event in file.history.events}
    sources = {}
    for row, name in zip(rows, names_of_items(file, rows), strict=True):
        event = events[file.said.answers[row.item].event]
        about = file.said.sources.get(row.batch, {})
        where = str(about.get(FOLDER) or about.get(FILE) or "")
        sources[row.item] = Source(
            name,
            where,
            row.hash.hex()[:CONTENT_DIGITS],
            event.person,
            event.time[:DATE],
            row.batch,
        )
    positions = model.examples.positions
    examples = replace(model.examples, positions=np.array(items, np.int64)[positions])
    record = Record(model.record.encoder, model.record.kind, sources=sources, previews=_previews(file, items, model))
    changed = replace(model, examples=examples, record=record)
    return changed.with_fitted(model.head, model.unknown_model)


def _previews(file: CatalogueFile, items: list[int], model: FittedModel) -> dict[int, str | bytes]:
    """Return texts or small pictures of some examples."""
    some = [int(model.examples.positions[row]) for row in shown_rows(model.examples.labels)]
    contents = pictures_of(file, [items[at] for at in some]) if some else None
    if contents is None:
        return {}
    if isinstance(contents, tuple):
        return {items[at]: text for at, text in zip(some, contents, strict=True)}
    drawn = pictures(contents, range(len(some)), SMALL)
    return {items[at]: base64.b64decode(one) for at, one in zip(some, drawn, strict=True) if one is not None}


def _disputed(file: CatalogueFile) -> list[Finding]:
    rows = file.rows(list(file.said.disputed))
    found = []
    for row, name in zip(rows, names_of_items(file, rows), strict=True):
        labels = tuple(sorted({str(one.label or one.kind) for one in file.said.disputed[row.item]}))
        said = " and ".join(repr(label) for label in labels)
        message = f"Item {row.item} ({name} of {row.batch}) was called {said}; say what it is."
        found.append(Finding("disputed", message, (row.item,), labels))
    return found
