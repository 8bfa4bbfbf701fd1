"""A file appears under its name complete, or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handful.errors import StorageError

# Ending of a file that is still being written, or whose writer was killed.
UNFINISHED = ".partial"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it is renamed to `path` in one step when the block succeeds.

    A reader of `path` sees the old content or all of the new, even after a power cut: the bytes are on the disk before
    the name is. A block that fails leaves nothing behind.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with written_whole(path) as place:
    ...     _ = place.write_text("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    """
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file to write")
    writer = f"{os.getpid()}-{threading.get_ident()}"
    unfinished = path.with_name(f".{path.name}.{writer}{UNFINISHED}")
    try:
        yield unfinished
        flush_to_disk(unfinished)
        os.replace(unfinished, path)
        flush_to_disk(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Wait until what was written to a file, or the names in a folder, would survive a power cut."""
    folder = path.is_dir()
    if folder and os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
