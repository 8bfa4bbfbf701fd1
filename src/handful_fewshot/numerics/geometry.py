"""Moments of points by class, and how prototypes are represented while an alternating method runs.

Moments are the mass of a class and the weighted sum of its points. Means depend on points only through these, and they
can be added: those of a support and a query, or of the blocks of a query.

A method that repeats "compare the query with the prototypes, then average the points of each class" needs four
things: `support` (moments of the support, which do not change), `moments(u)` (moments of the softly assigned query),
`scores(w)` (how near each class is) and `moves(w, w_old)` (how far each prototype moved). Two spaces have them, with
the same answers.

- `FeatureSpace` stores a prototype as its d coordinates. One iteration costs 4|Q|Kd operations.
- `GramSpace` stores it as a combination of the task's own points, `S_k = P_k + Σ_n u_nk z_n`, with P_k the sum of
  the support of class k. With `gram = Z Zᵀ` and `cross = Z Pᵀ` computed once, it only needs the products
  `Z S_k = cross_k + gram u_k`: 2|Q|²K operations per iteration, regardless of the dimension.

Scores are `⟨z_n, w_k⟩ - ½‖w_k‖² = ½‖z_n‖² - ½‖z_n - w_k‖²`: they differ from distances by a constant per query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from handful.shapes import Bool, Float, Int

# The setup products of Gram space are computed once; PADDLE rarely takes fewer iterations than this.
EXPECTED_ITERATIONS = 10
# Cost of one operation in feature space, in operations of Gram space (`python perf/growth.py`).
FEATURE_OPERATION = 1.25
# Arrays [query, class] with fewer classes than this are stored class by class: a reduction over few classes then sums
# a few long rows instead of many short ones.
CLASS_BY_CLASS_BELOW = 64


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
class FeatureSpace:
    """Prototypes as points: `w_k` is a row of d numbers."""

    query: Float[Tensor, "task query dim"]
    query_mask: Bool[Tensor, "task query"] | None
    support: Moments

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


@dataclass(frozen=True)
class GramMoments:
    """Moments stored as weights on the task's own points: of the support, of a query, or of both."""

    mass: Float[Tensor, "#task class"]
    on_query: Float[Tensor, "task query class"] | None  # u_nk; None for the support alone

    def __add__(self, query: GramMoments) -> GramMoments:
        """Return the moments of the support and a query together."""
        return GramMoments(self.mass + query.mass, query.on_query)

    def mean(self) -> GramPrototypes:
        """`(P_k + Σ_n u_nk z_n) / mass_k`."""
        inverse = self.mass.reciprocal()
        return GramPrototypes(inverse, None if self.on_query is None else self.on_query * inverse.unsqueeze(-2))


@dataclass(frozen=True)
class GramPrototypes:
    """`w_k = s_k P_k + Σ_n a_nk z_n`."""

    on_support: Float[Tensor, "#task class"]  # s_k
    on_query: Float[Tensor, "task query class"] | None  # a_nk; None means all zero


@dataclass(frozen=True)
class GramSpace:
    """Prototypes as combinations of the task's own points."""

    gram: Float[Tensor, "task query query"]  # Z Zᵀ
    cross: Float[Tensor, "task query class"]  # Z Pᵀ
    query_mask: Bool[Tensor, "task query"] | None
    support_norms: Float[Tensor, "#task class"]  # ‖P_k‖²
    support_mass: Float[Tensor, "#task class"]

    @classmethod
    def of(
        cls, query: Float[Tensor, "task query dim"], query_mask: Bool[Tensor, "task query"] | None, support: Moments
    ) -> GramSpace:
        """Compute the two products that the iterations use."""
        n_tasks = len(query)
        if support.mass.shape[-1] < CLASS_BY_CLASS_BELOW:
            cross = times_transposed(support.sums.expand(n_tasks, -1, -1), query).mT
        else:
            cross = times_transposed(query, support.sums)
        squares = torch.linalg.vector_norm(support.sums, dim=-1).square_()
        return cls(
            gram=torch.bmm(query, query.mT),
            cross=cross,
            query_mask=query_mask,
            support_norms=squares.expand(n_tasks, -1),
            support_mass=support.mass.expand(n_tasks, -1),
        )

    @property
    def support(self) -> GramMoments:
        """The support sums P_k alone, without the query."""
        return GramMoments(self.support_mass, None)

    def moments(self, weights: Float[Tensor, "task query class"]) -> GramMoments:
        """`Σ_n u_nk`, and u_nk itself."""
        weights = masked(weights, self.query_mask)
        return GramMoments(weights.sum(-2), weights)

    def products(self, prototypes: GramPrototypes) -> Float[Tensor, "task query class"]:
        """`⟨z_n, w_k⟩ = s_k cross_nk + (gram a)_nk`, computed on first use and cached with the prototypes."""
        products: Tensor | None = prototypes.__dict__.get("_products")
        if products is None:
            share = prototypes.on_support.unsqueeze(-2)
            if prototypes.on_query is None:
                products = self.cross * share
            else:
                products = _gram_times(self.gram, prototypes.on_query).addcmul_(self.cross, share)
            prototypes.__dict__["_products"] = products
        return products

    def scores(self, prototypes: GramPrototypes) -> Float[Tensor, "task query class"]:
        """`⟨z_n, w_k⟩ - ½‖w_k‖²`."""
        products = self.products(prototypes)
        squares = self._squares(prototypes.on_support, prototypes.on_query, products)
        return products - squares.mul_(0.5).unsqueeze(-2)

    def moves(self, new: GramPrototypes, old: GramPrototypes) -> Float[Tensor, "#task class"]:
        """`‖w_k - w_k'‖`, from the *differences* of the weights: exact when the move is tiny."""
        on_query = new.on_query if new.on_query is None or old.on_query is None else new.on_query - old.on_query
        products = self.products(new) - self.products(old)
        return self._squares(new.on_support - old.on_support, on_query, products).clamp_(min=0).sqrt_()

    def _squares(
        self, on_support: Tensor, on_query: Tensor | None, products: Float[Tensor, "task query class"]
    ) -> Float[Tensor, "task class"]:
        """`‖v_k‖² = s_k² ‖P_k‖² + Σ_n a_nk (s_k cross_nk + ⟨z_n, v_k⟩)` of `v_k = s_k P_k + Σ_n a_nk z_n`."""
        of_support = on_support.square() * self.support_norms
        if on_query is None:
            return of_support
        return torch.addcmul(products, self.cross, on_support.unsqueeze(-2)).mul_(on_query).sum(-2).add_(of_support)


# What a method iterates in: `FeatureSpace` or `GramSpace`. Moments and prototypes of the two have no common type.
Space: TypeAlias = Any


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


def gram_is_cheaper(n_query: int, n_classes: int, dim: int, max_iter: int) -> bool:
    """Compare `n · 4|Q|Kd` with `2|Q|(|Q|+K)d + n · 2|Q|²K` for the expected n iterations."""
    n = min(max_iter, EXPECTED_ITERATIONS)
    return n_query * (n * n_classes) + (n_query + n_classes) * dim < FEATURE_OPERATION * 2 * n * n_classes * dim


def _gram_times(gram: Float[Tensor, "task query query"], weights: Float[Tensor, "task query class"]) -> Tensor:
    """`G U` for the symmetric G, in the memory order of U."""
    return torch.bmm(weights.mT, gram).mT if weights.mT.is_contiguous() else torch.bmm(gram, weights)
