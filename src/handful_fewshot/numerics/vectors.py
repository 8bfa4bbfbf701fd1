"""Vectors: unit length, distances, cosines, neighbours; and points on the simplex: softmax, projection, entropies.

Denormal floats (below 1e-38 in float32) make a product up to a hundred times slower on most processors, and a
sharply converged assignment matrix is full of them. So logarithms are clamped at `lowest_log` before they are
exponentiated, and probabilities below `exp(lowest_log)` are exactly zero. The clamp also removes -inf, whose
exponential takes far longer than that of a finite number (docs/measured/performance.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Bool, Float

# Clamped values are recognised by their exponential, which is exact up to rounding.
ABOVE_LOWEST = 1.0001


def unit(vectors: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """`z / ‖z‖`; a zero vector stays zero, and so does one whose squares underflow."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return (vectors / lengths).where(lengths > 0, 0)


def half_squared_distances(
    points: Float[Tensor, "task point dim"], centres: Float[Tensor, "#task class dim"]
) -> Float[Tensor, "task point class"]:
    """`½‖x_n - w_k‖²`, expanded after moving the origin to the mean of the centres.

    The expansion costs one matrix product; moving the origin first keeps its terms as small as the distances.
    """
    origin = centres.mean(-2, keepdim=True)
    points = points - origin
    centres = centres - origin
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


def lowest_log(dtype: torch.dtype) -> float:
    """Logarithm below which a probability counts as zero: 0.8 ln(smallest normal), -69.9 for float32.

    The factor 0.8 keeps the product with a small feature normal as well.
    """
    return 0.8 * math.log(torch.finfo(dtype).tiny)


@dataclass(frozen=True)
class SoftLabels:
    """Points on the simplex, `u_nk`: as weights for products, and as logarithms for everything else."""

    weights: Float[Tensor, "*batch class"]
    logits: Float[Tensor, "*batch class"]
    largest: Float[Tensor, "*batch 1"]  # of each row of logits
    log_total: Float[Tensor, "*batch 1"]  # ln Σ exp(logits - largest)

    def log(self) -> Float[Tensor, "*batch class"]:
        """`ln u_nk`, exact where the weight itself counts as zero."""
        return (self.logits - self.largest).sub_(self.log_total)


def softmax(logits: Float[Tensor, "*batch class"]) -> SoftLabels:
    """`u_k = exp(logits_k) / Σ_j exp(logits_j)` over the last axis; a row may contain -inf, but not only -inf."""
    lowest = lowest_log(logits.dtype)
    largest = logits.amax(-1, keepdim=True)
    weights = torch.threshold_((logits - largest).clamp_(min=lowest).exp_(), ABOVE_LOWEST * math.exp(lowest), 0.0)
    total = weights.sum(-1, keepdim=True)
    return SoftLabels(weights.div_(total), logits, largest, total.log())


def project_to_simplex(points: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch class"]:
    """`argmin_p ‖p - x‖²` over the simplex: `p = max(x - θ, 0)`, with θ the root of `f(θ) = Σ_k max(x_k - θ, 0) - 1`.

    f falls and is convex, and linear between the coordinates. So Newton's method, started below the root, rises to it
    and ends there: each step leaves out the coordinates below θ, and the last leaves out none. Below the root are both
    the threshold at which all coordinates count, and the largest coordinate minus one.
    """
    n_classes = points.shape[-1]
    threshold = torch.maximum((points.sum(-1, keepdim=True) - 1) / n_classes, points.amax(-1, keepdim=True) - 1)
    n_positive = torch.zeros_like(threshold)
    for _ in range(n_classes):
        projected = (points - threshold).clamp_(min=0)
        left = projected.sign().sum(-1, keepdim=True)
        if torch.equal(left, n_positive):
            break
        n_positive = left
        threshold = threshold + (projected.sum(-1, keepdim=True) - 1) / n_positive
    return projected


def entropy(probabilities: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch"]:
    """`-Σ_k p_k ln p_k` over the last axis."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)
