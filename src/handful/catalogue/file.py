"""The file of a catalogue: what SQLite is asked for, and what it is trusted with.

Everything that is said is one transaction of an appended event. A process that is killed leaves the state before it or
after it. A rollback journal, not a write-ahead log: the file is one file when nobody writes.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from handful.catalogue.arrivals import Changes, Placed, compare, compare_rows, item_key
from handful.catalogue.events import Event, EventItem, EventKind, fault_of
from handful.catalogue.history import History
from handful.catalogue.said import Said
from handful.catalogue.schema import APPLICATION_ID, PAGE_SIZE, SCHEMA_VERSION, TABLES
from handful.catalogue.vectors import BITS, EncoderId, packed, unpacked
from handful.errors import BehindError, FileFormatError, OptionError, StorageError
from handful.machine.untrusted import parse_json
from handful.shapes import Float

MEMORY = ":memory:"
# The first bytes of every file of SQLite.
SQLITE = b"SQLite format 3\0"
PRIVATE_FILE = 0o600
# Seconds that one process waits for another to finish writing. [s; convention]
PATIENCE = 10.0
# Rows that one statement asks for: SQLite allows 32,766 numbers in a statement. [rows; limit]
MOST_ASKED = 30_000
# Vectors that are copied at a time. [rows; work]
FETCHED = 2_000
# What is said about an item, in the order of the columns.
ITEM_COLUMNS = "item, place, answered, offered, risk, wrong, support"


class ItemContent(NamedTuple):
    """What an item is: the hash of its bytes, its kind ("image", "text", "vector" or "scores"), and a text itself."""

    hash: bytes
    kind: str
    text: str | None = None


class Arrival(NamedTuple):
    """A content that was met, where, and the other columns of its row."""

    place: str
    content: ItemContent
    columns: Mapping[str, Any] | None = None


class ItemRow(NamedTuple):
    """An item as it is kept."""

    item: int
    batch: str
    content: int
    kind: str
    hash: bytes
    text: str | None
    columns: Mapping[str, Any] | None


class CatalogueFile:
    """A person's work: items, vectors and events, in one SQLite file or in memory.

    Made by `CatalogueFile.open`. Several processes may have one file open; each sees what the others appended after
    `refresh`. Threads of one process take turns.

    Attributes
    ----------
    path : Path or None
        The file; None for a catalogue in memory.
    history : History
        All events that were read so far.
    said : Said
        What they say.

    Examples
    --------
    >>> with CatalogueFile.open() as catalogue:
    ...     arrivals = [Arrival(f"{k}.jpg", ItemContent(bytes([k]), "image")) for k in range(3)]
    ...     _ = catalogue.arrive("monday", arrivals)
    ...     _ = catalogue.append("named", {"label": "fox"}, [EventItem(1), EventItem(2)])
    ...     catalogue.said.classes, sorted(catalogue.said.answers)
    (('fox',), [1, 2])
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None, *, writable: bool) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._read = 0
        self.path = path
        self.writable = writable
        self.history = History()
        self.said = Said(self.history)
        self.refresh()

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, create: bool = True) -> Self:
        """Open a file, or make it; None is a catalogue in memory.

        A file that somebody else wrote is checked before anything of it is used.
        """
        if path is None:
            connection = _connected(MEMORY)
            _create(connection)
            return cls(connection, None, writable=True)
        file = Path(path)
        with _explained(file):
            if create and not file.exists():
                os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
            if not file.is_file():
                raise StorageError(f"there is no catalogue {file}")
            connection = _connected(str(file))
            try:
                writable = os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)
                # SQLite undoes first what a process did that was killed while it made the file.
                if create and writable and connection.execute("PRAGMA page_count").fetchone() == (0,):
                    _create(connection)
                _check(connection, file)
                return cls(connection, file, writable=writable)
            except BaseException:
                connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything that was said is in it already."""
        self._connection.close()

    # -- events --------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """Number of the last event; who says something says which one was seen."""
        return self.history.revision

    def refresh(self) -> list[Event]:
        """Read what others appended, and return it."""
        with self._lock, _explained(self.path):
            found = self._events_after(self._read)
            self._take(found)
            return found

    def append(
        self,
        kind: EventKind,
        about: Mapping[str, Any] | None = None,
        items: Sequence[EventItem] = (),
        *,
        revision: int | None = None,
        person: str = "",
        settles: Callable[[], object] = bool,
    ) -> Event:
        """Append an event, and wait until it would survive a power cut.

        Parameters
        ----------
        kind, about, items
            As in `Event`.
        revision
            The revision that was seen; if something was said since, `BehindError`, and nothing is written.
        person
            Who says it.
        settles
            Called with the event taken and before it is kept; if it raises, nothing was said.
        """
        if (fault := fault_of(kind, about or {})) is not None:
            raise OptionError(fault)
        with self.writing() as connection:
            self._take(self._events_after(self._read))
            if revision is not None and revision != self.revision:
                raise BehindError("something was said since this was shown; look at the newest state first")
            event = self._happens(connection, kind, about or {}, items, person)
            settles()
        return event

    def name_all(self, groups: Mapping[str, Sequence[int]], *, person: str = "") -> None:
        """Append one event for each class, which names its items; all of them are one transaction."""
        with self.writing() as connection:
            self._take(self._events_after(self._read))
            for label, items in groups.items():
                self._happens(connection, "named", {"label": label}, [EventItem(item) for item in items], person)

    def take_back(self, event: str, *, revision: int | None = None, person: str = "") -> Event:
        """Say that an earlier event does not count; that can be taken back, too."""
        known = next((one for one in self.history.events if one.event == event), None)
        if known is None or known.kind in ("arrived", "gone", "joined"):
            raise OptionError("only what a person said can be taken back")
        return self.append("taken_back", {"event": event}, revision=revision, person=person)

    def _take(self, events: Sequence[Event]) -> None:
        if not events:
            return
        if events[0].revision <= self.revision:
            # Another process joined a copy to this one: its events belong between those that were read before.
            events = [*self.history.events, *events]
            self.history = History()
        for event in sorted(events, key=lambda one: (one.revision, one.event)):
            self.history.add(event)
        # Several events are taken at once: each that takes another back would begin again.
        self.said = self.said.with_event(events[0]) if len(events) == 1 else Said(self.history)

    def _events_after(self, number: int) -> list[Event]:
        connection = self._connection
        rows = connection.execute(
            "SELECT number, event, revision, after, time, person, kind, about FROM events WHERE number > ? "
            "ORDER BY revision, event",
            (number,),
        ).fetchall()
        items: dict[int, list[EventItem]] = {}
        columns = ", ".join(f"event_items.{name}" for name in ITEM_COLUMNS.split(", "))
        asked = f"SELECT number, {columns} FROM event_items WHERE number > ? ORDER BY number, item"
        for of, item, place, answered, *shown in connection.execute(asked, (number,)):
            items.setdefault(of, []).append(EventItem(item, place, bool(answered), *shown))
        found = []
        for of, event, revision, after, time, person, kind, about in rows:
            listed = _json(after, list, self._where)
            said = _json(about, dict, self._where)
            fault = fault_of(kind, said)
            if fault is not None or not all(isinstance(one, str) for one in listed):
                reason = fault or "it comes after something that is not an event"
                raise FileFormatError(f"{self._where} has an event that no handful writes ({reason})")
            found.append(Event(event, revision, tuple(listed), time, person, kind, said, tuple(items.get(of, ()))))
        self._read = max([self._read, *(row[0] for row in rows)])
        return found

    # -- items ---------------------------------------------------------------------------------------------------------

    def arrive(
        self,
        batch: str,
        arrivals: Sequence[Arrival],
        *,
        person: str = "",
        about: Mapping[str, Any] | None = None,
        by_row: bool = False,
    ) -> Changes:
        """Say what is in a batch now; what changed is one event or two, and what is new becomes items.

        Parameters
        ----------
        batch, arrivals
            The batch, and everything that is in it; each place once.
        person
            Who says it.
        about
            Where the batch came from, to find its contents again.
        by_row
            Whether places are numbers of rows, "row 7", which shift when others come or go.
        """
        about = about or {}
        if len({one.place for one in arrivals}) < len(arrivals):
            raise OptionError(f"two items of {batch} are at the same place; each place may be listed once")
        with self.writing() as connection:
            self._take(self._events_after(self._read))
            rows = connection.execute(
                "SELECT item, hash FROM items JOIN contents USING (content) WHERE batch = ? ORDER BY item", (batch,)
            )
            hashes = dict(rows.fetchall())
            here = self.said.places.get(batch, {})
            listing = [Placed(one.place, one.content.hash) for one in arrivals]
            changes = (compare_rows if by_row else compare)(here, hashes, listing)
            new = self._new_items(connection, batch, changes.new, {one.place: one for one in arrivals})
            came = {**changes.back, **changes.moved, **new}
            if changes.gone:
                lost = [EventItem(one) for one in changes.gone]
                self._happens(connection, "gone", {"batch": batch}, lost, person)
            if came or batch not in self.said.sources or about != self.said.sources[batch]:
                placed = [EventItem(item, place) for item, place in came.items()]
                self._happens(connection, "arrived", {**about, "batch": batch}, placed, person)
        return changes

    def _happens(
        self,
        connection: sqlite3.Connection,
        kind: EventKind,
        about: Mapping[str, Any],
        items: Sequence[EventItem],
        person: str,
    ) -> Event:
        """Add the next event of an open transaction, and take it."""
        after = self.history.head
        event = Event.made(kind, about, items, revision=self.revision + 1, after=after, person=person)
        self._read = insert_event(connection, event)
        self._take([event])
        return event

    def _new_items(
        self, connection: sqlite3.Connection, batch: str, new: Sequence[Placed], by_place: Mapping[str, Arrival]
    ) -> dict[int, str]:
        taken = {key for (key,) in connection.execute("SELECT key FROM items WHERE batch = ?", (batch,))}
        found: dict[int, str] = {}
        for one in new:
            number = 0
            while (key := item_key(batch, one, number)) in taken:
                number += 1
            taken.add(key)
            columns = by_place[one.place].columns
            said = None if columns is None else json.dumps(columns, ensure_ascii=False, default=str)
            found[insert_item(connection, key, batch, by_place[one.place].content, said)] = one.place
        return found

    def rows(self, items: Sequence[int]) -> list[ItemRow]:
        """Return items as they are kept, in this order."""
        asked = (
            "SELECT item, batch, content, kind, hash, text, columns FROM items JOIN contents USING (content) "
            "WHERE item IN"
        )
        found = {row[0]: row for row in self._where_in(asked, items)}
        if unknown := [item for item in items if item not in found]:
            raise OptionError(f"{self._where} has no item {unknown[0]}")
        return [ItemRow(*found[item])._replace(columns=self._columns(found[item][-1])) for item in items]

    def contents_of(self, items: Sequence[int]) -> dict[int, int]:
        """Return the number of the content of each of these items."""
        return dict(self._where_in("SELECT item, content FROM items WHERE item IN", items))

    def contents_with(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those of these contents that are known, by their hashes."""
        return dict(self._where_in("SELECT hash, content FROM contents WHERE hash IN", hashes))

    def keys(self) -> list[tuple[int, bytes]]:
        """Return the numbers of all items, and what names each of them in every copy."""
        with self._lock, _explained(self.path):
            return self._connection.execute("SELECT item, key FROM items").fetchall()

    def _columns(self, text: str | None) -> Mapping[str, Any] | None:
        return None if text is None else _json(text, dict, self._where)

    # -- vectors -------------------------------------------------------------------------------------------------------

    def put_vectors(
        self, encoder: EncoderId, contents: Sequence[int], vectors: Float[np.ndarray, "content dim"]
    ) -> None:
        """Keep vectors of contents; each is embedded once."""
        with np.errstate(over="ignore"):  # a number that is too large for 32 bits becomes infinite, and is refused
            vectors = np.asarray(vectors, np.float32)
        if not np.isfinite(vectors).all():
            raise OptionError("a vector has a number that is not finite in 32 bits; leave such items out")
        if encoder.bits not in BITS or not vectors.shape[1]:
            raise OptionError(f"vectors need numbers, each of 16 or 32 bits; got {vectors.shape[1]} of {encoder.bits}")
        with self.writing() as connection:
            number, dim = encoder_number(connection, encoder, vectors.shape[1])
            if dim != vectors.shape[1]:
                raise OptionError(
                    f"vectors of {encoder.name or 'this catalogue'} have {dim} numbers, got {vectors.shape[1]}"
                )
            connection.executemany(
                "INSERT OR IGNORE INTO vectors (content, encoder, numbers) VALUES (?, ?, ?)",
                [(one, number, blob) for one, blob in zip(contents, packed(vectors, encoder.bits), strict=True)],
            )

    @property
    def encoders(self) -> list[EncoderId]:
        """What made vectors, in the order in which they came."""
        asked = "SELECT name, version, weights, bits FROM encoders ORDER BY encoder"
        with self._lock, _explained(self.path):
            return [EncoderId(*row) for row in self._connection.execute(asked)]

    def dim(self, encoder: EncoderId) -> int:
        """Return how many numbers its vectors have; zero if there are none."""
        with self._lock, _explained(self.path):
            return encoder_number(self._connection, encoder)[1]

    def vectors(self, encoder: EncoderId, contents: Sequence[int]) -> dict[int, Float[np.ndarray, "dim"]]:
        """Return the vectors of those of these contents that have one."""
        with self._lock, _explained(self.path):
            number, dim = encoder_number(self._connection, encoder)
            asked = f"SELECT content, numbers FROM vectors WHERE encoder = {number} AND content IN"
            rows = self._where_in(asked, contents)
            found = unpacked([blob for _, blob in rows], dim, encoder.bits, self._where)
            return {content: vector for (content, _), vector in zip(rows, found, strict=True)}

    def embedded(self, encoder: EncoderId, contents: Sequence[int]) -> set[int]:
        """Return those of these contents that have a vector."""
        with self._lock, _explained(self.path):
            number, _ = encoder_number(self._connection, encoder)
            asked = f"SELECT content FROM vectors WHERE encoder = {number} AND content IN"
            return {content for (content,) in self._where_in(asked, contents)}

    def kept_vectors(self, encoder: EncoderId) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield hashes of contents and their vectors as they are kept, some thousand at a time."""
        with self._lock, _explained(self.path):
            number, _ = encoder_number(self._connection, encoder)
            asked = "SELECT hash, numbers FROM vectors JOIN contents USING (content) WHERE encoder = ?"
            rows = self._connection.execute(asked, (number,))
            while some := rows.fetchmany(FETCHED):
                yield some

    # -- caches --------------------------------------------------------------------------------------------------------

    def cached(self, name: str) -> bytes | None:
        """Return what is kept under a name, and may be lost at any time."""
        with self._lock, _explained(self.path):
            found = self._connection.execute("SELECT value FROM caches WHERE name = ?", (name,)).fetchone()
            return None if found is None else found[0]

    def cache(self, name: str, value: bytes) -> None:
        """Keep something that can be computed again."""
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO caches (name, value) VALUES (?, ?)", (name, value))

    def cache_newest(self, kind: str, name: str, value: bytes) -> None:
        """Keep something in place of everything else whose name begins with `kind`."""
        with self.writing() as connection:
            connection.execute("DELETE FROM caches WHERE substr(name, 1, ?) = ?", (len(kind), kind))
            connection.execute("INSERT INTO caches (name, value) VALUES (?, ?)", (name, value))

    # -- SQLite --------------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return "the catalogue in memory" if self.path is None else str(self.path)

    def _where_in(self, asked: str, numbers: Sequence[int] | Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Ask for the rows that have one of these numbers."""
        found: list[tuple[Any, ...]] = []
        with self._lock, _explained(self.path):
            for start in range(0, len(numbers), MOST_ASKED):
                some = list(numbers[start : start + MOST_ASKED])
                marks = ", ".join("?" * len(some))
                found += self._connection.execute(f"{asked} ({marks})", some).fetchall()
        return found

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk after it, or nothing."""
        if not self.writable:
            raise StorageError(f"{self._where} cannot be written; make it and its folder writable")
        with self._lock, _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            before = self._connection.total_changes
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if self._connection.total_changes != before:
                    self._forget()
                raise

    def _forget(self) -> None:
        """Forget everything that was read, so that it is read again: what this transaction took did not happen."""
        self._read = 0
        self.history = History()
        self.said = Said(self.history)
        with suppress(sqlite3.Error):
            self._take(self._events_after(0))


def is_catalogue_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is of SQLite, as catalogues are."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def encoder_number(connection: sqlite3.Connection, encoder: EncoderId, dim: int | None = None) -> tuple[int, int]:
    """Return the number of an encoder, and how many numbers its vectors have.

    One that is not there is added if `dim` is given; else it is zero, and has no vectors.
    """
    name, version, weights, bits = encoder
    asked = "SELECT encoder, dim, bits FROM encoders WHERE name = ? AND version = ? AND weights = ?"
    found = connection.execute(asked, (name, version, weights)).fetchone()
    if found is None and dim is not None:
        connection.execute(
            "INSERT INTO encoders (name, version, weights, dim, bits) VALUES (?, ?, ?, ?, ?)",
            (name, version, weights, dim, bits),
        )
        found = connection.execute(asked, (name, version, weights)).fetchone()
    if found is None:
        return 0, 0
    number, kept_dim, kept_bits = found
    if kept_bits != bits:
        raise OptionError(f"vectors of {name or 'this catalogue'} have numbers of {kept_bits} bits, not of {bits}")
    return number, kept_dim


def insert_item(
    connection: sqlite3.Connection, key: bytes, batch: str, content: ItemContent, columns: str | None
) -> int:
    """Add an item and, if no other item has it, its content; return the number of the item."""
    connection.execute("INSERT OR IGNORE INTO contents (hash, kind, text) VALUES (?, ?, ?)", content)
    added = connection.execute(
        "INSERT INTO items (key, batch, content, columns) "
        "VALUES (?, ?, (SELECT content FROM contents WHERE hash = ?), ?)",
        (key, batch, content.hash, columns),
    )
    assert added.lastrowid is not None
    return added.lastrowid


def insert_event(connection: sqlite3.Connection, event: Event) -> int:
    """Add an event with its items; return its number in this file."""
    added = connection.execute(
        "INSERT INTO events (event, revision, after, time, person, kind, about) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            event.event,
            event.revision,
            json.dumps(event.after),
            event.time,
            event.person,
            event.kind,
            json.dumps(event.about, ensure_ascii=False, allow_nan=False, sort_keys=True),
        ),
    )
    number = added.lastrowid
    assert number is not None
    marks = ", ".join("?" * (1 + len(EventItem._fields)))
    connection.executemany(
        f"INSERT INTO event_items (number, {ITEM_COLUMNS}) VALUES ({marks})", [(number, *one) for one in event.items]
    )
    return number


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    for setting in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "foreign_keys = ON",
        "fullfsync = ON",  # macOS: through the cache of the drive as well
        "query_only = ON",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = OFF")
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():  # another process may have been first
        for table in TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO about VALUES ('id', ?)", (uuid.uuid4().hex,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse what is not a catalogue, or was changed by something else; only then may it be written."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise FileFormatError(f"{file} is not a catalogue of handful")
    if version > SCHEMA_VERSION:
        raise FileFormatError(f"{file} was written by a later handful (format {version}); update handful")
    if version != SCHEMA_VERSION or _schema(connection) != _own_schema():
        raise FileFormatError(f"{file} has other tables than a catalogue; restore it from a copy")
    damage = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    if damage != ["ok"]:
        raise FileFormatError(f"{file} is damaged ({damage[0]}); restore it from a copy")
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    if lost is not None:
        raise FileFormatError(f"{file} is damaged (a row of {lost[0]} names none of {lost[2]}); restore it from a copy")
    if connection.execute("SELECT 1 FROM encoders WHERE dim < 1 OR bits NOT IN (16, 32)").fetchone() is not None:
        raise FileFormatError(f"{file} is damaged (vectors without numbers); restore it from a copy")
    connection.execute("PRAGMA query_only = OFF")
    connection.execute("PRAGMA synchronous = FULL")


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@cache
def _own_schema() -> set[tuple[str, ...]]:
    connection = _connected(MEMORY)
    _create(connection)
    found = _schema(connection)
    connection.close()
    return found


def _json(text: str, kind: type, where: str) -> Any:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"an event of {where} is damaged; restore the file from a copy") from error
    if not isinstance(value, kind):
        raise FileFormatError(f"an event of {where} is damaged; restore the file from a copy")
    return value


@contextmanager
def _explained(path: Path | None) -> Iterator[None]:
    """Say in a sentence what SQLite refuses."""
    where = "the catalogue in memory" if path is None else str(path)
    try:
        yield
    except sqlite3.DatabaseError as error:
        said = str(error)
        if "locked" in said or "busy" in said:
            raise StorageError(f"another process is writing {where}; try again when it has finished") from error
        if "full" in said:
            raise StorageError(f"the disk of {where} is full; make room, and say it again") from error
        if getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_DBMOVED":
            raise StorageError(
                f"{where} was moved or deleted while it was open; put it back, and say it again"
            ) from error
        if "readonly" in said or "unable to open" in said:
            raise StorageError(f"{where} cannot be opened or written ({said}); check its folder and rights") from error
        if any(word in said for word in ("not a database", "malformed", "corrupt", "decode")):
            raise FileFormatError(f"{where} is damaged, or not a catalogue ({said}); restore it from a copy") from error
        raise StorageError(f"{where}: {said}; nothing was changed") from error
    except UnicodeDecodeError as error:  # of a name or a message of SQLite itself
        raise FileFormatError(f"{where} is damaged ({error.reason} in a text); restore it from a copy") from error
    except UnicodeEncodeError as error:
        raise OptionError(f"{where} cannot keep {error.object!r}: it has half a character; rename it") from error
    except OSError as error:
        raise StorageError(f"{where}: {error.strerror or error}") from error
