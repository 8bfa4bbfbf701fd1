"""bring: a batch joins a catalogue, or is looked at again; only what is new in it is embedded."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

from handful.catalogue.arrivals import Changes
from handful.catalogue.events import ANSWERS
from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from handful.extraction.items import CALLED
from handful.extraction.options import Reading
from handful.items.embedding import embed, not_read, planned
from handful.items.given_vectors import FEATURES, measured_in
from handful.items.listing import ItemType, Listing, listed
from handful.items.stamps import Stamps
from handful.machine.outputs import linked_file
from handful.machine.untrusted import printable
from handful.progress import Listener
from handful.reading.table import Skipped

# What items of each kind are called, one and several.
WORDS: dict[ItemType, tuple[str, str]] = {"image": CALLED["image"], "text": CALLED["text"], "vector": ("row", "rows")}
# What an arrival says about where its batch came from.
FOLDER = "folder"
FILE = "file"
READING = "reading"
MEMORY = "memory"
# Options that are not about a batch: the catalogue knows its encoder, and each machine has devices of its own.
NOT_READING = ("encoder", "device")


@dataclass(frozen=True)
class Brought:
    """What is new in a batch; as text, one line.

    Attributes
    ----------
    batch : str
        Its name.
    kind : "image", "text" or "vector"
        What its items are.
    n_items : int
        Items that are there now.
    new, gone, back, moved : tuple of int
        Items that were not there before, went, came back, and have another place.
    n_changed : int
        Places whose content is another one: of each, an old item is gone and a new one is there.
    n_embedded : int
        Contents that were embedded.
    skipped : tuple of Skipped
        What was left out, or cannot be read and so has no vector, and why.
    by_row : bool
        Whether places are numbers of rows; that rows shift is no news.

    Examples
    --------
    >>> print(Brought("monday", "image", 325, new=(7, 8, 9), gone=(1, 2), n_changed=1, moved=(5,)))
    2 photographs are new, 1 is gone, 1 was moved, 1 was changed
    >>> print(Brought("monday", "image", 325))
    325 photographs, nothing has changed
    """

    batch: str
    kind: ItemType
    n_items: int
    new: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    back: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    n_changed: int = 0
    n_embedded: int = 0
    skipped: tuple[Skipped, ...] = ()
    by_row: bool = False

    def __str__(self) -> str:
        counts = {
            ("is new", "are new"): len(self.new) - self.n_changed,
            ("is gone", "are gone"): len(self.gone) - self.n_changed,
            ("was moved", "were moved"): 0 if self.by_row else len(self.moved),
            ("was changed", "were changed"): self.n_changed,
            ("came back", "came back"): len(self.back),
        }
        parts = [(n, verbs[n != 1]) for verbs, n in counts.items() if n]
        word = WORDS[self.kind]
        if not parts:
            return f"{self.n_items:,} {word[self.n_items != 1]}, nothing has changed"
        (n, verb), *others = parts
        return ", ".join([f"{n:,} {word[n != 1]} {verb}", *(f"{more:,} {said}" for more, said in others)])


def bring(
    catalogue: CatalogueFile,
    batch: str,
    data: Any = None,
    *,
    person: str = "",
    on_progress: Listener | None = None,
    **reading: Unpack[Reading],
) -> Brought:
    """Say what is in a batch now, and embed what is new.

    What is there is compared before anything is embedded, and what went keeps its answers. Called again after it was
    interrupted, it goes on.

    Parameters
    ----------
    catalogue
        The catalogue that the batch belongs to.
    batch
        Name of the batch.
    data
        A folder or file, an array, a frame or a list: anything that `handful.read` reads; by default where the batch
        came from last.
    person
        Who brings it.
    on_progress
        Called with a `handful.progress.Progress` while images or sentences are embedded.
    **reading
        How it is read and embedded, see `Reading`; by default the encoder of the catalogue.

    Examples
    --------
    >>> import numpy as np
    >>> catalogue = CatalogueFile.open()
    >>> print(bring(catalogue, "monday", np.eye(3)))
    3 rows are new
    >>> print(bring(catalogue, "monday", np.eye(3)[1:]))
    1 row is gone
    """
    if data is None:
        data, reading = _as_before(catalogue, batch, reading)
    stamps = Stamps.read(catalogue.cached(stamps_of(batch)))
    listing = listed(data, stamps=stamps, measured=measured_in(catalogue), **reading)
    return take_in(catalogue, batch, listing, reading, person=person, on_progress=on_progress)


def take_in(
    catalogue: CatalogueFile,
    batch: str,
    listing: Listing,
    reading: Reading,
    *,
    labels: Mapping[str, str] | None = None,
    person: str = "",
    on_progress: Listener | None = None,
) -> Brought:
    """Bring what was listed; items at the places of `labels` are named, unless they have had an answer."""
    if not batch.strip():
        raise OptionError("a batch needs a name")
    measured = measured_in(catalogue)
    if listing.features and not measured and catalogue.encoders:
        raise OptionError(
            f"{listing.where} has measurements, and this catalogue has vectors of a model; make a catalogue of its own "
            "for them"
        )
    embedding = planned(catalogue, listing, reading)
    before = dict(catalogue.said.places.get(batch, {}))
    about = _about(catalogue, listing, reading)
    changes = catalogue.arrive(batch, listing.arrivals, person=person, about=about, by_row=listing.by_row)
    here = catalogue.said.places[batch]
    if labels is not None:
        _name(catalogue, here, labels, person)
    if listing.stamps.files and (written := listing.stamps.written()) != catalogue.cached(stamps_of(batch)):
        catalogue.cache(stamps_of(batch), written)
    lost = embed(catalogue, listing, embedding, on_progress=on_progress)
    unread = not_read(listing, embedding)
    n_embedded = 0 if listing.vectors is not None else len(embedding.missing) - len(lost)
    return _brought(batch, listing, changes, before, here, n_embedded, (*listing.skipped, *unread, *lost))


def _brought(
    batch: str,
    listing: Listing,
    changes: Changes,
    before: Mapping[int, str],
    here: Mapping[int, str],
    n_embedded: int,
    skipped: tuple[Skipped, ...],
) -> Brought:
    new = tuple(sorted(item for item in here if item not in before and item not in changes.back))
    left = {before[item] for item in changes.gone}
    replaced = left & {one.place for one in changes.new}
    return Brought(
        batch,
        listing.kind,
        len(listing.arrivals),
        new,
        tuple(changes.gone),
        tuple(changes.back),
        tuple(changes.moved),
        0 if listing.by_row else len(replaced),
        n_embedded,
        skipped,
        listing.by_row,
    )


def _name(catalogue: CatalogueFile, here: Mapping[int, str], labels: Mapping[str, str], person: str) -> None:
    """Name the items that have a label and about which nobody has said anything yet."""
    said = _spoken_of(catalogue)
    groups: dict[str, list[int]] = {}
    for item, place in here.items():
        if place in labels and item not in said:
            groups.setdefault(labels[place], []).append(item)
    if groups:
        catalogue.name_all(groups, person=person)


def _spoken_of(catalogue: CatalogueFile) -> Collection[int]:
    return {item for event in catalogue.history.events if event.kind in ANSWERS for item in event.answered}


# -- where a batch came from -------------------------------------------------------------------------------------------


def stamps_of(batch: str) -> str:
    """Return the name of the cache of stamps of a batch."""
    return f"stamps of {batch}"


def name_of(path: Path) -> str:
    """Return what a batch is called: the name of its folder, or of its file without the ending."""
    whole = Path(os.path.abspath(path))
    return whole.name if whole.is_dir() else whole.stem


def name_in(catalogue: CatalogueFile, path: Path) -> str:
    """Return the name of a batch in a catalogue: that of its folder, with the one above it if another has that name."""
    whole = Path(os.path.abspath(path))
    name = name_of(path)
    other = source_of(catalogue, name) if name in catalogue.said.sources else None
    if other is not None and other.resolve() != whole.resolve() and other.exists():
        return f"{whole.parent.name}/{name}"
    return name


def source_of(catalogue: CatalogueFile, batch: str) -> Path | None:
    """Return the folder or file that a batch came from; None if it was in memory, or is not known."""
    said = catalogue.said.sources.get(batch, {})
    found = None if said.get(MEMORY) else said.get(FILE) or said.get(FOLDER)
    return None if found is None else placed(catalogue, found)


def placed(catalogue: CatalogueFile, path: str) -> Path:
    """Return where a path leads that an arrival says, from the folder of the catalogue."""
    start = Path() if catalogue.path is None else linked_file(catalogue.path).parent
    return start / path


def _about(catalogue: CatalogueFile, listing: Listing, reading: Reading) -> dict[str, Any]:
    """Return what an arrival says about its batch, so that it is found and read again."""
    about: dict[str, Any] = {}
    for name, path in ((FOLDER, listing.folder), (FILE, listing.file)):
        if path is not None:
            about[name] = _relative(catalogue, path)
    if listing.in_memory:
        about[MEMORY] = True
    if listing.features:
        about[FEATURES] = list(listing.features)
    asked = {name: value for name, value in reading.items() if value is not None and name not in NOT_READING}
    if asked:
        about[READING] = asked
    return about


def _relative(catalogue: CatalogueFile, path: Path) -> str:
    """Return a path from the folder of the catalogue, so that both can be moved together."""
    if catalogue.path is None:
        return path.as_posix()
    start = linked_file(catalogue.path).parent
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def _as_before(catalogue: CatalogueFile, batch: str, reading: Reading) -> tuple[Path, Reading]:
    source = source_of(catalogue, batch)
    if source is None:
        known = batch in catalogue.said.sources
        why = "was in memory" if known else "is not in this catalogue"
        raise OptionError(f"the batch {printable(batch)!r} {why}; give what is in it")
    said = catalogue.said.sources[batch].get(READING, {})
    return source, cast(Reading, {**said, **reading})
