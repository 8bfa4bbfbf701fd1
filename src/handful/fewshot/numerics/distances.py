"""Squared Euclidean distances that stay accurate when the points share a large offset, and cosines."""

from __future__ import annotations

from torch import Tensor

from handful.fewshot.rows import unit
from handful.shapes import Float


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
