"""One writer per folder: a lock that the system releases when the process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from handful.errors import HandfulError
from handful.machine.whole_file import refusals_said

LOCK_FILE = ".lock"


@contextmanager
def only_writer(folder: Path, error: type[HandfulError]) -> Iterator[None]:
    """Hold a folder, made if missing, for one writer; a second one, in this process or another, raises `error`.

    Examples
    --------
    >>> import tempfile
    >>> from handful.errors import OptionError
    >>> folder = Path(tempfile.mkdtemp())
    >>> with only_writer(folder, OptionError):
    ...     try:
    ...         with only_writer(folder, OptionError):
    ...             pass
    ...     except OptionError:
    ...         print("refused")
    refused
    """
    lock = FileLock(folder / LOCK_FILE)
    with refusals_said(folder, folder / LOCK_FILE):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout as busy:
            raise error(f"another process is writing to {folder}; wait until it ends") from busy
    try:
        yield
    finally:
        lock.release()
