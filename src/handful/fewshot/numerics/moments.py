"""Moments of points by class: the mass of a class, and the weighted sum of its points. Moments can be added.

Means depend on points only through these. So a support and a query, two blocks of one query, or the shards of
several machines are combined with `+`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Moments:
    """`mass_k = Σ_n u_nk` and `sums_k = Σ_n u_nk z_n`, per task."""

    mass: Float[Tensor, "#task class"]
    sums: Float[Tensor, "#task class dim"]

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of points together."""
        return Moments(self.mass + other.mass, self.sums + other.sums)

    def mean(self) -> Float[Tensor, "#task class dim"]:
        """`sums_k / mass_k`."""
        return self.sums / self.mass.unsqueeze(-1)

    def about(self, origin: Float[Tensor, "#task dim"]) -> Moments:
        """Return the moments of the same points after `z ← z - origin`."""
        return Moments(self.mass, torch.addcmul(self.sums, self.mass.unsqueeze(-1), origin.unsqueeze(-2), value=-1))


def labelled_moments(
    points: Float[Tensor, "task point dim"],
    labels: Int[Tensor, "task point"],
    mask: Bool[Tensor, "task point"] | None,
    n_classes: int,
) -> Moments:
    """Moments of points with one label each; points where `mask` is False are ignored."""
    n_tasks, _, dim = points.shape
    if mask is not None:
        # Padded points go to a class of their own, which is cut off at the end.
        labels = labels.where(mask, n_classes)
    n_bins = n_classes + (mask is not None)
    first_bin = n_bins * points.new_ones(n_tasks, dtype=labels.dtype).cumsum(0).sub_(1)
    bins = (labels + first_bin.unsqueeze(-1)).reshape(-1)
    sums = points.new_zeros(n_tasks * n_bins, dim)
    sums.scatter_add_(0, bins.unsqueeze(-1).expand(-1, dim), points.reshape(-1, dim))
    mass = points.new_zeros(n_tasks * n_bins).scatter_add_(0, bins, points.new_ones(1).expand_as(bins))
    return Moments(mass.reshape(n_tasks, n_bins)[:, :n_classes], sums.reshape(n_tasks, n_bins, dim)[:, :n_classes])


def soft_moments(points: Float[Tensor, "task point dim"], weights: Float[Tensor, "task point class"]) -> Moments:
    """Moments of points that belong to class k with weight `u_nk`."""
    return Moments(weights.sum(-2), weights.mT @ points)
