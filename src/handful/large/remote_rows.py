"""Rows of features that are read where they are needed: a bank in memory or on disk, or a `.npy` file at a URL.

Rows at a URL are read by ranges of bytes, so a worker reads its shards and nothing else.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from handful.banks import store
from handful.banks.bank import BLOCK_ROWS, FeatureBank
from handful.errors import BankError, StorageError
from handful.machine.folders import read_ranges
from handful.machine.untrusted import parse_json
from handful.shapes import Float

# Bytes in which the header of a `.npy` file fits.
HEADER_BYTES = 4096


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
        name, shape, dtype = entry["file"], list(entry["shape"]), entry["dtype"]
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
