"""Join a copy of a catalogue to another: all that was said in either was said in both.

Events have names of their own, so the union is well defined. Items are the same where their keys are, contents where
their hashes are. What people said about one item without having seen one another's answer stays, and is disputed.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import NamedTuple

from handful.catalogue.events import Event
from handful.catalogue.file import CatalogueFile, ItemContent, encoder_number, insert_event, insert_item
from handful.catalogue.vectors import EncoderId, unpacked
from handful.errors import FileFormatError


class Joined(NamedTuple):
    """What a copy brought: events, items, and items about which people now disagree."""

    n_events: int
    n_items: int
    disputed: tuple[int, ...]


def join(catalogue: CatalogueFile, copy: CatalogueFile, *, person: str = "") -> Joined:
    """Add everything of `copy` to a catalogue; `copy` stays as it is.

    Examples
    --------
    >>> from handful.catalogue.events import EventItem
    >>> from handful.catalogue.file import Arrival
    >>> mine = CatalogueFile.open()
    >>> yours = CatalogueFile.open()
    >>> for one, name in ((mine, "fox"), (yours, "wolf")):
    ...     _ = one.arrive("monday", [Arrival("a.jpg", ItemContent(b"a", "image"))])
    ...     _ = one.append("named", {"label": name}, [EventItem(1)])
    >>> join(mine, yours)
    Joined(n_events=2, n_items=0, disputed=(1,))
    """
    with catalogue.writing() as connection:
        catalogue.refresh()  # here, so that nobody says anything between this and what is written
        copy.refresh()
        before = set(catalogue.said.disputed)
        new = [event for event in copy.history.events if event.event not in catalogue.history]
        if not new:
            return Joined(0, 0, ())
        numbers, n_items = _copy_items(connection, copy)
        for encoder in copy.encoders:
            _copy_vectors(connection, copy, encoder)
        for event in new:
            items = tuple(one._replace(item=numbers[one.item]) for one in event.items)
            insert_event(connection, replace(event, items=items))
        heads = (*catalogue.history.head, *copy.history.head)
        if not all(head in copy.history for head in catalogue.history.head):
            last = max(catalogue.revision, copy.revision)
            insert_event(connection, Event.made("joined", {}, (), revision=last + 1, after=heads, person=person))
    catalogue.refresh()
    disputed = tuple(item for item in catalogue.said.disputed if item not in before)
    return Joined(len(new), n_items, disputed)


def _copy_items(connection: sqlite3.Connection, copy: CatalogueFile) -> tuple[dict[int, int], int]:
    """Add the items of a copy; return the number here of each, and how many are new."""
    here = {key: item for item, key in connection.execute("SELECT item, key FROM items")}
    known = len(here)
    keys = dict(copy.keys())
    numbers = {}
    for row in copy.rows(list(keys)):
        key = keys[row.item]
        if key not in here:
            content = ItemContent(row.hash, row.kind, row.text)
            columns = None if row.columns is None else json.dumps(row.columns, ensure_ascii=False)
            here[key] = insert_item(connection, key, row.batch, content, columns)
        numbers[row.item] = here[key]
    return numbers, len(here) - known


def _copy_vectors(connection: sqlite3.Connection, copy: CatalogueFile, encoder: EncoderId) -> None:
    """Add the vectors of a copy, as they are kept."""
    number, dim = encoder_number(connection, encoder, copy.dim(encoder))
    if dim != copy.dim(encoder):
        raise FileFormatError(
            f"vectors of {encoder.name} have other lengths in the copy; join a copy of this catalogue"
        )
    for some in copy.kept_vectors(encoder):
        unpacked([blob for _, blob in some], dim, encoder.bits, "the copy")  # refuses what would damage this file
        connection.executemany(
            "INSERT OR IGNORE INTO vectors (content, encoder, numbers) "
            "SELECT content, ?, ? FROM contents WHERE hash = ?",
            [(number, blob, key) for key, blob in some],
        )
