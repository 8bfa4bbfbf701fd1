"""Names, Gaussians and neighbours: what TransCLIP and StatA have in common.

The support is read as a catalogue of names: t_k is the direction of the mean of class k, and with one row per class it
is the vector of its name. All points have unit length. With x_n a query and r the number of neighbours,

    ŷ_n = softmax_k( τ ⟨x_n, t_k⟩ ),     W_nm = max(⟨x_n, x_m⟩, 0) if m is among the r nearest neighbours of n, else 0,

and given Gaussians with means μ_k and diagonal covariances Σ_k, the soft labels are repeatedly updated by

    z_n ∝ ŷ_n exp( ln N(x_n; μ_k, Σ_k) / 50 + Σ_m (W_nm + W_mn) z_m / 2r ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from handful.fewshot.numerics.fixed_point import concatenated
from handful.fewshot.numerics.geometry import Moments, masked, soft_moments
from handful.fewshot.numerics.simplex import SoftLabels, softmax
from handful.fewshot.numerics.vectors import neighbour_affinities, unit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.shapes import Bool, Float

# Weight of the log-density beside the names, a constant in the code of TransCLIP.
DENSITY_WEIGHT = 1 / 50
# Updates of the soft labels between two updates of the Gaussians, a constant in the code of TransCLIP.
SWEEPS = 5
# Variances of unit vectors are at least this; without it, a batch of one item has none.
LEAST_VARIANCE = 1e-6
# A mean of less mass than this is not taken.
LEAST_MASS = 1e-12


@dataclass(frozen=True)
class NamedProblem:
    """What stays the same while a block of tasks is solved; points lie about the mean of the query, padding is zero."""

    points: Float[Tensor, "task query dim"]  # x_n - x̄
    names: Float[Tensor, "task class dim"]  # t_k - x̄
    origin: Float[Tensor, "task 1 dim"]  # x̄
    log_prior: Float[Tensor, "task query class"]  # ln ŷ_nk
    pulls: Float[Tensor, "task query query"]  # (W + Wᵀ) / 2r
    query_mask: Bool[Tensor, "task query"] | None

    @classmethod
    def of(cls, task: TaskBatch, temperature: float, n_neighbours: int) -> NamedProblem:
        """Compute the names' own answer and the graph."""
        frame = Frame(task)
        names = unit(frame.placed(frame.support.mean()))
        points = unit(task.zeroed("query"))
        cosines = points @ points.mT
        graph = neighbour_affinities(points, task.query_mask, n_neighbours) * cosines.clamp(min=0)
        origin = points.sum(-2, keepdim=True) / task.n_query.to(points).reshape(-1, 1, 1)
        return cls(
            points=masked(points - origin, task.query_mask),
            names=names - origin,
            origin=origin,
            log_prior=softmax(temperature * points @ names.mT).log(),
            pulls=(graph + graph.mT) / (2 * n_neighbours),
            query_mask=task.query_mask,
        )

    def moments(self, z: Float[Tensor, "task query class"]) -> Moments:
        """`Σ_n z_nk` and `Σ_n z_nk x_n`, about x̄."""
        return soft_moments(self.points, masked(z, self.query_mask))

    def directions(self, moments: Moments, otherwise: Float[Tensor, "task class dim"]) -> Tensor:
        """Means of the moments, scaled to unit length, about x̄; `otherwise` for classes without mass."""
        means = moments.sums / moments.mass.clamp(min=LEAST_MASS).unsqueeze(-1)
        return self.on_the_sphere(means).where(moments.mass.unsqueeze(-1) > LEAST_MASS, otherwise)

    def on_the_sphere(self, means: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        """`norm(m + x̄) - x̄`: unit length in the original coordinates."""
        return unit(means + self.origin) - self.origin

    def scatter(
        self, z: Float[Tensor, "task query class"], means: Float[Tensor, "task class dim"]
    ) -> tuple[Float[Tensor, "task class dim"], Float[Tensor, "task class"]]:
        """`Σ_n z_nk (x_n - μ_k)²` for each dimension, and `Σ_n z_nk`."""
        first = self.moments(z)
        squares = masked(z, self.query_mask).mT @ self.points.square()
        scatter = squares - 2 * means * first.sums + means.square() * first.mass.unsqueeze(-1)
        return scatter.clamp(min=0), first.mass


def log_densities(
    points: Float[Tensor, "task query dim"],
    means: Float[Tensor, "task class dim"],
    variances: Float[Tensor, "task #class dim"],
) -> Float[Tensor, "task query class"]:
    """`ln N(x_n; μ_k, Σ_k)` without its constant `(d/2) ln 2π`; Σ_k is diagonal."""
    precisions = (1 / variances.clamp(min=LEAST_VARIANCE)).expand_as(means)
    own = 0.5 * (means.square() * precisions - precisions.log()).sum(-1).unsqueeze(-2)
    return points @ (means * precisions).mT - 0.5 * points.square() @ precisions.mT - own


def sweep(
    problem: NamedProblem, densities: Float[Tensor, "task query class"], z: Float[Tensor, "task query class"]
) -> SoftLabels:
    """Update the soft labels `SWEEPS` times."""
    fixed = problem.log_prior + DENSITY_WEIGHT * densities
    labels = softmax(fixed + problem.pulls @ z)
    for _ in range(SWEEPS - 1):
        labels = softmax(fixed + problem.pulls @ labels.weights)
    return labels


Fit: TypeAlias = Callable[[TaskBatch, Any], tuple[SoftLabels, Float[Tensor, "task class dim"]]]


def solved(task: TaskBatch, options: Any, fit: Fit) -> Solution:
    """Solve one block of tasks after the other; `fit` returns labels, and means in the coordinates of unit vectors."""
    blocks = task.blocks((task.query_slots + task.n_classes) * task.dim)  # Gaussians of a block fit the cache
    labels, means = zip(*(fit(block, options) for block in blocks), strict=True)
    found = concatenated(list(labels))
    return Frame(task).solution(found, n_iter=options.max_iter, find_prototypes=torch.cat(means))
