"""Where prototypes live while an alternating method runs: two spaces, one interface, the same answers.

A method that repeats "compare the query with the prototypes, then average the points of each class" needs four
things of its surroundings: `support` (moments that stay), `moments(u)` (those of the softly assigned query),
`scores(w)` (which class is near) and `moves(w, w_old)` (how far each prototype went).

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
from handful.shapes import Bool, Float, Int

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
    def n_classes(self) -> int:
        """Number of classes of a task, all of them."""
        ...

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

    def moves(self, new: P, old: P) -> Float[Tensor, "#task class"]:
        """Return `‖w_k - w_k'‖`."""
        ...

    def restrict(self, prototypes: P, classes: Int[Tensor, "task kept"]) -> tuple[Space[P], P]:
        """Return this space and these prototypes for some classes of each task only."""
        ...


@dataclass(frozen=True)
class FeatureSpace:
    """Prototypes as points: `w_k` is a row of d numbers."""

    query: Float[Tensor, "task query dim"]
    query_mask: Bool[Tensor, "task query"] | None
    support: Moments
    n_classes: int

    @classmethod
    def of(
        cls,
        query: Float[Tensor, "task query dim"],
        query_mask: Bool[Tensor, "task query"] | None,
        support: Moments,
    ) -> FeatureSpace:
        """Take the points as they are."""
        return cls(query, query_mask, support, support.mass.shape[-1])

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

    def restrict(
        self, prototypes: Float[Tensor, "#task class dim"], classes: Int[Tensor, "task kept"]
    ) -> tuple[FeatureSpace, Float[Tensor, "task kept dim"]]:
        """Keep the rows of the chosen classes."""
        rows = classes.unsqueeze(-1).expand(-1, -1, self.query.shape[-1])

        def kept(values: Tensor) -> Tensor:
            return values.expand(len(classes), -1, -1).gather(1, rows)

        support = Moments(_columns(self.support.mass, classes), kept(self.support.sums))
        return FeatureSpace(self.query, self.query_mask, support, self.n_classes), kept(prototypes)


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
    n_classes: int

    @classmethod
    def of(
        cls,
        query: Float[Tensor, "task query dim"],
        query_mask: Bool[Tensor, "task query"] | None,
        support: Moments,
    ) -> GramSpace:
        """Compute the two products that the iterations live on."""
        space = cls.empty(len(query), query.shape[1], support.mass.shape[-1], query_mask, like=query)
        space.fill(slice(None), query, support)
        return space

    @classmethod
    def empty(
        cls,
        n_tasks: int,
        n_query: int,
        n_classes: int,
        query_mask: Bool[Tensor, "task query"] | None,
        *,
        like: Tensor,
    ) -> GramSpace:
        """Room for the products of so many tasks, to be filled block by block."""
        return cls(
            gram=like.new_empty(n_tasks, n_query, n_query),
            cross=like.new_empty(n_tasks, n_query, n_classes),
            query_mask=query_mask,
            support_norms=like.new_empty(n_tasks, n_classes),
            support_mass=like.new_empty(n_tasks, n_classes),
            n_classes=n_classes,
        )

    def fill(self, rows: slice, query: Float[Tensor, "task query dim"], support: Moments) -> None:
        """Write the products of some tasks; the only change a space ever sees, before anyone reads it."""
        torch.bmm(query, query.mT, out=self.gram[rows])
        if len(support.sums) == 1:
            # All tasks share the support: one large product instead of many small ones.
            torch.matmul(query, support.sums[0].mT, out=self.cross[rows])
        else:
            torch.bmm(query, support.sums.mT, out=self.cross[rows])
        self.support_norms[rows] = torch.linalg.vecdot(support.sums, support.sums)
        self.support_mass[rows] = support.mass

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

    def moves(self, new: GramPrototypes, old: GramPrototypes) -> Float[Tensor, "#task class"]:
        """`‖w_k - w_k'‖`, from the *differences* of the weights: exact when the move is tiny."""
        on_support = new.weight_on_support() - old.weight_on_support()
        on_query = new.weights_on_query() - old.weights_on_query()
        products = new.products() - old.products()
        along_query = torch.addcmul(products, self.cross, on_support.unsqueeze(-2)).mul_(on_query).sum(-2)
        squares = on_support.square() * self.support_norms + along_query
        return squares.clamp_(min=0).sqrt_()

    def restrict(
        self, prototypes: GramPrototypes, classes: Int[Tensor, "task kept"]
    ) -> tuple[GramSpace, GramPrototypes]:
        """Keep the columns of the chosen classes."""
        total = prototypes.total
        space = GramSpace(
            self.gram,
            _columns(self.cross, classes),
            self.query_mask,
            _columns(self.support_norms, classes),
            _columns(self.support_mass, classes),
            self.n_classes,
        )
        kept = GramMoments(
            _columns(total.mass, classes),
            _columns(total.on_support, classes),
            None if total.on_query is None else _columns(total.on_query, classes),
            _columns(total.products, classes),
        )
        return space, kept.mean()


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


def _columns(values: Tensor, classes: Int[Tensor, "task kept"]) -> Tensor:
    """Entries of the chosen classes along the last axis, task by task."""
    index = classes if values.ndim == 2 else classes.unsqueeze(1).expand(-1, values.shape[1], -1)
    return values.expand(len(classes), *values.shape[1:]).gather(-1, index)


def _sum_of_present(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b
