"""Inputs of a streamed run: a catalogue, summed by class once, and queries, read in blocks and never held whole.

Coordinates have their origin at the mean of the catalogue: products of vectors that share a large offset lose the
digits in which they differ. Rows at a URL are read by ranges of bytes, so a worker reads its shards and nothing else.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from handful.banks import FeatureBank, store
from handful.banks.bank import BLOCK_ROWS
from handful.errors import BankError, StorageError, TaskError
from handful.fitted import FittedModel
from handful.fitted.rows import transform_rows
from handful.machine.folders import Folder, LocalFolder, fetched, read_ranges
from handful.machine.outputs import is_remote, local_path
from handful.machine.untrusted import parse_json
from handful.reading import read_bank
from handful.reading.parquet import copy_vectors
from handful.runs.parts import append_checksum, open_checked, verify_checksum
from handful.shapes import Float

# Bytes in which the header of a `.npy` file fits. [bytes; convention]
HEADER_BYTES = 4096
# Digits of a hash by which a copy of vectors is named. [digits; convention]
NAME_DIGITS = 16


@dataclass(frozen=True)
class RemoteRows:
    """The rows of a `.npy` file at a URL."""

    url: str
    n_rows: int
    dim: int
    dtype: str
    offset: int

    @classmethod
    def of(cls, url: str) -> RemoteRows:
        """Read the header."""
        head = io.BytesIO(read_ranges(url, [(0, HEADER_BYTES)])[0])
        try:
            version = np.lib.format.read_magic(head)
            read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
            shape, by_column, dtype = read(head)
        except (ValueError, EOFError) as error:
            raise BankError(f"{url} is not a .npy file ({error}); write it again") from error
        if len(shape) != 2 or by_column or dtype.name not in store.FEATURE_TYPES or dtype.byteorder == ">":
            raise BankError(
                f"{url} must contain rows of {' or '.join(store.FEATURE_TYPES)}, little-endian, row by row, got "
                f"{dtype} of shape {shape}; write it again"
            )
        return cls(url, int(shape[0]), int(shape[1]), dtype.name, head.tell())

    def take(self, rows: Any) -> Float[np.ndarray, "row dim"]:
        """Read rows; neighbouring ones with one request."""
        wanted = np.asarray(rows, dtype=np.int64).reshape(-1)
        if len(wanted) == 0:
            return np.empty((0, self.dim), self.dtype)
        if wanted.min() < 0 or wanted.max() >= self.n_rows:
            raise BankError(f"rows must lie in 0 … {self.n_rows - 1}, got {wanted.min()} … {wanted.max()}")
        cuts = [0, *(np.flatnonzero(np.diff(wanted) != 1) + 1).tolist(), len(wanted)]
        size = self.dim * np.dtype(self.dtype).itemsize
        ranges = [
            (self.offset + int(wanted[start]) * size, self.offset + (int(wanted[stop - 1]) + 1) * size)
            for start, stop in pairwise(cuts)
        ]
        content = b"".join(read_ranges(self.url, ranges))
        if len(content) != len(wanted) * size:
            raise StorageError(f"{self.url} is shorter than its header says; write it again")
        return np.frombuffer(content, np.dtype(self.dtype).newbyteorder("<")).reshape(-1, self.dim).copy()

    def blocks(self) -> Iterator[Float[np.ndarray, "row dim"]]:
        """Read all rows in order, block by block."""
        for start in range(0, self.n_rows, BLOCK_ROWS):
            yield self.take(np.arange(start, min(start + BLOCK_ROWS, self.n_rows)))


# What a run needs of its queries: `n_rows`, `dim`, `dtype`, `take` and `blocks`.
Rows: TypeAlias = FeatureBank | RemoteRows


def rows_at(url: str) -> RemoteRows:
    """Open the features of a bank at a URL; its labels are not read."""
    place = url.rstrip("/")
    try:
        manifest = parse_json(read_ranges(f"{place}/{store.MANIFEST}", [(0, None)])[0].decode())
        entry = manifest["features"]
        name = entry["file"]
        shape = list(entry["shape"])
        dtype = entry["dtype"]
        if manifest["format"] != store.FORMAT or not isinstance(name, str) or {"/", "\\"} & set(name) or name == "..":
            raise ValueError(f"it says {manifest['format']!r} and names the file {name!r}")
    except StorageError as error:
        raise BankError(
            f"{url} has no {store.MANIFEST} ({error}); queries at a URL are a bank that FeatureBank.save wrote, or a "
            "Parquet file whose name ends with .parquet"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise BankError(f"{place}/{store.MANIFEST} does not describe a bank ({error}); upload it again") from error
    rows = RemoteRows.of(f"{place}/{name}")
    if shape != [rows.n_rows, rows.dim] or dtype != rows.dtype:
        raise BankError(
            f"{rows.url} contains {rows.dtype} of shape {[rows.n_rows, rows.dim]}, its manifest says {dtype} of shape "
            f"{shape}; upload the bank again"
        )
    return rows


@dataclass(frozen=True, eq=False)
class Input:
    """An input as given: its name in messages, a hash of its content, and how to open it."""

    name: str
    content: str
    open: Callable[[Folder], Rows]


def read_input(rows: Any, *, role: str, scratch: Path) -> Input:
    """Take a bank, a path or URL of one, a Parquet file, a pair (X, y) or, for queries, an array; read all of it once.

    Opening needs the folder of the run: vectors of queries in Parquet, which need no labels, are copied into it once,
    where every process can map or read them. A bank of queries at a URL stays there; anything else at a URL is
    downloaded into the folder `scratch` first. `role` is "catalogue" or "queries".
    """
    if isinstance(rows, FittedModel):
        return Input("the fitted catalogue", rows.content_hash, _no_bank)
    name = "the array of queries" if role == "queries" else "the pair (X, y) of the catalogue"
    if isinstance(rows, FeatureBank):
        bank = rows
        name = f"the bank of the {role}"
    elif isinstance(rows, str | os.PathLike):
        if role == "queries" and is_remote(rows) and not str(rows).endswith(".parquet"):
            there = rows_at(str(rows))
            return Input(str(rows), content_hash(there, labelled=False), lambda _: there)
        file = fetched(str(rows), scratch) if is_remote(rows) else local_path(rows)
        name = str(rows) if is_remote(rows) else str(file)
        if role == "queries" and file.suffix == ".parquet" and file.is_file():
            content = file_hash(file)
            return Input(name, content, partial(_copied, file, content))
        bank = read_bank(file)
    elif isinstance(rows, tuple) and len(rows) == 2:
        names, labels = np.unique(np.asarray(rows[1]), return_inverse=True)
        bank = FeatureBank.from_arrays(rows[0], labels, list(map(str, names.tolist())))
    elif role == "queries":
        bank = _unlabelled(rows)
    else:
        raise TaskError(
            f"the catalogue must be a FeatureBank, a path to one or a pair (X, y), got {type(rows).__name__}; "
            "make one with FeatureBank.from_arrays"
        )
    if not isinstance(rows, str | os.PathLike) and isinstance(bank.stored, np.memmap) and bank.stored.filename:
        name = str(bank.stored.filename)
    return Input(name, content_hash(bank, labelled=role == "catalogue"), lambda _: bank)


def _no_bank(_: Folder) -> Rows:
    raise TaskError("a fitted catalogue has no bank")


def content_hash(rows: Rows, *, labelled: bool) -> str:
    """SHA-256 of all features as they are now, and of labels and class names where they count.

    Computed and not taken from the manifest: files and arrays can change after a hash was recorded.
    """
    assert not labelled or isinstance(rows, FeatureBank)
    names, labels = (
        (rows.class_names, rows.labels) if isinstance(rows, FeatureBank) and labelled else ((), np.zeros(0, int))
    )
    digest = store.Digest(rows.dtype, (rows.n_rows, rows.dim), names)
    for block in rows.blocks():
        digest.features(block)
    return digest.close(labels)


def file_hash(file: Path) -> str:
    """SHA-256 of all bytes of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _copied(file: Path, content: str, folder: Folder) -> Rows:
    """Open the copy of a Parquet file's vectors, named by the content of the file; make it if it does not exist."""
    name = f"queries-{content[:NAME_DIGITS]}.npy"
    there = name in folder.names()
    if not there:
        with folder.written(name) as place:
            copy_vectors([file], place)
            append_checksum(place, name)
    if not isinstance(folder, LocalFolder):
        return RemoteRows.of(f"{folder.address}/{name}")
    if there:
        verify_checksum(folder.path / name, name)
    return _unlabelled(open_checked(folder.path / name))


def _unlabelled(features: Any) -> FeatureBank:
    array = features if isinstance(features, np.ndarray) else np.asarray(features)
    return FeatureBank.from_arrays(array, np.zeros(len(array), np.int32), ["unlabelled"])


def read_rows(queries: Rows, rows: np.ndarray, transform: str) -> Float[np.ndarray, "row dim"]:
    """Rows of these numbers in single precision, transformed, in memory."""
    there = queries.take(rows).astype(np.float32, copy=False)
    # A row that is refused is named by its number, also where rows are not neighbours.
    wrong = np.flatnonzero(~np.isfinite(there).all(1))[:1]
    first = rows[wrong] if len(wrong) else rows[:1]
    return transform_rows(transform, there[wrong] if len(wrong) else there, first=int(first.sum()))
