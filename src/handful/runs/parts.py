"""Parts of a run: files with a number and a checksum; one that is missing, damaged or exchanged is made again.

The checksum is the SHA-256 of what a file is, such as the run, the number of the part and what it was made of, and of
all its bytes. It is at the end of the file. `np.load` reads and maps a `.npy` file, because it reads nothing after the
array.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import FileFormatError
from handful.machine.folders import Folder

CHECKSUM_BYTES = hashlib.sha256().digest_size
BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Parts:
    """The parts of one kind in a folder on disk or at a URL: some arrays each, in a file that is complete or missing.

    Attributes
    ----------
    folder : Folder
        Where they are.
    pattern : str
        Name of the file of a part, from its number.
    run : str
        Name of the run; parts of other runs do not count.

    Examples
    --------
    >>> import tempfile
    >>> from handful.machine.folders import folder_at
    >>> parts = Parts(folder_at(tempfile.mkdtemp()), "sums/{:06d}", run="a2f9")
    >>> parts.load(0) is None
    True
    >>> parts.save(0, np.arange(3))
    >>> parts.load(0)
    [array([0, 1, 2])]
    >>> parts.load(0, made_of="other rows") is None
    True
    """

    folder: Folder
    pattern: str
    run: str

    def save(self, number: int, *arrays: np.ndarray[Any, Any], made_of: str = "") -> None:
        """Write a part, complete or not at all."""
        with self.folder.written(self.pattern.format(number)) as file:
            with file.open("wb") as stream:
                for array in arrays:
                    np.save(stream, array)
            append_checksum(file, self._what(number, made_of))

    def load(self, number: int, made_of: str = "") -> list[np.ndarray[Any, Any]] | None:
        """Return the arrays of a part; None if it is missing, damaged, of another run, or made of something else."""
        with self.folder.opened(self.pattern.format(number)) as file:
            if file is None:
                return None
            try:
                verify_checksum(file, self._what(number, made_of))
            except FileFormatError:
                return None
            arrays = []
            end = file.stat().st_size - CHECKSUM_BYTES
            with file.open("rb") as stream:
                while stream.tell() < end:
                    arrays.append(np.load(stream, allow_pickle=False))
            return arrays

    def _what(self, number: int, made_of: str) -> str:
        return f"{self.run}/{number}/{made_of}"


def append_checksum(path: Path, what: str) -> None:
    """Append the checksum of what a file is and of its bytes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lists"
    >>> _ = path.write_bytes(b"1 2 3")
    >>> append_checksum(path, "shard 0")
    >>> verify_checksum(path, "shard 0")
    >>> verify_checksum(path, "shard 1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    handful.errors.FileFormatError: ...lists was cut short or changed since it was written, or exchanged for another...
    """
    digest = _digest(path, what, path.stat().st_size)
    with path.open("ab") as file:
        file.write(digest)


def verify_checksum(path: Path, what: str) -> None:
    """Read the whole file; refuse it if it was cut short or changed, or if it is another than `what`."""
    length = path.stat().st_size - CHECKSUM_BYTES
    if length >= 0:
        with path.open("rb") as file:
            file.seek(length)
            there = file.read()
        if there == _digest(path, what, length):
            return
    raise _damaged(path)


def open_checked(path: Path) -> np.ndarray[Any, Any]:
    """Map an array whose checksum was verified before; refuse it if it was cut short or removed since."""
    try:
        array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _damaged(path) from error
    return array


def _damaged(path: Path) -> FileFormatError:
    return FileFormatError(
        f"{path} was cut short or changed since it was written, or exchanged for another file; delete this file and "
        "call again: it will be made again"
    )


def _digest(path: Path, what: str, length: int) -> bytes:
    found = hashlib.sha256(f"{what}\n".encode())
    with path.open("rb") as file:
        while length > 0 and (block := file.read(min(BLOCK_BYTES, length))):
            found.update(block)
            length -= len(block)
    return found.digest()
