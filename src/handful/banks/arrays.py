"""`.npy` and `.npz` files from untrusted sources: numbers and text, no objects, and no more than the file can hold.

NumPy allocates what an array's header asks for before it reads on, so the header is checked against the file first.
"""

from __future__ import annotations

import math
import pickle
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import BankError
from handful.machine.untrusted import Budget, refuse_irregular, unreadable

# NumPy itself reads no header longer than this.
LONGEST_HEAD = 10_000
WHY_NOT = (
    "a pickle is a program, and opening it runs what it says; if you trust who wrote it, make a bank of it: "
    "handful.read_bank(file, trust_pickle=True).save(folder)"
)


class PickledObjectsError(ValueError):
    """An array holds objects, which are a pickle."""


def open_npy(file: Path, *, trust_pickle: bool = False) -> np.ndarray:
    """Map a `.npy` file, refusing files that are cut short, and pickled objects unless they are trusted."""
    refuse_irregular(file, BankError)
    try:
        with file.open("rb") as stream:
            objects = _check_head(stream, file.stat().st_size, trust_pickle)
        if objects:
            return np.asarray(np.load(file, allow_pickle=True))
        return _checked_text(np.lib.format.open_memmap(file, mode="r"))
    except PickledObjectsError as error:
        raise BankError(f"{file} {error}") from error
    except FileNotFoundError as error:
        raise BankError(f"{file} is missing; the bank is incomplete: copy or make it again") from error
    except (ValueError, EOFError, OSError, pickle.UnpicklingError) as error:
        raise unreadable(file, "a .npy file of numbers", error) from error


@contextmanager
def opened_archive(file: Path, *, trust_pickle: bool = False) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the arrays of a `.npz` file by name, each read when it is asked for; objects only if they are trusted."""
    refuse_irregular(file, BankError)
    try:
        with zipfile.ZipFile(file) as archive:
            yield _Archive(archive, Budget.of(file), trust_pickle)
    except PickledObjectsError as error:
        raise BankError(f"{file}: array {error}") from error
    # RuntimeError: an entry is encrypted, or, as NotImplementedError, compressed in a way Python does not know.
    except (
        ValueError,
        EOFError,
        OSError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        pickle.UnpicklingError,
    ) as error:
        if isinstance(error, BankError):
            raise
        raise unreadable(file, "a .npz file of numbers and names", error) from error


class _Archive(Mapping[str, np.ndarray]):
    """Arrays by name; entries that are not arrays are left out."""

    def __init__(self, archive: zipfile.ZipFile, budget: Budget, trust_pickle: bool) -> None:
        self._archive = archive
        self._budget = budget
        self._trusted = trust_pickle
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        self._budget.spend(entry.file_size)
        with self._archive.open(entry) as stream:
            try:
                _check_head(stream, entry.file_size, self._trusted)
            except PickledObjectsError as error:
                raise PickledObjectsError(f"{name!r} {error}") from error
        with self._archive.open(entry) as stream:
            return _checked_text(np.lib.format.read_array(stream, allow_pickle=self._trusted))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _checked_text(array: np.ndarray) -> np.ndarray:
    """Return the array; refuse text with code points that do not exist, on which Python fails."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        numbers = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if int(numbers.max()) > sys.maxunicode:
            raise ValueError("its text has characters that do not exist")
    return array


def _check_head(stream: Any, size: int, trusted: bool) -> bool:
    """Refuse a `.npy` header that does not ask for exactly the bytes that follow it; `size` is that of the file.

    Return whether it contains pickled objects and have no size.
    """
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version}, and only records need more than 2.0")
    width = 2 * version[0]
    length = int.from_bytes(stream.read(width), "little")
    if length > LONGEST_HEAD:
        raise ValueError(f"its header is {length} bytes long")
    stream.seek(-width, 1)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read(stream)
    except Exception as error:  # a header is Python text, and odd ones make the parser raise nearly anything
        raise ValueError(f"its header cannot be read ({type(error).__name__})") from error
    if any(n < 0 for n in shape):
        raise ValueError(f"it has the shape {shape}")
    if dtype.hasobject:
        if not trusted:
            raise PickledObjectsError(
                "has objects instead of numbers or text, which NumPy stores as a pickle. If they are text, save them "
                f"as such, with labels.astype(str). Otherwise: {WHY_NOT}"
            )
        return True
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError(f"{dtype} of shape {shape} does not fit the {size - stream.tell()} bytes that follow")
    return False
