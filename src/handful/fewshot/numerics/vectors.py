"""Vectors: their lengths at any scale, unit vectors, squared distances, cosines, nearest neighbours.

Multiplying by a power of two changes no digit of a float, so results that do not depend on scale stay the same.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from handful.shapes import Bool, Float


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


def half_squared_distances(
    points: Float[Tensor, "task point dim"], centres: Float[Tensor, "#task class dim"]
) -> Float[Tensor, "task point class"]:
    """`½‖x_n - w_k‖²`, expanded after moving the origin to the mean of the centres.

    The expansion costs one matrix product; moving the origin first keeps its terms as small as the distances.
    """
    origin = centres.mean(-2, keepdim=True)
    points, centres = points - origin, centres - origin
    half_norms = 0.5 * centres.square().sum(-1).unsqueeze(-2)
    expanded = 0.5 * points.square().sum(-1, keepdim=True) + half_norms - points @ centres.mT
    return expanded.clamp_(min=0)


def cosines(
    points: Float[Tensor, "task point dim"], directions: Float[Tensor, "#task class dim"]
) -> Float[Tensor, "task point class"]:
    """`⟨x_n, w_k⟩ / (‖x_n‖ ‖w_k‖)`, and zero where either vector is zero."""
    return unit(points) @ unit(directions).mT


def neighbour_affinities(
    points: Float[Tensor, "task point dim"], mask: Bool[Tensor, "task point"] | None, n_neighbours: int
) -> Float[Tensor, "task point point"]:
    """`a_nm = 1` when m is among the nearest neighbours of n, n itself not counted, and 0 otherwise.

    The graph is directed: m may be a neighbour of n without n being a neighbour of m. Padded points have no neighbours
    and are neighbours of no point. If a task has fewer than `n_neighbours` other points, all of them are neighbours.
    Ties between equally distant points are broken arbitrarily.
    """
    n_points = points.shape[1]
    distances = half_squared_distances(points, points)
    distances = distances.masked_fill(torch.eye(n_points, dtype=torch.bool, device=points.device), torch.inf)
    if mask is not None:
        distances = distances.masked_fill(~(mask.unsqueeze(-1) & mask.unsqueeze(-2)), torch.inf)
    nearest = distances.topk(min(n_neighbours, n_points), dim=-1, largest=False)
    return torch.zeros_like(distances).scatter_(-1, nearest.indices, nearest.values.isfinite().to(points.dtype))
