"""Rows of features: lengths of vectors of any scale, and rows of unit length.

Multiplying by a power of two changes no digit of a float, so results that do not depend on scale stay the same.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from handful.shapes import Float


def largest_of(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """`max_j |z_j|` of each vector."""
    return torch.maximum(vectors.amax(-1), -vectors.amin(-1))


def magnitudes(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """`‖z‖` of each vector, or `max_j |z_j|` where squares do not fit: finite, and right up to a factor of √d.

    Lengths take half the time of maxima. They are wrong only for a few vectors, for which the maximum is computed.
    """
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    least, _ = squares_fit(vectors.dtype)
    odd = ~((lengths > least) & (lengths < torch.inf))
    if bool(odd.any()):
        lengths[odd] = largest_of(vectors[odd])
    return lengths


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
