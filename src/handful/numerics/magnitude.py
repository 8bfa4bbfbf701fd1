"""Magnitudes: how long a vector is, whatever its scale, and the power of two that brings them near one.

A factor that is a power of two changes no digit of a float, so whatever does not depend on scale comes out the same.
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
    """`‖z‖` of each vector, and `max_j |z_j|` where squares do not fit: finite and right but for a factor of √d.

    Lengths take half the time of maxima, and are wrong only for the few vectors that are looked at again.
    """
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    least, _ = squares_fit(vectors.dtype)
    odd = ~((found > least) & (found < torch.inf))
    if bool(odd.any()):
        found[odd] = largest_of(vectors[odd])
    return found


def to_near_one(sizes: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Powers of two that bring these numbers to 2 … 4; one where a number is zero.

    Two and not one: the power for the largest floats is then a normal number. That for the smallest, which have fewer
    digits, stops at the largest power of two there is.
    """
    values = sizes.cpu().numpy()
    _, exponents = np.frexp(values)
    least = 3 - np.finfo(values.dtype).maxexp
    powers = np.ldexp(np.ones_like(values), 2 - np.maximum(exponents, least))
    return torch.from_numpy(np.where(values > 0, powers, 1).astype(values.dtype)).to(sizes.device)


def squares_fit(dtype: torch.dtype) -> tuple[float, float]:
    """Magnitudes between which the square of a number keeps all its digits, and does not overflow."""
    limits = torch.finfo(dtype)
    return math.sqrt(limits.tiny / limits.eps), math.sqrt(limits.max)
