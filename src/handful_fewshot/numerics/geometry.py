"""Moments of points by class, and the space in which an alternating method compares points with prototypes.

Moments are the mass of a class and the weighted sum of its points. Means depend on points only through these, and they
can be added: those of a support and a query, or of the blocks of a query.

A method that repeats "compare the query with the prototypes, then average the points of each class" needs four
things: `support` (moments of the support, which do not change), `moments(u)` (moments of the softly assigned query),
`scores(w)` (how near each class is) and `moves(w, w_old)` (how far each prototype moved). One iteration costs 4|Q|Kd
operations.

With fewer queries than dimensions, |Q| + 1 coordinates say the same. Prototypes are sums of the support sums P_k and
of queries. With an orthonormal basis B of the queries, `P_k = B Bᵀ P_k + rest_k`, and only the length of the rest
matters: it is orthogonal to every query, and rests of different classes are never compared. So it is one more
coordinate, which is zero in every query.

Scores are `⟨z_n, w_k⟩ - ½‖w_k‖² = ½‖z_n‖² - ½‖z_n - w_k‖²`: they differ from distances by a constant per query.
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


@dataclass(frozen=True)
class Space:
    """Queries and support in the same coordinates; a prototype is a row of them."""

    query: Float[Tensor, "task query dim"]
    query_mask: Bool[Tensor, "task query"] | None
    support: Moments

    def in_few_coordinates(self) -> Space:
        """Return the same space in |Q| + 1 coordinates if there are more dimensions; padded queries are zero."""
        n_query, dim = self.query.shape[1:]
        if dim <= n_query + 1:
            return self
        basis, of_query = torch.linalg.qr(self.query.mT)
        inside = self.support.sums @ basis
        squares = self.support.sums.square().sum(-1) - inside.square().sum(-1)
        sums = torch.cat([inside, squares.clamp_(min=0).sqrt_().unsqueeze(-1)], -1)
        query = torch.nn.functional.pad(of_query.mT, (0, 1))
        return Space(query, self.query_mask, Moments(self.support.mass.expand(len(query), -1), sums))

    def moments(self, weights: Float[Tensor, "task query class"]) -> Moments:
        """`Σ_n u_nk` and `Σ_n u_nk z_n`."""
        return soft_moments(self.query, masked(weights, self.query_mask))

    def scores(self, prototypes: Float[Tensor, "#task class dim"]) -> Float[Tensor, "task query class"]:
        """`⟨z_n, w_k⟩ - ½‖w_k‖²`."""
        half_norms = 0.5 * prototypes.square().sum(-1).unsqueeze(-2)
        return times_transposed(self.query, prototypes).sub_(half_norms)

    def moves(
        self, new: Float[Tensor, "#task class dim"], old: Float[Tensor, "#task class dim"]
    ) -> Float[Tensor, "#task class"]:
        """`‖w_k - w_k'‖`."""
        return (new - old).square().sum(-1).sqrt_()


def masked(
    weights: Float[Tensor, "task query class"], query_mask: Bool[Tensor, "task query"] | None
) -> Float[Tensor, "task query class"]:
    """`u_nk`, and zero for padded queries."""
    # Not a product: padded rows may hold NaN.
    return weights if query_mask is None else weights.where(query_mask.unsqueeze(-1), 0)


def times_transposed(
    points: Float[Tensor, "task point dim"], rows: Float[Tensor, "#task row dim"]
) -> Float[Tensor, "task point row"]:
    """`X Yᵀ` per task; when all tasks share Y this is one large product instead of many small ones."""
    if len(rows) == 1:
        return points @ rows[0].mT
    return torch.bmm(points, rows.mT)
