"""StatA: Gaussians anchored at the names (Zanella, Fuchs, De Vleeschouwer, Ben Ayed, CVPR 2025).

Labels are updated as in TransCLIP (`handful.fewshot.solvers.named_gaussians`). Every class has its own Gaussian, which
stays at its name as far as the batch has no items of it. With n_k the number of queries whose most probable class is k,
x̄_k and S_k the mean and the variances of the queries weighted with z_nk, and α the weight of the anchor,

    β_k = n_k / (α + n_k),     μ_k = norm( β_k norm(x̄_k) + (1 - β_k) t_k ),
    Σ_k = β_k S_k + (1 - β_k) ( Σ_0 + diag (t_k - μ_k)² ).

It begins at the anchors, `μ_k = t_k` and `Σ_k = Σ_0`. A class of which nothing was seen keeps both. Σ_0 is the scatter
of the batch about the names, with their own answer as weights: `Σ_0 = (1/|Q|) Σ_nk ŷ_nk (x_n - t_k)²`. No proportions
are learned, and no class is ruled out.

Written from the equations alone, which leave Σ_0 open. Labels hardly depend on it; see the method's page.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.numerics.geometry import masked
from handful.fewshot.numerics.simplex import SoftLabels
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.named_gaussians import LEAST_MASS, NamedProblem, log_densities, solved, sweep
from handful.fewshot.task import TaskBatch
from handful.shapes import Float

# Classes whose share of a query differs by less than this part of it share the query's vote.
TIE = 1e-6


@dataclass(frozen=True)
class StataOptions(Options):
    """Options of StatA; α is that of the paper, the others are those of TransCLIP, on which it builds."""

    anchor_weight: float = above(0, 1.0)  # α, number of queries that a name is worth
    temperature: float = above(0, 100.0)  # τ, nats per unit of cosine in the answer of the names; 100 is CLIP's own
    n_neighbours: int = at_least(1, 3)  # r, of a point, itself not counted
    max_iter: int = at_least(1, 10)  # updates of the Gaussians


def solve(task: TaskBatch, options: StataOptions) -> Solution:
    """Alternate between labels and anchored Gaussians, one block of tasks after the other."""
    return solved(task, options, _labels_and_means)


def _labels_and_means(task: TaskBatch, options: StataOptions) -> tuple[SoftLabels, Float[Tensor, "task class dim"]]:
    """Return the last labels, and the means in the coordinates of unit vectors."""
    problem = NamedProblem.of(task, options.temperature, options.n_neighbours)
    z = problem.log_prior.exp()
    start = problem.scatter(z, problem.names)[0].sum(-2, keepdim=True) / task.n_query.to(z).reshape(-1, 1, 1)
    means, variances = problem.names, start
    labels = sweep(problem, log_densities(problem.points, means, variances), z)
    for _ in range(options.max_iter):
        z = labels.weights
        trust = votes(problem, z).unsqueeze(-1)
        trust = trust / (options.anchor_weight + trust)
        seen = problem.directions(problem.moments(z), problem.names)
        means = problem.on_the_sphere(trust * seen + (1 - trust) * problem.names)
        scatter, mass = problem.scatter(z, means)
        within = scatter / mass.clamp(min=LEAST_MASS).unsqueeze(-1)
        variances = trust * within + (1 - trust) * (start + (problem.names - means).square())
        labels = sweep(problem, log_densities(problem.points, means, variances), z)
    return labels, means + problem.origin


def votes(problem: NamedProblem, z: Float[Tensor, "task query class"]) -> Float[Tensor, "task class"]:
    """n_k: each query counts for its most probable class; classes that tie share it."""
    best = (z >= (1 - TIE) * z.amax(-1, keepdim=True)).to(z.dtype)
    return masked(best / best.sum(-1, keepdim=True), problem.query_mask).sum(-2)


METHOD = Method(
    "stata",
    StataOptions,
    "l2",
    solve,
    "Zanella, Fuchs, De Vleeschouwer, Ben Ayed. Realistic Test-Time Adaptation of Vision-Language Models. CVPR 2025.",
)
