r"""The journal of a review: a file to which every decision is appended and synced before anything else happens.

One line per event, `CHECKSUM JSON\n`. The checksum of a line covers all lines before it, so a line that was changed or
moved is noticed, and one that was lost between others. How many lines there are is in a second file, so lines that were
lost at the end are noticed too. A last line without its end was being written when the process or the disk stopped: it
was never acknowledged, and is cut off. The first line says which batch the journal is about.

Only their owner can read these files, and a folder that is made for them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError, StorageError
from handful.machine.lock import only_writer
from handful.machine.outputs import explain_refusal, flush_to_disk
from handful.machine.untrusted import parse_json, read_bytes

FORMAT = "handful_review"
VERSION = 1
JOURNAL_FILE = "journal.jsonl"
# How many lines the journal has; and where the review is served while it is open.
LENGTH_FILE = "journal.length"
ADDRESS_FILE = "address.txt"
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
DIGITS = 16

Event = dict[str, Any]


class ReviewJournal:
    """Events of one review, in the order they were written; made by `opened`.

    Attributes
    ----------
    path : Path
        The file.
    about : dict
        What the first line says about the batch.
    events : list of dict
        All others.
    n_lost : int
        Events that were lost at the end since the journal was written.
    """

    def __init__(
        self, path: Path, about: Event, events: list[Event], digest: str, size: int, *, n_lost: int = 0
    ) -> None:
        self.path = path
        self.about = about
        self.events = events
        self.n_lost = n_lost
        self._digest = digest
        self._size = size

    def append(self, event: Event) -> None:
        """Write an event and wait until it would survive a power cut; if the disk refuses, nothing has changed."""
        line, digest = _line(self._digest, event)
        with explain_refusal(self.path):
            handle = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.lseek(handle, self._size, os.SEEK_SET)
                _write_all(handle, line)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, self._size)
                raise
            finally:
                os.close(handle)
        self.events.append(event)
        self._digest = digest
        self._size = self._size + len(line)
        with suppress(OSError):  # the event is on the disk; without its number, only a later loss is not noticed
            write_private(self.path.with_name(LENGTH_FILE), f"{1 + len(self.events)}\n")

    def announce(self, address: str) -> None:
        """Keep the address at which the review is served, for a person who opens it a second time."""
        write_private(self.path.with_name(ADDRESS_FILE), address)


@contextmanager
def opened(folder: Path, about: Event) -> Iterator[ReviewJournal]:
    """Hold the journal in a folder for one writer; it is made if missing, and goes on where it ended.

    Parameters
    ----------
    folder
        The folder of the review.
    about
        What identifies the batch; a journal about another one is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with opened(folder, {"batch": "5d41"}) as journal:
    ...     journal.append({"label": "fox"})
    >>> with opened(folder, {"batch": "5d41"}) as journal:
    ...     journal.events
    [{'label': 'fox'}]
    """
    with ExitStack() as held:
        _make_private(folder)
        address = folder / ADDRESS_FILE
        try:
            held.enter_context(only_writer(folder, StorageError))
        except StorageError as busy:
            if not address.is_file():
                raise
            raise StorageError(
                f"this review is already open at {address.read_text(encoding='utf-8')}; go on there, or end it "
                "where it was started"
            ) from busy
        address.unlink(missing_ok=True)  # of a process that was killed
        held.callback(address.unlink, missing_ok=True)
        path = folder / JOURNAL_FILE
        if not path.is_file() or b"\n" not in read_bytes(path, FileFormatError):
            _begin(path, about)
        first, events, digest, size = read_journal(path)
        with explain_refusal(path):
            path.chmod(PRIVATE_FILE)
            if size < path.stat().st_size:
                os.truncate(path, size)
                flush_to_disk(path)
        if first != about:
            raise FileFormatError(f"{path} is the review of another batch; begin another review with another --out")
        yield ReviewJournal(path, first, events, digest, size, n_lost=max(_noted_length(folder) - 1 - len(events), 0))


def write_private(path: Path, text: str) -> None:
    """Write a small file that only its owner can read, in place, and wait until it would survive a power cut."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    try:
        _write_all(handle, text.encode())
        os.ftruncate(handle, len(text.encode()))
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_private(folder: Path) -> None:
    if not folder.exists():
        with explain_refusal(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def _noted_length(folder: Path) -> int:
    """Return how many lines the journal had when it was written last; 0 if that is not known."""
    try:
        return int((folder / LENGTH_FILE).read_bytes()[:20])
    except (OSError, ValueError):
        return 0


def read_journal(path: Path) -> tuple[Event, list[Event], str, int]:
    """Return the first line, the other events, the checksum of all lines, and the number of bytes they have."""
    content = read_bytes(path, FileFormatError)
    lines = content.split(b"\n")[:-1]  # what follows the last end of a line was never acknowledged
    events = list[Event]()
    digest = ""
    size = 0
    for number, line in enumerate(lines):
        try:
            noted, _, text = line.decode().partition(" ")
            event = parse_json(text)
            expected, digest = _line(digest, event)
            if expected != line + b"\n" or not isinstance(event, dict):
                raise ValueError(f"checksum {noted}")
        except (ValueError, RecursionError) as error:
            raise FileFormatError(
                f"line {number + 1} of {path} is damaged; restore the file from a copy, or cut it before this line"
            ) from error
        events.append(event)
        size += len(line) + 1
    written = events[0].pop(FORMAT, None) if events else None
    if written is None:
        raise FileFormatError(f"{path} is not the journal of a review; begin another review with another --out")
    if written != VERSION:
        raise FileFormatError(
            f"{path} is the journal of a review in format {written!r}, and this handful reads {VERSION}; update "
            "handful if a later version wrote it, or begin another review with another --out"
        )
    return events[0], events[1:], digest, size


def _begin(path: Path, about: Event) -> None:
    with explain_refusal(path):
        write_private(path, _line("", {FORMAT: VERSION, **about})[0].decode())
        flush_to_disk(path.parent)


def _line(before: str, event: Event) -> tuple[bytes, str]:
    """Return a line, and the checksum of all lines up to it."""
    text = json.dumps(event, ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
    digest = hashlib.sha256(f"{before}{text}".encode()).hexdigest()
    return f"{digest[:DIGITS]} {text}\n".encode(), digest


def _write_all(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
