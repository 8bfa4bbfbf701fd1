"""Files with a checksum: the SHA-256 of what a file is and of all its bytes; a damaged or exchanged file is refused.

`what` tells files of one kind apart, for example by their run and the number of their shard. A file of tensors has its
checksum in its header, see `handful.machine.safetensors_format`. Any other file has it at its end; `np.load` reads and
maps a `.npy` file, because it reads nothing after the array.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from handful.errors import FileFormatError

CHECKSUM_BYTES = hashlib.sha256().digest_size
BLOCK_BYTES = 2**20


def append_checksum(path: Path, what: str) -> None:
    """Append the checksum.

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


def open_checked(path: Path) -> np.ndarray:
    """Map an array whose checksum was verified before; refuse it if it was cut short or removed since."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
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
