"""One writer per folder: a lock that the system releases when the process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from handful.errors import HandfulError
from handful.machine.folders import Folder, LocalFolder
from handful.machine.outputs import UNFINISHED, explain_refusal

LOCK_FILE = ".lock"


@contextmanager
def only_writer(folder: Path | Folder, error: type[HandfulError]) -> Iterator[None]:
    """Hold a folder, made if missing, for one writer; a second one, in this process or another, raises `error`.

    A folder at a URL has no lock that would end with its holder, so it is not held.

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
    if not isinstance(folder, Path | LocalFolder):
        yield
        return
    path = folder if isinstance(folder, Path) else folder.path
    with explain_refusal(path, path / LOCK_FILE):
        path.mkdir(parents=True, exist_ok=True)
    with _held(path / LOCK_FILE, path, error):
        yield


@contextmanager
def _held(place: Path, what: Path, error: type[HandfulError]) -> Iterator[None]:
    lock = FileLock(place)
    with explain_refusal(what, place):
        try:
            lock.acquire(timeout=0)
        except Timeout as busy:
            raise error(f"another process is writing to {what}; wait until it ends") from busy
    try:
        yield
    finally:
        lock.release()


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed writer left unfinished in a folder."""
    for left in folder.glob(f".*{UNFINISHED}"):
        left.unlink(missing_ok=True)
