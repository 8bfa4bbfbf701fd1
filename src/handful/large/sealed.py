"""Files with a seal: the SHA-256 of all bytes before it, so that a file that was cut short or changed is refused.

`np.load` reads and maps a sealed `.npy` file as it does any other: it reads nothing after the array.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from handful.errors import FileFormatError

SEAL_BYTES = hashlib.sha256().digest_size
BLOCK_BYTES = 2**20


def seal(path: Path) -> None:
    """Append the seal.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lists"
    >>> _ = path.write_bytes(b"1 2 3")
    >>> seal(path)
    >>> check_seal(path)
    >>> _ = path.write_bytes(path.read_bytes().replace(b"2", b"7"))
    >>> check_seal(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    handful.errors.FileFormatError: ...lists was cut short or changed since it was written; ...
    """
    digest = _digest(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(digest)


def check_seal(path: Path) -> None:
    """Read the whole file; refuse it if it was cut short or changed."""
    length = path.stat().st_size - SEAL_BYTES
    if length >= 0:
        with path.open("rb") as file:
            file.seek(length)
            there = file.read()
        if there == _digest(path, length):
            return
    raise _damaged(path)


def open_sealed(path: Path) -> np.ndarray:
    """Map an array whose seal was checked before; refuse it if it was cut short or removed since."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _damaged(path) from error
    return array


def _damaged(path: Path) -> FileFormatError:
    return FileFormatError(
        f"{path} was cut short or changed since it was written; delete this file and call again: it will be made again"
    )


def _digest(path: Path, length: int) -> bytes:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0 and (block := file.read(min(BLOCK_BYTES, length))):
            found.update(block)
            length -= len(block)
    return found.digest()
