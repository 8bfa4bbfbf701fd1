"""What should be looked at in a catalogue: its examples, what people disagree on, and files that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.classification.findings import KINDS, Finding, Source, findings_about
from handful.fitted import FittedModel
from handful.items.bringing import FILE, FOLDER
from handful.items.fitting import examples_in, model_of, names_of_items
from handful.machine.outputs import linked_file

# Letters of a date.
DATE = len("2026-11-17")


@dataclass(frozen=True, eq=False)
class Checked:
    """What was found in a catalogue.

    Attributes
    ----------
    model : FittedModel
        Its model, whose examples have the numbers of their items as positions.
    sources : mapping of int to Source
        Where the examples came from, and who said what they are.
    findings : list of Finding
        What should be looked at, by kind.
    """

    model: FittedModel
    sources: Mapping[int, Source]
    findings: list[Finding]


def check_file(file: CatalogueFile, *, fewest: int = 2, installed: str = "") -> Checked:
    """Return what should be looked at in a catalogue.

    Parameters
    ----------
    file
        The catalogue.
    fewest
        Classes with fewer examples than this are listed.
    installed
        The encoder of that name on this machine, as a record has it; empty if that is not known.

    Examples
    --------
    >>> from handful.items import import_labelled
    >>> file = CatalogueFile.open()
    >>> _ = import_labelled(file, (np.eye(4)[[0, 1, 2, 3]], ["ant", "ant", "bee", "Bee"]), "monday")
    >>> for finding in check_file(file).findings:
    ...     print(f"{finding.kind}: {finding.message}")
    names: 'Bee' (1) and 'bee' (1) look alike; merge them if they are the same class.
    few: Bee has 1 example; add more.
    few: bee has 1 example; add more.
    """
    model = model_of(file)
    items = np.array(list(examples_in(file)), np.int64)
    examples = replace(model.examples, positions=items[model.examples.positions])
    model = replace(model, examples=examples).with_fitted(model.head, model.unknown_model)
    sources = _sources(file, items.tolist())
    folder = Path() if file.path is None else linked_file(file.path).parent
    found = [*findings_about(model, sources, folder, fewest=fewest, installed=installed), *_disputed(file)]
    order = list(KINDS)
    return Checked(model, sources, sorted(found, key=lambda one: order.index(one.kind)))


def _sources(file: CatalogueFile, items: list[int]) -> dict[int, Source]:
    rows = file.rows(items)
    events = {event.event: event for event in file.history.events}
    sources = {}
    for row, name in zip(rows, names_of_items(file, rows), strict=True):
        event = events[file.said.answers[row.item].event]
        about = file.said.sources.get(row.batch, {})
        where = str(about.get(FOLDER) or about.get(FILE) or "")
        sources[row.item] = Source(name, where, event.person, event.time[:DATE], row.batch)
    return sources


def _disputed(file: CatalogueFile) -> list[Finding]:
    rows = file.rows(list(file.said.disputed))
    found = []
    for row, name in zip(rows, names_of_items(file, rows), strict=True):
        labels = tuple(sorted({str(one.label or one.kind) for one in file.said.disputed[row.item]}))
        said = " and ".join(repr(label) for label in labels)
        message = f"Item {row.item} ({name} of {row.batch}) was called {said}; say what it is."
        found.append(Finding("disputed", message, (row.item,), labels))
    return found
