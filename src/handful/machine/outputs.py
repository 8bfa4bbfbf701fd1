"""Outputs never destroy inputs, and appear complete or not at all.

What is read and what is written is compared before the work begins. A file is written beside its place and renamed.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from handful.errors import HandfulError, OptionError, StorageError
from handful.machine.untrusted import refuse_irregular

if sys.platform == "darwin":
    import fcntl

NOTHING: Mapping[str, str] = MappingProxyType({})


def refuse_overwriting(
    reads: Mapping[str, Any],
    writes: Mapping[str, Any],
    *,
    replaces: Mapping[str, str] = NOTHING,
    files: Iterable[Path] = (),
) -> None:
    """Refuse an output that is an input or another output, lies in an input folder, or contains an input.

    Paths are compared by what they lead to: `..`, links, hard links and, on a file system that ignores it, case make no
    difference.

    Parameters
    ----------
    reads, writes : mapping of str to path
        Inputs and outputs, by what a message calls them. What is not a path on a disk is left out: None, a URL, an
        array.
    replaces : mapping of str to str
        Outputs that are labelled copies of an input in its own format, and that input: they may be the same file.
    files : iterable of Path
        More files that are read, such as those that a table names. Iterated over only if an output exists already.

    Examples
    --------
    >>> refuse_overwriting({"batch": "today.csv"}, {"predictions": "./today.csv"})
    Traceback (most recent call last):
        ...
    handful.errors.OptionError: the predictions (./today.csv) would overwrite the batch (today.csv); choose another path
    >>> refuse_overwriting({"batch": "run.mgf"}, {"predictions": "run.mgf"}, replaces={"predictions": "batch"})
    """
    inputs, outputs = ([_Place(*one) for one in named.items() if _is_local(one[1])] for named in (reads, writes))
    for one in (*inputs, *outputs):
        one.refuse_too_long()
    for position, output in enumerate(outputs):
        replaced = next((one for one in inputs if one.name == replaces.get(output.name)), None)
        may_be_same = replaced is not None and bool(output.keys & replaced.keys)
        for other in (*inputs, *outputs[:position]):
            if output.keys & other.keys:
                if may_be_same and replaced is not None and other.keys & replaced.keys:
                    continue
                raise OptionError(f"{output} would overwrite {other}; choose another path")
            if output.above & other.keys:
                raise OptionError(f"{output} is inside {other}; choose a path outside of it")
            if other.above & output.keys:
                raise OptionError(f"{output} contains {other}; choose another path")
    # Links in a folder can lead to files outside of it.
    there = {key: output for output in outputs for key in output.keys if os.path.isfile(output.path)}
    for read, found in _files(inputs, files) if there else ():
        key = _key(found)
        if key in there and not any(key in one.keys for one in inputs if one.name == replaces.get(there[key].name)):
            raise OptionError(f"{there[key]} would overwrite {found}, a file of {read}; choose another path")


@dataclass(frozen=True)
class _Place:
    """A path, what identifies it, and what identifies the folders above it."""

    name: str
    given: Any

    def __str__(self) -> str:
        return f"the {self.name} ({self.given})"

    @property
    def path(self) -> Path:
        return local_path(self.given)

    def refuse_too_long(self) -> None:
        try:
            os.lstat(self.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                length = len(os.fspath(self.path))
                raise OptionError(
                    f"the path of the {self.name} has {length:,} characters, and the system does not allow as many in "
                    "a path or a name; choose a shorter one"
                ) from error
        except ValueError:  # NUL; the reader or the writer says so
            pass

    @cached_property
    def _ways(self) -> list[Path]:
        """The path that it leads to and, if that is another one, the link itself."""
        ways = [Path(os.path.realpath(self.path))]
        return [*ways, Path(os.path.realpath(self.path.parent), self.path.name)] if os.path.islink(self.path) else ways

    @cached_property
    def keys(self) -> set[Hashable]:
        return {_key(way) for way in self._ways}

    @cached_property
    def above(self) -> set[Hashable]:
        return {_key(folder) for way in self._ways for folder in way.parents}


def _key(path: Path) -> Hashable:
    """Return what identifies a file: device and inode; if there is none, its folder and its name in lower case."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        status = None
    if status is not None and status.st_ino:
        return status.st_dev, status.st_ino
    name = unicodedata.normalize("NFC", path.name).casefold()
    return (name,) if path.parent == path else (_key(path.parent), name)


def _is_local(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and not is_remote(path)


def _files(inputs: Iterable[_Place], more: Iterable[Path]) -> Iterator[tuple[_Place | str, Path]]:
    """Yield the files of all input folders, then the others, with what they belong to."""
    for one in inputs:
        for folder, _, names in os.walk(one.path):
            yield from ((one, Path(folder, name)) for name in names)
    yield from (("the items", path) for path in more)


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
    errno.EADDRINUSE: "another program uses this port; name another one, or 0 for any that is free",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "its links lead in a circle; check the path",
    errno.EMFILE: "too many files are open; close other programs, or raise the limit (ulimit -n)",
}

# What Windows says of a file that another program holds: access is denied, or the file is used or locked.
HELD = frozenset({5, 32, 33})
# What file systems say that cannot flush a folder, such as some of networks.
CANNOT_FLUSH = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})


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
    if os.path.isdir(path):
        raise StorageError(f"{path} is a folder; name a file to write")
    refuse_irregular(path, StorageError)
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


def linked_file(path: Path) -> Path:
    """Return the file that a link leads to, so that a change goes there and the link stays; other paths as they are.

    Examples
    --------
    >>> linked_file(Path("birds.handful"))
    PosixPath('birds.handful')
    """
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


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
        name = error.filename if error.filename2 is None else error.filename2  # of a copy, what is written
        if isinstance(name, (str, bytes)):
            named = Path(os.fsdecode(name)).absolute()
            place = path.absolute()
            ours = {one.absolute() for one in written}
            if named not in (place, *place.parents) and not ours & {named, *named.parents}:
                raise
        raise StorageError(f"{path} cannot be written: {refusal(error)}") from error


def refusal(error: OSError) -> str:
    """Return why the system refused something, and what to do.

    Examples
    --------
    >>> refusal(OSError(28, "No space left on device"))
    'the disk is full; free some space, or choose a path on another disk'
    """
    if getattr(error, "winerror", None) in HELD:
        return "another program has it open, such as a spreadsheet, or you have no permission; close it there"
    return REFUSALS.get(error.errno or 0, f"{error.strerror or error}; check the path and its disk")


def flush_to_disk(path: Path) -> None:
    """Wait until what was written to a file, or the names in a folder, would survive a power cut."""
    folder = path.is_dir()
    if folder and os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        _flush(handle)
    except OSError as error:
        if not (folder and error.errno in CANNOT_FLUSH):
            raise
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Flush an open file, on macOS through the cache of the drive as well, where the drive can."""
    if sys.platform == "darwin":
        with suppress(OSError):
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def is_remote(place: Any) -> bool:
    """Whether this is the URL of something that is not on a disk."""
    return scheme_of(place) not in ("", "file")


def local_path(place: Any) -> Path:
    """Return a path, which may be given as `file://…`."""
    return Path(url2pathname(urlsplit(place).path)) if scheme_of(place) == "file" else Path(place)


def scheme_of(place: Any) -> str:
    """Return the scheme of a URL; empty for a path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", place) if isinstance(place, str) else None
    return found.group(1).lower() if found else ""
