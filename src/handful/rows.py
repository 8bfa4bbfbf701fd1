"""Rows of features: lengths of vectors of any scale, and transforms that work on each row alone.

Multiplying by a power of two changes no digit of a float, so results that do not depend on scale stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from handful.errors import TaskError
from handful.shapes import Float


def largest_of(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """`max_j |z_j|` of each vector."""
    return torch.maximum(vectors.amax(-1), -vectors.amin(-1))


def magnitudes(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """`‖z‖` of each vector, or `max_j |z_j|` where squares do not fit: finite, and right up to a factor of √d.

    Lengths take half the time of maxima. They are wrong only for a few vectors, for which the maximum is computed.
    """
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    least, _ = squares_fit(vectors.dtype)
    odd = ~((found > least) & (found < torch.inf))
    if bool(odd.any()):
        found[odd] = largest_of(vectors[odd])
    return found


def to_near_one(sizes: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Powers of two that bring these numbers to 2 … 4; one where a number is zero.

    The range starts at two so that the power for the largest floats is a normal number. For the smallest floats, which
    have fewer digits, the power is capped at the largest power of two.
    """
    values = sizes.cpu().numpy()
    _, exponents = np.frexp(values)
    least = 3 - np.finfo(values.dtype).maxexp
    powers = np.ldexp(np.ones_like(values), 2 - np.maximum(exponents, least))
    return torch.from_numpy(np.where(values > 0, powers, 1).astype(values.dtype)).to(sizes.device)


def squares_fit(dtype: torch.dtype) -> tuple[float, float]:
    """Bounds between which the square of a number keeps all its digits and does not overflow."""
    limits = torch.finfo(dtype)
    return math.sqrt(limits.tiny / limits.eps), math.sqrt(limits.max)


def unit(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """`z / ‖z‖` for vectors of any magnitude; a zero vector stays zero."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    least, _ = squares_fit(vectors.dtype)
    if not bool(((lengths > least) & (lengths < torch.inf)).all()):
        # Some squares overflow or underflow, or a vector is zero: scale every vector to a length near one first.
        vectors = vectors * to_near_one(largest_of(vectors)).unsqueeze(-1)
        lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / lengths.clamp_(min=torch.finfo(vectors.dtype).tiny)


# Maximum number of rows that are summed before the sum is squared.
MOST_SUMMED = 16_384
# Transforms that work on each row alone.
ROW_TRANSFORMS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType({"raw": lambda rows: rows, "l2": unit})


def transform_rows(name: str, rows: Float[Tensor, "*batch dim"], first: int = 0) -> Float[Tensor, "*batch dim"]:
    """Apply a transform of `ROW_TRANSFORMS`; refuse rows whose values or squares do not fit their dtype.

    `first` is the number of the first row, for the message.
    """
    sizes = magnitudes(rows).flatten()
    largest = float(sizes.max()) if len(sizes) else 0.0
    if not math.isfinite(largest):
        bad = first + int((~sizes.isfinite()).nonzero()[0])
        raise TaskError(f"row {bad} has a feature that is not finite; drop or impute such rows")
    least, most = (torch.finfo(rows.dtype).tiny, math.inf) if name != "raw" else squares_fit(rows.dtype)
    # Sums over rows are squared as well.
    if 0 < largest < least or largest > most / MOST_SUMMED:
        raise TaskError(
            f"the longest of the rows {first} … {first + len(sizes) - 1} has length {largest:.2g}: {rows.dtype} "
            "cannot hold its square, or has lost digits of it; use transform='l2', or multiply all features by a "
            "number that brings them near one"
        )
    return ROW_TRANSFORMS[name](rows)
