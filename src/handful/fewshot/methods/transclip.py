"""TransCLIP, zero-shot: Gaussians, neighbours and the answer of the names (Zanella, Gérin, Ben Ayed, NeurIPS 2024).

Minimises, over soft labels z of the query and Gaussians of the classes with one diagonal covariance Σ,

    - (1/50) Σ_nk z_nk ln N(x_n; μ_k, Σ) - (1/2r) Σ_nm W_nm ⟨z_n, z_m⟩ + Σ_n KL(z_n ‖ ŷ_n),

where ŷ is the answer of the names and W the graph of the r nearest neighbours (`solvers.named_gaussians`).
The means begin at the eight queries that ŷ gives most to each class, weighted with ŷ; Σ begins at I/d. Each iteration
updates z, and then

    μ_k = norm( Σ_n z_nk x_n ),     Σ = (1/|Q|) Σ_nk z_nk (x_n - μ_k)².

There is no term for proportions and none for absent classes: every class takes a mean from the batch, whether it occurs
or not. The authors' code reads the number of classes off the query's labels; here K is that of the support.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.numerics.geometry import masked
from handful.fewshot.numerics.simplex import SoftLabels
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.named_gaussians import NamedProblem, log_densities, solved, sweep
from handful.fewshot.task import TaskBatch
from handful.shapes import Float

# Queries that a class takes its first mean from, as in the authors' code.
FIRST_QUERIES = 8


@dataclass(frozen=True)
class TransclipOptions(Options):
    """Options of TransCLIP; the defaults are those of the authors' code."""

    temperature: float = above(0, 100.0)  # τ, nats per unit of cosine in the answer of the names; 100 is CLIP's own
    n_neighbours: int = at_least(1, 3)  # r, of a point, itself not counted
    max_iter: int = at_least(1, 10)  # updates of the Gaussians


def solve(task: TaskBatch, options: TransclipOptions) -> Solution:
    """Alternate between labels and Gaussians, one block of tasks after the other."""
    return solved(task, options, _labels_and_means)


def _labels_and_means(task: TaskBatch, options: TransclipOptions) -> tuple[SoftLabels, Float[Tensor, "task class dim"]]:
    """Return the last labels, and the means in the coordinates of unit vectors."""
    problem = NamedProblem.of(task, options.temperature, options.n_neighbours)
    n_query = task.n_query.to(problem.points).reshape(-1, 1, 1)
    z = problem.log_prior.exp()
    means, variances = first_means(problem), torch.full_like(problem.origin, 1 / task.dim)
    labels = sweep(problem, log_densities(problem.points, means, variances), z)
    for _ in range(options.max_iter):
        means = problem.directions(problem.moments(labels.weights), means)
        scatter, _ = problem.scatter(labels.weights, means)
        variances = scatter.sum(-2, keepdim=True) / n_query
        labels = sweep(problem, log_densities(problem.points, means, variances), labels.weights)
    return labels, means + problem.origin


def first_means(problem: NamedProblem) -> Float[Tensor, "task class dim"]:
    """`norm( Σ ŷ_nk x_n )` over the queries that ŷ gives most to class k."""
    prior = masked(problem.log_prior.exp(), problem.query_mask)
    least = prior.topk(min(FIRST_QUERIES, prior.shape[-2]), dim=-2).values[..., -1:, :]
    return problem.directions(problem.moments(prior.where(prior >= least, 0)), problem.names)


METHOD = Method(
    "transclip",
    TransclipOptions,
    "l2",
    solve,
    "Zanella, Gérin, Ben Ayed. Boosting Vision-Language Models with Transduction. NeurIPS 2024.",
)
