"""Keys of groups: 128 bits for each row, the same in every batch, file and process.

Two groups share a key with probability `G² / 2¹²⁹`, about 10⁻²⁵ for ten million groups, so a key stands for its group.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.errors import TaskError
from handful.machine.extras import import_pyarrow
from handful.shapes import Int

# Odd constants of splitmix64, and what each half of a key begins with.
FIRST, SECOND, STEP = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15)
BEGINNINGS = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], np.uint64)


def check_kinds(schema: Any, group_by: Sequence[str], where: str) -> None:
    """Refuse columns that cannot name a group: lists and structures."""
    pa, _ = import_pyarrow()
    for name in group_by:
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise TaskError(f"{where}: column {name!r} holds {kind}; group by numbers, text, dates or booleans")


def keys_of(batch: Any, group_by: Sequence[str], where: str) -> Int[np.ndarray, "row half"]:
    """Return the key of each row of an Arrow batch; a row without a group is refused."""
    keys = np.zeros((len(batch), 2), np.uint64)
    for name in group_by:
        column = batch.column(name)
        if column.null_count:
            raise TaskError(
                f"{where}: some rows have no {name!r}, so they belong to no group; fill in or drop these rows"
            )
        halves = _halves(column, f"{where}, column {name!r}")
        for half in range(2):
            keys[:, half] = _mixed(keys[:, half] * STEP + halves[half] + BEGINNINGS[half])
    return keys


def _halves(column: Any, where: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return two numbers per row: whole numbers and dates as they are, everything else by a hash of its value."""
    pa, _ = import_pyarrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        values, places = column.dictionary, column.indices.to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        if pa.types.is_temporal(kind):
            column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
        numbers = column.to_numpy(zero_copy_only=False).astype(np.uint64, casting="unsafe")
        return numbers, numbers
    else:
        coded = column.dictionary_encode()
        values, places = coded.dictionary, coded.indices.to_numpy()
    digests = np.frombuffer(b"".join(_digest(value, where) for value in values.to_pylist()), np.uint64).reshape(-1, 2)
    return digests[places, 0], digests[places, 1]


def _digest(value: Any, where: str) -> bytes:
    if value is None or value != value:
        raise TaskError(f"{where}: some values are missing (null or NaN), so rows belong to no group; drop these rows")
    if isinstance(value, int) and not isinstance(value, bool):  # a dictionary of numbers is treated like plain numbers
        return 2 * (value % 2**64).to_bytes(8, sys.byteorder)
    if value == 0:
        value = abs(value)  # 0.0 and -0.0 are one group
    content = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.blake2b(content, digest_size=16).digest()


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Splitmix64's last step: every bit of the number influences every bit of the result."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * SECOND
    mixed: npt.NDArray[np.uint64] = numbers ^ (numbers >> np.uint64(31))
    return mixed
