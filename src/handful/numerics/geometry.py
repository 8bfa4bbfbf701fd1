"""Where prototypes live while an alternating method runs: two spaces, one interface, the same answers.

A method that repeats "compare the query with the prototypes, then average the points of each class" needs four
things of its surroundings: `support` (moments that stay), `moments(u)` (those of the softly assigned query),
`scores(w)` (which class is near) and `shift(w, w_old)` (how far prototypes moved).

- `FeatureSpace` holds a prototype as its d coordinates. One iteration costs 4|Q|Kd operations.
- `GramSpace` holds it as a combination of the task's own points, `S_k = P_k + Σ_n u_nk z_n`, with P_k the sum of
  the support of class k. With `gram = Z Zᵀ` and `cross = Z Pᵀ` computed once, all it ever needs are the products
  `Z S_k = cross_k + gram u_k`: 2|Q|²K operations an iteration, whatever the dimension.

Scores are `⟨z_n, w_k⟩ - ½‖w_k‖² = ½‖z_n‖² - ½‖z_n - w_k‖²`: they differ from distances by a constant per query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from handful.numerics.moments import Moments, soft_moments
from handful.shapes import Bool, Float

# The setup products of Gram space are paid once; PADDLE rarely takes fewer iterations than this.
EXPECTED_ITERATIONS = 10

A = TypeVar("A")
P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)


@runtime_checkable
class Averages(Protocol[P_co]):
    """Moments in the coordinates of a space: they have a mass, they add, and their mean is a prototype."""

    @property
    def mass(self) -> Float[Tensor, "#task class"]:
        """How much each class holds."""
        ...

    def __add__(self: A, other: A, /) -> A: ...

    def mean(self) -> P_co:
        """Return the prototypes."""
        ...


@runtime_checkable
class Space(Protocol[P]):
    """What an alternating method asks of a geometry; P is how that geometry holds prototypes."""

    @property
    def support(self) -> Averages[P]:
        """Moments of the labelled points."""
        ...

    def moments(self, weights: Float[Tensor, "task query class"]) -> Averages[P]:
        """Return the moments of the query, assigned by `u_nk`; padding counts for nothing."""
        ...

    def scores(self, prototypes: P) -> Float[Tensor, "task query class"]:
        """Return `-½‖z_n - w_k‖²` up to a constant per query."""
        ...

    def shift(self, new: P, old: P) -> Float[Tensor, "task"]:
        """Return `mean_k ‖w_k - w_k'‖`."""
        ...


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

    def shift(
        self, new: Float[Tensor, "#task class dim"], old: Float[Tensor, "#task class dim"]
    ) -> Float[Tensor, "task"]:
        """`mean_k ‖w_k - w_k'‖`."""
        return (new - old).square().sum(-1).sqrt_().mean(-1)


@dataclass(frozen=True)
class GramMoments:
    """Moments known by their weights on the task's own points, and by their products with the query.

    `sums_k = a_k P_k + Σ_n u_nk z_n`, with `a_k` one when the support is in and zero when it is not.
    """

    mass: Float[Tensor, "#task class"]
    on_support: Float[Tensor, "#task class"]  # a_k
    on_query: Float[Tensor, "task query class"] | None  # u_nk; None when no query point is in
    products: Float[Tensor, "task query class"]  # ⟨z_n, sums_k⟩

    def __add__(self, other: GramMoments) -> GramMoments:
        """Return the moments of both sets of points together."""
        return GramMoments(
            self.mass + other.mass,
            self.on_support + other.on_support,
            _sum_of_present(self.on_query, other.on_query),
            self.products + other.products,
        )

    def mean(self) -> GramPrototypes:
        """`sums_k / mass_k`; the division is left to where the result is used."""
        return GramPrototypes(self)


@dataclass(frozen=True)
class GramPrototypes:
    """`w_k = sums_k / mass_k`, with numerator and divisor apart: the division joins a later pass."""

    total: GramMoments

    def weight_on_support(self) -> Float[Tensor, "#task class"]:
        """`a_k / mass_k`."""
        return self.total.on_support / self.total.mass

    def weights_on_query(self) -> Float[Tensor, "#task #query class"]:
        """`u_nk / mass_k`."""
        if self.total.on_query is None:
            return torch.zeros_like(self.total.mass).unsqueeze(-2)
        return self.total.on_query / self.total.mass.unsqueeze(-2)

    def products(self) -> Float[Tensor, "task query class"]:
        """`⟨z_n, w_k⟩`."""
        return self.total.products / self.total.mass.unsqueeze(-2)


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
        cls,
        query: Float[Tensor, "task query dim"],
        query_mask: Bool[Tensor, "task query"] | None,
        support: Moments,
    ) -> GramSpace:
        """Compute the two products that the iterations live on."""
        return cls(
            gram=torch.bmm(query, query.mT),
            cross=times_transposed(query, support.sums),
            query_mask=query_mask,
            support_norms=torch.linalg.vecdot(support.sums, support.sums),
            support_mass=support.mass,
        )

    @property
    def support(self) -> GramMoments:
        """The support sums P_k themselves: weight one on P_k, none on the query."""
        return GramMoments(self.support_mass, torch.ones_like(self.support_mass), None, self.cross)

    def moments(self, weights: Float[Tensor, "task query class"]) -> GramMoments:
        """`Σ_n u_nk` and `Z Σ_n u_nk z_n = gram u_k`."""
        weights = masked(weights, self.query_mask)
        mass = weights.sum(-2)
        return GramMoments(mass, torch.zeros_like(mass), weights, torch.bmm(self.gram, weights))

    def scores(self, prototypes: GramPrototypes) -> Float[Tensor, "task query class"]:
        """`⟨z_n, w_k⟩ - ½‖w_k‖²`, with `‖sums_k‖² = ‖P_k‖² + Σ_n u_nk (cross_nk + ⟨z_n, sums_k⟩)` at a_k = 1."""
        total = prototypes.total
        inverse = total.mass.reciprocal()
        norms = self.support_norms
        if total.on_query is not None:
            norms = norms + (self.cross + total.products).mul_(total.on_query).sum(-2)
        half_norms = 0.5 * norms * inverse.square()
        return torch.addcmul(-half_norms.unsqueeze(-2), total.products, inverse.unsqueeze(-2))

    def shift(self, new: GramPrototypes, old: GramPrototypes) -> Float[Tensor, "task"]:
        """`mean_k ‖w_k - w_k'‖`, from the *differences* of the weights: exact when the move is tiny."""
        on_support = new.weight_on_support() - old.weight_on_support()
        on_query = new.weights_on_query() - old.weights_on_query()
        products = new.products() - old.products()
        along_query = torch.addcmul(products, self.cross, on_support.unsqueeze(-2)).mul_(on_query).sum(-2)
        squares = on_support.square() * self.support_norms + along_query
        return squares.clamp_(min=0).sqrt_().mean(-1)


def masked(
    weights: Float[Tensor, "task query class"], query_mask: Bool[Tensor, "task query"] | None
) -> Float[Tensor, "task query class"]:
    """`u_nk`, and zero for padded queries."""
    return weights if query_mask is None else weights * query_mask.unsqueeze(-1)


def times_transposed(
    points: Float[Tensor, "task point dim"], rows: Float[Tensor, "#task row dim"]
) -> Float[Tensor, "task point row"]:
    """`X Yᵀ` per task; when all tasks share Y it is one large product rather than many small ones."""
    if len(rows) == 1:
        return points @ rows[0].mT
    return torch.bmm(points, rows.mT)


def gram_is_cheaper(n_query: int, n_classes: int, dim: int, max_iter: int) -> bool:
    """Compare `n · 4|Q|Kd` with `2|Q|(|Q|+K)d + n · 2|Q|²K` for the n iterations to be expected."""
    n = min(max_iter, EXPECTED_ITERATIONS)
    return n_query * (n * n_classes) + (n_query + n_classes) * dim < 2 * n * n_classes * dim


def _sum_of_present(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b
