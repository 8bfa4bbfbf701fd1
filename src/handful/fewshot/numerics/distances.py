"""Squared Euclidean distances that stay accurate when the points share a large offset, cosines, nearest neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from handful.fewshot.rows import unit
from handful.shapes import Bool, Float


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
