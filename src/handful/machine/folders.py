"""A folder on disk or at a URL; its files appear whole or not at all.

On disk a file is written under another name and renamed. Object stores (`s3://`) have no rename. But they show an
object only when its upload is complete, and readers see the old object or the new one: so every file is written locally
and uploaded as one object. URLs are opened by fsspec. `file://` is a path.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from handful.errors import MissingExtraError, StorageError
from handful.machine.extras import import_extra, install_command
from handful.machine.outputs import is_remote, local_path, scheme_of, written_whole


class FileAt(NamedTuple):
    """A file of a folder: its name below it, its size, and something that changes when it is written again."""

    name: str
    size: int
    version: str


def _is_shown(name: str) -> bool:
    """Whether no part of a name is hidden: by convention, readers of tables skip names with `.` or `_` in front."""
    return not any(part.startswith((".", "_")) for part in name.split("/"))


@dataclass(frozen=True)
class LocalFolder:
    """A folder on disk, for files with names like `run.json` or `answers/part-000000.parquet`."""

    path: Path

    @property
    def address(self) -> Path:
        """The path."""
        return self.path

    @contextmanager
    def written(self, name: str) -> Iterator[Path]:
        """Yield a local path to write to; what was written appears under the name when the block succeeds."""
        place = self.path / name
        with written_whole(place) as unfinished:
            yield unfinished

    @contextmanager
    def opened(self, name: str) -> Iterator[Path | None]:
        """Yield a local path to read from, or None if there is no such file."""
        place = self.path / name
        yield place if place.exists() else None

    def names(self, under: str = "") -> list[str]:
        """Return the names of the files and folders in this folder or in one below it, in order; none if missing."""
        place = self.path / under
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def files(self, ending: str = "") -> list[FileAt]:
        """Return all files in this folder and below it, in the order of their names; hidden ones are left out."""
        found = []
        for folder, below, names in os.walk(self.path, followlinks=True):
            here = Path(folder).relative_to(self.path)
            below[:] = [name for name in below if _is_shown(name)]
            found += [(here / name).as_posix() for name in names if _is_shown(name) and name.endswith(ending)]
        return [one for name in sorted(found) if (one := self.about(name)) is not None]

    def about(self, name: str) -> FileAt | None:
        """Return what a file is like now, None if there is none."""
        try:
            status = (self.path / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileAt(name, status.st_size, str(status.st_mtime_ns))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there, and folders that are empty then."""
        place = self.path / name
        place.unlink(missing_ok=True)
        for above in place.relative_to(self.path).parents[:-1]:
            with suppress(OSError):
                (self.path / above).rmdir()


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at a URL: a common beginning of the names of objects."""

    url: str

    @property
    def address(self) -> str:
        """The URL."""
        return self.url

    @contextmanager
    def written(self, name: str) -> Iterator[Path]:
        """Write a temporary file, and upload it as one object."""
        with tempfile.TemporaryDirectory(prefix="handful-") as scratch:
            place = Path(scratch) / "whole"
            yield place
            with file_system(self._at(name)) as (system, path):
                system.put_file(str(place), path)

    @contextmanager
    def opened(self, name: str) -> Iterator[Path | None]:
        """Download the object into a temporary file."""
        with tempfile.TemporaryDirectory(prefix="handful-") as scratch:
            place = Path(scratch) / Path(name).name
            try:
                with file_system(self._at(name)) as (system, path):
                    system.get_file(path, str(place))
            except FileNotFoundError:
                yield None
                return
            yield place

    def names(self, under: str = "") -> list[str]:
        """List objects up to the next slash."""
        try:
            with file_system(self._at(under)) as (system, path):
                return sorted(found.rstrip("/").rsplit("/", 1)[-1] for found in system.ls(path, detail=False))
        except FileNotFoundError:
            return []

    def files(self, ending: str = "") -> list[FileAt]:
        """List all objects whose names begin so; hidden ones are left out."""
        with file_system(self.url) as (system, path):
            found = system.find(path, detail=True)
        start = len(path.rstrip("/")) + 1
        named = {place[start:]: about for place, about in found.items() if len(place) > start}
        shown = [name for name in sorted(named) if _is_shown(name) and name.endswith(ending)]
        return [FileAt(name, *_size_and_version(named[name])) for name in shown]

    def about(self, name: str) -> FileAt | None:
        """Return what an object is like now, None if there is none."""
        try:
            with file_system(self._at(name)) as (system, path):
                return FileAt(name, *_size_and_version(system.info(path)))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError), file_system(self._at(name)) as (system, path):
            system.rm_file(path)

    def _at(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url


def _size_and_version(about: Mapping[str, Any]) -> tuple[int, str]:
    """Return the size of an object, and what tells its versions apart in the words of its store."""
    told = (about.get(name) for name in ("ETag", "etag", "LastModified", "last_modified", "mtime", "created"))
    return int(about.get("size") or 0), str(next((one for one in told if one), ""))


Folder: TypeAlias = LocalFolder | RemoteFolder


def folder_at(place: str | os.PathLike[str] | Folder) -> Folder:
    """Return the folder at a path or URL.

    Examples
    --------
    >>> folder_at("file:///runs/monday")
    LocalFolder(path=PosixPath('/runs/monday'))
    >>> folder_at("s3://bucket/monday/")
    RemoteFolder(url='s3://bucket/monday')
    """
    if isinstance(place, Folder):
        return place
    if is_remote(place):
        return RemoteFolder(str(place).rstrip("/"))
    return LocalFolder(local_path(place))


def fetched(url: str, into: Path) -> Path:
    """Download a file, or a folder with all its files, into an existing local folder; return where it is."""
    place = into / url.rstrip("/").rsplit("/", 1)[-1]
    try:
        with file_system(url) as (system, path):
            if system.isdir(path):
                # With the slash the content goes into the folder, whether or not it exists.
                system.get(path.rstrip("/") + "/", str(place), recursive=True)
            else:
                system.get_file(path, str(place))
    except FileNotFoundError as error:
        raise StorageError(f"there is nothing at {url}; check the address") from error
    return place


@contextmanager
def file_system(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path in it; errors of the store become one clear error.

    That a file is missing, or exists where it must not, is for the caller to judge.
    """
    try:
        system = opened_system(f"{scheme_of(url)}://{urlsplit(url).netloc}", os.getpid())
        yield system, system._strip_protocol(url)
    except (FileNotFoundError, FileExistsError, MissingExtraError):
        raise
    except Exception as error:  # every store has its own errors
        raise StorageError(
            f"{url} cannot be read or written ({type(error).__name__}: {error}); check the address, the permissions "
            "and the connection, and try again"
        ) from error


# How long an answer of a store is waited for, and how often a request is made: some answers never come.
# [seconds; work], [requests; work]
STORE_SECONDS = 20
STORE_ATTEMPTS = 8
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "s3": {
        "config_kwargs": {
            "connect_timeout": STORE_SECONDS,
            "read_timeout": STORE_SECONDS,
            "retries": {"total_max_attempts": STORE_ATTEMPTS, "mode": "standard"},
        }
    }
}


@lru_cache(maxsize=64)
def opened_system(start: str, process: int) -> Any:
    """Open the file system of a URL once per process: connections do not survive a fork, but threads can share them."""
    fsspec = import_extra("fsspec", "s3")
    try:
        # Listings are not kept: other machines write to the same place.
        options = OPTIONS.get(scheme_of(start), {})
        return fsspec.core.url_to_fs(start, use_listings_cache=False, skip_instance_cache=True, **options)[0]
    except ImportError as error:
        raise MissingExtraError(
            f"{start} needs a package that is not installed ({error}); for s3:// run: {install_command('s3')}"
        ) from error
