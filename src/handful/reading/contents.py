"""Contents of images in folders and in .zip files, read when they are iterated over; nothing is unpacked."""

from __future__ import annotations

import errno
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import exists, isfile, islink
from pathlib import Path
from typing import Any, Self, TypeAlias

from handful.machine.outputs import refusal

# The formats that are read, as Pillow calls them, with the endings of their files. Pillow is given this list: a file
# called photo.png could be EPS, for which Pillow would start Ghostscript.
FORMATS = {
    "JPEG": (".jpg", ".jpeg"),
    "PNG": (".png",),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "WEBP": (".webp",),
    "TIFF": (".tif", ".tiff"),
    "PPM": (".ppm", ".pgm"),
}
# Photographs of telephones; the extra `heic` reads them.
HEIC = (".heic", ".heif", ".hif")
VIDEO = "a video"
# Endings of photographs and videos that cameras and telephones write and that are not read, with their names.
NOT_READ = {
    **dict.fromkeys((".avif", ".jxl", ".jp2"), "this kind of image"),
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".orf", ".rw2", ".raf"), "raw data of a camera"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".m4v", ".mts", ".3gp"), VIDEO),
}
IMAGE_SUFFIXES = frozenset(ending for endings in (*FORMATS.values(), HEIC) for ending in endings)
# An image file is read no further than this: inside a .zip a small entry can expand to any size.
MAX_FILE_BYTES = 256 * 2**20
# What Python raises about a damaged archive. RuntimeError: an entry is encrypted, or, as NotImplementedError, packed in
# an unknown way. OSError: its offset is impossible, or its bz2 or lzma data are damaged.
DAMAGED_ENTRY = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, OSError)


@dataclass(frozen=True)
class Unreadable:
    """An item that gives no features, and why."""

    reason: str


Content: TypeAlias = bytes | str | Unreadable


@dataclass(frozen=True)
class _Files:
    """Files below a folder or inside a .zip, read when iterated over; slices like a tuple of their contents."""

    root: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: slice) -> Self:
        return replace(self, names=self.names[rows])


class FolderFiles(_Files):
    """Files below the folder `root`, or elsewhere on the disk; one that cannot be read is `Unreadable`."""

    def __iter__(self) -> Iterator[Content]:
        for name in self.names:
            reason = no_file(self.root / name)
            if reason:
                yield Unreadable(reason)
                continue
            try:
                with (self.root / name).open("rb") as stream:
                    content = _limited(stream)
            except (FileNotFoundError, PermissionError) as error:  # others are the disk's fault, not the file's
                content = Unreadable(refusal(error))
            yield content


def no_file(path: Path) -> str:
    """Return why there is no file to read at a path; empty if there is one. Nothing is opened: a pipe never ends."""
    if isfile(path):
        return ""
    if islink(path):
        return "it is a link that leads to no file"
    return "it is a pipe, a device or a folder" if exists(path) else "there is no such file"


class ZipFiles(_Files):
    """Files inside the .zip `root`."""

    def __iter__(self) -> Iterator[Content]:
        with zipfile.ZipFile(self.root) as archive:
            for name in self.names:
                try:
                    with archive.open(name) as stream:
                        content = _limited(stream)
                except DAMAGED_ENTRY as error:
                    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                        raise  # the disk's fault, not the file's
                    content = Unreadable(f"{type(error).__name__}: {error}")
                yield content


@dataclass(frozen=True)
class KeptPictures:
    """Files of images in memory; one that is not there is empty."""

    contents: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.contents)

    def __getitem__(self, rows: slice) -> KeptPictures:
        return KeptPictures(self.contents[rows])

    def __iter__(self) -> Iterator[Content]:
        return iter(self.contents)


Contents: TypeAlias = FolderFiles | ZipFiles | KeptPictures | tuple[str, ...]


def pick(source: Contents, positions: Sequence[int]) -> Contents:
    """Return the contents at these positions, in this order, not yet read."""
    if isinstance(source, tuple):
        return tuple(source[position] for position in positions)
    if isinstance(source, KeptPictures):
        return KeptPictures(tuple(source.contents[position] for position in positions))
    return replace(source, names=tuple(source.names[position] for position in positions))


def _limited(stream: Any) -> bytes | Unreadable:
    data: bytes = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        return Unreadable(f"the file is larger than {MAX_FILE_BYTES} bytes, which no image should be")
    return data
