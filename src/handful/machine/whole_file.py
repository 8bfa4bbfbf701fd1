"""A file appears under its name complete, or not at all; what a disk refuses is explained in one sentence."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from handful.errors import HandfulError, StorageError

# Ending of a file that is still being written, or whose writer was killed.
UNFINISHED = ".partial"
# What the system says when it refuses a path, and what to do about it.
ELSEWHERE = "choose a path on another disk"
REFUSALS = {
    errno.ENOSPC: f"the disk is full; free some space, or {ELSEWHERE}",
    errno.EDQUOT: f"your disk quota is used up; free some space, or {ELSEWHERE}",
    errno.EFBIG: f"the file is larger than the disk or your limits allow; {ELSEWHERE}",
    errno.EROFS: f"the disk is read-only; {ELSEWHERE}",
    errno.EIO: f"the disk reports an error; check the disk, or {ELSEWHERE}",
    errno.EACCES: "you have no permission; change the permissions, or choose another path",
    errno.EPERM: "the system does not allow it; change the permissions, or choose another path",
    errno.ENOENT: "there is no such file or folder; check the path",
    errno.ENOTDIR: "a part of the path is a file, not a folder; check the path",
    errno.EISDIR: "it is a folder; name a file",
    errno.EEXIST: "a file of this name is in the way; choose another path",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "its links lead in a circle; check the path",
    errno.EMFILE: "too many files are open; close other programs, or raise the limit (ulimit -n)",
}


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it is renamed to `path` in one step when the block succeeds.

    A reader of `path` sees the old content or all of the new, even after a power cut: the bytes are on the disk before
    the name is. Folders above it are made. A block that fails leaves nothing behind.

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
    with explain_refusal(path, unfinished):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield unfinished
            flush_to_disk(unfinished)
            os.replace(unfinished, path)
            flush_to_disk(path.parent)
        finally:
            with suppress(OSError):  # its folder may not exist, or not be a folder
                unfinished.unlink()


@contextmanager
def explain_refusal(path: Path, *written: Path) -> Iterator[None]:
    """Turn an error of the system about writing `path` into a sentence; errors about other files pass.

    `written` are the names under which it is written. An error without a name is about them, too.
    """
    try:
        yield
    except HandfulError:
        raise
    except OSError as error:
        if isinstance(error.filename, (str, bytes)):
            named = Path(os.fsdecode(error.filename))
            if named not in (path, *path.parents) and not any(one in (named, *named.parents) for one in written):
                raise
        raise StorageError(f"{path} cannot be written: {refusal(error)}") from error


def refusal(error: OSError) -> str:
    """Return why the system refused something, and what to do.

    Examples
    --------
    >>> refusal(OSError(28, "No space left on device"))
    'the disk is full; free some space, or choose a path on another disk'
    """
    return REFUSALS.get(error.errno or 0, f"{error.strerror or error}; check the path and its disk")


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
