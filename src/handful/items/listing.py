"""Listing: what is at a path now: contents and their places, read but not embedded.

An image is known by the hash of its file, a text by that of its words in UTF-8, a vector by that of its numbers in
single precision. A place is a path below a folder, or the identifier of a row, or its number, which shifts.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np

from handful.catalogue.file import Arrival, ItemContent
from handful.errors import OptionError, StorageError
from handful.extraction.options import MEAN, Reading, asked_of
from handful.items.given_vectors import given_numbers
from handful.items.stamps import Stamp, Stamps, root_of
from handful.machine.untrusted import writable
from handful.reading.contents import Contents, FolderFiles, Unreadable, ZipFiles, pick
from handful.reading.read import in_hand, read_input, refuse_useless
from handful.reading.table import Skipped, Table
from handful.shapes import Float

ItemType: TypeAlias = Literal["image", "text", "vector"]


@dataclass(frozen=True, eq=False)
class Listing:
    """What is at a path now.

    Attributes
    ----------
    where : str
        The path, for messages.
    kind : "image", "text" or "vector"
        What all of it is.
    arrivals : tuple of Arrival
        Contents and places.
    rows : tuple of int
        The position of each in what was read.
    contents : Contents or None
        The images or texts, not yet read; None for vectors.
    skipped : tuple of Skipped
        What was left out, and why.
    folder, file : Path or None
        What the places of images are below, a folder or an archive; the table that was read.
    vectors : Float[ndarray, "item dim"] or None
        Vectors that were given; NaN where a measurement is missing.
    encoder : str
        What made them, where that is known.
    features : tuple of str
        The columns of measurements that they were made of.
    by_row : bool
        Whether places are numbers of rows.
    in_memory : bool
        Whether it was no path.
    stamps : Stamps
        By which the files are known next time.
    """

    where: str
    kind: ItemType
    arrivals: tuple[Arrival, ...]
    rows: tuple[int, ...]
    contents: Contents | None = None
    skipped: tuple[Skipped, ...] = ()
    folder: Path | None = None
    file: Path | None = None
    vectors: Float[np.ndarray, "item dim"] | None = None
    encoder: str = ""
    features: tuple[str, ...] = ()
    by_row: bool = False
    in_memory: bool = False
    stamps: Stamps = field(default_factory=Stamps)

    @cached_property
    def hashes(self) -> list[bytes]:
        """Hash of each content."""
        return [one.content.hash for one in self.arrivals]


def listed(
    data: Any, *, stamps: Stamps | None = None, measured: Sequence[str] = (), **reading: Unpack[Reading]
) -> Listing:
    """List what is at a path, or in an array, a frame or a list; nothing is embedded.

    Parameters
    ----------
    data
        Anything that `handful.read` reads.
    stamps
        Of an earlier listing: files that have the same are not read again.
    measured
        Columns of measurements of earlier batches, which this one must have; their numbers come in this order.
    **reading
        How it is read, see `Reading`.

    Examples
    --------
    >>> found = listed({"text": ["where is my bag", "wake me", "wake me"], "guest": ["Ada", "Bob", "Eve"]})
    >>> found.kind, [one.place for one in found.arrivals], found.arrivals[2].columns
    ('text', ['row 0', 'row 1', 'row 2'], {'guest': 'Eve'})
    >>> found.hashes[1] == found.hashes[2]
    True
    """
    return listed_table(read_for(data, reading), data, stamps=stamps, measured=measured, reading=reading)


def read_for(data: Any, reading: Reading) -> Table:
    """Read what is there, as it is listed."""
    asked = asked_of(reading)
    refuse_useless([data], asked)
    table = read_input(data, asked)
    if table.vectors is not None and reading.get("encoder") is not None:
        raise OptionError(f"an encoder is for images and sentences, and {table.where} has features; leave it out")
    return table


def listed_table(
    table: Table, data: Any, *, stamps: Stamps | None, measured: Sequence[str], reading: Reading
) -> Listing:
    """List the rows of a table that was read from `data`."""
    path = None if in_hand(data) else Path(os.path.abspath(data))
    if table.vectors is not None:
        return _vectors(table, path, measured, reading)
    if table.text is not None:
        return _texts(table, path, reading.get("id_column"))
    return _images(table, path, stamps or Stamps(), reading.get("id_column"))


def _vectors(table: Table, path: Path | None, measured: Sequence[str], reading: Reading) -> Listing:
    numbers = given_numbers(table, measured, filled=reading.get("missing") == MEAN)
    places, by_row = _places(table, reading.get("id_column"))
    columns = _columns(table, ())
    arrivals = []
    for place, row, vector in zip(places, columns, numbers.vectors, strict=True):
        for name in (name for name, number in zip(numbers.features, vector, strict=False) if np.isnan(number)):
            row.pop(name, None)
        arrivals.append(Arrival(place, ItemContent(hashlib.sha256(vector.data).digest(), "vector"), row or None))
    return Listing(
        table.where,
        "vector",
        tuple(arrivals),
        tuple(table.rows),
        skipped=table.skipped,
        file=path,
        vectors=numbers.vectors,
        encoder=table.provenance.encoder,
        features=numbers.features,
        by_row=by_row,
        in_memory=path is None,
    )


def _texts(table: Table, path: Path | None, id_column: str | None) -> Listing:
    column = table.text
    assert column is not None
    texts = table.values(column)
    bad = {row: "it has half a character" for row, text in enumerate(texts) if writable(text) != text}
    table = table.without(bad)
    texts = table.values(column)
    places, by_row = _places(table, id_column)
    columns = _columns(table, (column,))
    arrivals = [
        Arrival(place, ItemContent(hashlib.sha256(text.encode()).digest(), "text", text), row or None)
        for place, text, row in zip(places, texts, columns, strict=True)
    ]
    return Listing(
        table.where,
        "text",
        tuple(arrivals),
        tuple(table.rows),
        tuple(texts),
        table.skipped,
        file=path,
        by_row=by_row,
        in_memory=path is None,
    )


def _images(table: Table, path: Path | None, stamps: Stamps, id_column: str | None) -> Listing:
    files = table.images
    assert files is not None
    in_folders = table.classes is not None
    if in_folders and id_column is not None:
        raise OptionError(
            f"{table.where} is not a table, so it has no column {id_column!r}; images are known by their paths"
        )
    hashes, now = _hashed(files, stamps)
    lost = {row: one.reason for row, one in enumerate(hashes) if isinstance(one, Unreadable)}
    names = table.item_names(id_column)
    places, by_row = _places(table, id_column)
    columns: list[dict[str, Any]] = [{} for _ in names] if in_folders else _columns(table, ())
    rows = [row for row in range(table.n_rows) if row not in lost]
    unread = [Skipped(table.rows[row], names[row], reason) for row, reason in lost.items()]
    folder = path if in_folders else Path(os.path.abspath(files.root))
    return Listing(
        table.where,
        "image",
        tuple(
            Arrival(places[row], ItemContent(found, "image"), columns[row] or None)
            for row in rows
            if isinstance(found := hashes[row], bytes)
        ),
        tuple(table.rows[row] for row in rows),
        pick(files, rows),
        (*table.skipped, *unread),
        folder=folder,
        file=None if in_folders else path,
        by_row=by_row,
        in_memory=path is None,
        stamps=now,
    )


def _hashed(files: FolderFiles | ZipFiles, stamps: Stamps) -> tuple[list[bytes | Unreadable], Stamps]:
    """Return the hash of each file, and the stamps to keep."""
    root = root_of(files.root)
    stamps = stamps if stamps.root == root else Stamps(root)
    stamp_of = _stamp_of(files)
    found: list[bytes | Unreadable | None] = []
    known = {}
    stamped = [stamp_of(name) for name in files.names]
    for name, stamp in zip(files.names, stamped, strict=True):
        found.append(stamps.hash_of(name, stamp))
    missing = [row for row, one in enumerate(found) if one is None]
    try:
        for row, content in zip(missing, pick(files, missing), strict=True):
            if isinstance(content, bytes):
                found[row] = hashlib.sha256(content).digest()
                if stamp_of(files.names[row]) != stamped[row]:
                    stamped[row] = None  # it was written while it was read
            else:
                assert isinstance(content, Unreadable)
                found[row] = content
    except OSError as error:
        raise StorageError(f"{files.root} cannot be read ({error.strerror or error}); nothing was changed") from error
    if not os.path.exists(files.root):
        raise StorageError(f"{files.root} went away while it was read; nothing was changed")
    for name, stamp, one in zip(files.names, stamped, found, strict=True):
        if stamp is not None and isinstance(one, bytes):
            known[name] = (stamp, one)
    return [one for one in found if one is not None], Stamps(root, known)


def _stamp_of(files: FolderFiles | ZipFiles) -> Callable[[str], Stamp | None]:
    """Return what finds the stamp of a file; a file in an archive has that of the archive."""
    if isinstance(files, ZipFiles):
        whole = Stamp.of(files.root)
        return lambda name: whole
    return lambda name: Stamp.of(files.root / name)


def _places(table: Table, id_column: str | None) -> tuple[Sequence[str], bool]:
    """Return a place for each row, and whether these are numbers of rows."""
    names = table.item_names(id_column)
    numbers = [f"row {row}" for row in table.rows]
    return distinct_places(names), list(names) == numbers


def distinct_places(names: Iterable[str]) -> list[str]:
    """Return names of which each occurs once: the second of two equal ones is numbered.

    Examples
    --------
    >>> distinct_places(["a7", "b3", "a7", "a7 (2)"])
    ['a7', 'b3', 'a7 (3)', 'a7 (2)']
    """
    given = [writable(name) for name in names]
    taken = set(given)
    seen = Counter[str]()
    places = []
    for name in given:
        seen[name] += 1
        place = name
        number = seen[name]
        while place in taken and seen[name] > 1:
            number += place != name
            place = f"{name} ({number})"
        taken.add(place)
        places.append(place)
    return places


def _columns(table: Table, left_out: Iterable[str]) -> list[dict[str, Any]]:
    """Return the other columns of each row, without what is missing."""
    columns = {name: values for name, values in table.row_columns().values().items() if name not in left_out}
    return [_plain_row(columns, row) for row in range(table.n_rows)]


def _plain_row(columns: Mapping[str, list[Any]], row: int) -> dict[str, Any]:
    found = {}
    for name, values in columns.items():
        value = values[row]
        if value is None or value == "" or value != value:
            continue
        found[writable(name)] = writable(value) if isinstance(value, str) else value
    return found
