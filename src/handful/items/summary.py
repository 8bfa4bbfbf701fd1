"""What is in a catalogue, in lines that people read."""

from __future__ import annotations

from collections import Counter

from handful.arguments import counted
from handful.catalogue.events import ANSWERS
from handful.catalogue.file import CatalogueFile
from handful.items.embedding import encoder_of
from handful.items.given_vectors import measured_in
from handful.machine.untrusted import printable

# Digits of a date, as events have their times.
DATE = len("2026-11-17")


def summary(file: CatalogueFile) -> list[str]:
    r"""Return what a catalogue has: classes, items, batches, people, dates, and what made its vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from handful.items import import_labelled
    >>> file = CatalogueFile.open()
    >>> _ = import_labelled(file, (np.eye(3), ["owl", "tit", "owl"]), "monday", person="Ada")
    >>> print(*summary(file)[:3], *summary(file)[4:], sep="\n")
    2 classes, 3 items, 3 with an answer.
    Batches: monday (3)
    Said by: Ada (3)
          2  owl
          1  tit
    """
    said = file.said
    here = {item for items in said.places.values() for item in items}
    answers = said.all_answers
    lines = [
        f"{counted(len(said.classes), 'class')}, {counted(len(here), 'item')}, {len(answers):,} with an answer"
        f"{_encoder(file)}."
    ]
    batches = [(name, len(items)) for name, items in said.places.items() if items]
    events = {event.event: event for event in file.history.events}
    people = Counter(events[one.event].person for some in answers.values() for one in some)
    for heading, found in (("Batches", batches), ("Said by", people.most_common())):
        named = [f"{printable(name)} ({n:,})" for name, n in found if name]
        if named:
            lines.append(f"{heading}: {', '.join(named)}")
    dates = sorted(event.time[:DATE] for event in file.history.events if event.kind in ANSWERS)
    if dates:
        lines.append(f"Said on: {dates[0]} to {dates[-1]}" if dates[0] < dates[-1] else f"Said on: {dates[0]}")
    if said.disputed:
        lines.append(f"Disputed: {counted(len(said.disputed), 'item')}, about which people said different things")
    sizes = Counter(one.label for one in said.answers.values() if one.label is not None)
    for name, n in sorted(sizes.items(), key=lambda one: (-one[1], one[0])):
        lines.append(f"{n:7,}  {printable(name)}")
    return lines


def _encoder(file: CatalogueFile) -> str:
    encoder = encoder_of(file)
    if encoder is not None:
        return f", embedded by {encoder.name}"
    measured = measured_in(file)
    return f", measured in {counted(len(measured), 'column')}" if measured else ""
