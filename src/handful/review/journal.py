r"""The journal of a review: a file to which every decision is appended and synced before anything else happens.

One line per event, `CHECKSUM JSON\n`. The checksum of a line covers all lines before it, so a line that was changed,
moved or lost is noticed. A last line without its end was being written when the process or the disk stopped: it was
never acknowledged, and is cut off. The first line says which batch the journal is about.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError, StorageError
from handful.machine.outputs import explain_refusal, flush_to_disk
from handful.machine.untrusted import parse_json, read_bytes
from handful.runs.lock import only_writer

FORMAT, VERSION = "handful_review", 1
JOURNAL_FILE = "journal.jsonl"
DIGITS = 16

Event = dict[str, Any]


class Journal:
    """Events of one review, in the order they were written; made by `opened`.

    Attributes
    ----------
    path : Path
        The file.
    about : dict
        What the first line says about the batch.
    events : list of dict
        All others.
    """

    def __init__(self, path: Path, about: Event, events: list[Event], digest: str, size: int) -> None:
        self.path, self.about, self.events = path, about, events
        self._digest, self._size = digest, size

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
        self._digest, self._size = digest, self._size + len(line)


@contextmanager
def opened(folder: Path, about: Event) -> Iterator[Journal]:
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
    with only_writer(folder, StorageError):
        path = folder / JOURNAL_FILE
        if not path.is_file() or b"\n" not in read_bytes(path, FileFormatError):
            _begin(path, about)
        first, events, digest, size = read_journal(path)
        if size < path.stat().st_size:
            with explain_refusal(path):
                os.truncate(path, size)
                flush_to_disk(path)
        if first != about:
            raise FileFormatError(
                f"{path} is the review of another batch, or of the same batch with other options; continue with those, "
                "or begin another review with another --out"
            )
        yield Journal(path, first, events, digest, size)


def read_journal(path: Path) -> tuple[Event, list[Event], str, int]:
    """Return the first line, the other events, the checksum of all lines, and the number of bytes they have."""
    content = read_bytes(path, FileFormatError)
    lines = content.split(b"\n")[:-1]  # what follows the last end of a line was never acknowledged
    events, digest, size = list[Event](), "", 0
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
    if not events or events[0].pop(FORMAT, None) != VERSION:
        raise FileFormatError(f"{path} is not the journal of a review; begin another review with another --out")
    return events[0], events[1:], digest, size


def _begin(path: Path, about: Event) -> None:
    with explain_refusal(path):
        path.write_bytes(_line("", {FORMAT: VERSION, **about})[0])
        flush_to_disk(path)
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
