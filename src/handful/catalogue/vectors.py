"""Vectors of a catalogue: numbers of 16 bits for those that an encoder made, of 32 bits for those that were given.

A vector x of 16 bits is kept as its largest size s, as a number of 32 bits, and `round(32767 x / s)`. Each number is
then wrong by at most s / 65,534, whatever its own size. Measurements have columns of very unequal size, so what was
given is kept as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handful.errors import FileFormatError
from handful.shapes import Float

# Largest whole number of 16 bits.
LARGEST = 32_767
# How a number may be kept. [bits; convention]
BITS = (16, 32)
# Bytes of s.
SCALE_BYTES = 4


class EncoderId(NamedTuple):
    """What made vectors: the name of an encoder, its version, and a hash of the numbers of its weights.

    Vectors that were given have the name of no encoder. `bits` is how each number is kept.
    """

    name: str
    version: str
    weights: str
    bits: int = 16


GIVEN = EncoderId("", "", "", 32)


def packed(vectors: Float[np.ndarray, "item dim"], bits: int) -> list[bytes]:
    """Return each vector as it is kept.

    Examples
    --------
    >>> vectors = np.array([[0.5, -1.0, 0.25]])
    >>> bool(np.abs(unpacked(packed(vectors, 16), 3, 16, "here") - vectors).max() < 1 / 65_534)
    True
    """
    some = np.ascontiguousarray(vectors, "<f4")
    if bits == 32:
        return [row.tobytes() for row in some]
    scales = np.abs(some).max(1, initial=0.0).astype("<f4")
    parts = np.divide(some.astype(np.float64), scales[:, None], out=np.zeros(some.shape), where=scales[:, None] > 0)
    numbers = np.rint(LARGEST * parts).astype("<i2")
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, numbers, strict=True)]


def unpacked(blobs: Sequence[bytes], dim: int, bits: int, where: str) -> Float[np.ndarray, "item dim"]:
    """Return vectors that `packed` wrote; refuse what it cannot have written."""
    size = 4 * dim if bits == 32 else SCALE_BYTES + 2 * dim
    if any(len(blob) != size for blob in blobs):
        raise FileFormatError(f"a vector in {where} has not the size of its encoder; restore the file from a copy")
    rows = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), size)
    if bits == 32:
        found = rows.view("<f4").astype(np.float32)
    else:
        scales = np.ascontiguousarray(rows[:, :SCALE_BYTES]).view("<f4")
        numbers = np.ascontiguousarray(rows[:, SCALE_BYTES:]).view("<i2")
        # In 64 bits, number by number: 32,767 s / 32,767 is then s, however large or small s is.
        found = np.empty(numbers.shape, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            np.multiply(numbers, scales.astype(np.float64) / LARGEST, out=found, casting="same_kind")
    if not np.isfinite(found).all():
        raise FileFormatError(f"a vector in {where} has a number that is not finite; restore the file from a copy")
    return found
