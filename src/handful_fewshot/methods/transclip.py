"""TransCLIP and StatA: names, Gaussians and neighbours (Zanella et al., NeurIPS 2024 and CVPR 2025).

t_k is the direction of the name of class k; if a task has no names, that of its mean in the support. All points have
unit length. With x_n a query, r the number of neighbours, and Λ = 1,

    ŷ_n = softmax_k( τ ⟨x_n, t_k⟩ ),     W_nm = max(⟨x_n, x_m⟩, 0) if m is among the r nearest neighbours of n, else 0,

and given Gaussians with means μ_k and diagonal covariances Σ_k, the soft labels are repeatedly updated by

    z_n ∝ ŷ_n^Λ exp( ln N(x_n; μ_k, Σ_k) / 50 + Σ_m (W_nm + W_mn) z_m / 2r ).

TransCLIP (Zanella, Gérin, Ben Ayed) minimises, with one covariance Σ for all classes,

    - (1/50) Σ_nk z_nk ln N(x_n; μ_k, Σ) - (1/2r) Σ_nm W_nm ⟨z_n, z_m⟩ + Σ_n KL(z_n ‖ ŷ_n).

The means begin at the eight queries that ŷ gives most to each class, weighted with ŷ; Σ begins at I/d. Each iteration
updates z, and then

    μ_k = norm( Σ_n z_nk x_n ),     Σ = (1/|Q|) Σ_nk z_nk (x_n - μ_k)².

That is the zero-shot version. In the few-shot version, `examples=True`, the labelled points s have z = their labels y
and a weight of ω = 50γ|Q|/|S| queries each, the means begin at those of the examples, and Λ = 1/2:

    μ_k = norm( Σ_n z_nk x_n + ω Σ_s y_sk x_s ),
    Σ = ( Σ_nk z_nk (x_n - μ_k)² + ω Σ_sk y_sk (x_s - μ_k)² ) / (|Q| + ω|S|).

The authors choose γ from 0.002, 0.01, 0.02 and 0.2 by further labelled points; here it is an option. Assumed is that
the graph joins queries alone. In their code it has examples too, but in another order than the labels it is multiplied
with.

There is no term for proportions and none for absent classes: every class takes a mean from the batch, whether it occurs
or not. The authors' code reads the number of classes off the query's labels; here K is that of the support.

StatA (Zanella, Fuchs, De Vleeschouwer, Ben Ayed) gives every class its own Gaussian, which stays at its name as far as
the batch has no items of it. With n_k the number of queries whose most probable class is k, x̄_k and S_k the mean and
the variances of the queries weighted with z_nk, and α the weight of the anchor,

    β_k = n_k / (α + n_k),     μ_k = norm( β_k norm(x̄_k) + (1 - β_k) t_k ),
    Σ_k = β_k S_k + (1 - β_k) ( Σ_0 + diag (t_k - μ_k)² ),     Σ_0 = (1/|Q|) Σ_nk ŷ_nk (x_n - t_k)².

It begins at the anchors, `μ_k = t_k` and `Σ_k = Σ_0`; a class of which nothing was seen keeps both. No proportions are
learned, and no class is ruled out. Written from the equations alone, which leave Σ_0 open. Labels hardly depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.shapes import Bool, Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.geometry import Moments, labelled_moments, masked, soft_moments
from handful_fewshot.numerics.vectors import neighbour_affinities, softmax, unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# Weight of the log-density beside the names, and updates of the soft labels between two updates of the Gaussians:
# constants in the code of TransCLIP.
DENSITY_WEIGHT = 1 / 50
SWEEPS = 5
# Λ with examples, in the same code.
FEW_SHOT_NAME_WEIGHT = 0.5
# Queries that a class takes its first mean from, in the same code.
FIRST_QUERIES = 8
# Variances of unit vectors are at least this; without it, a batch of one item has none.
LEAST_VARIANCE = 1e-6
# A mean of less mass than this is not taken.
LEAST_MASS = 1e-12
# Classes whose share of a query differs by less than this part of it share the query's vote.
TIE = 1e-6


@dataclass(frozen=True)
class NamedOptions(Options):
    """What both methods have."""

    temperature: float = above(0, 100.0)  # τ, nats per unit of cosine in the answer of the names; 100 is CLIP's own
    n_neighbours: int = at_least(1, 3)  # r, of a point, itself not counted
    max_iter: int = at_least(1, 10)  # updates of the Gaussians


@dataclass(frozen=True)
class TransclipOptions(NamedOptions):
    """Options of TransCLIP; the defaults are those of the authors' code.

    **Assumes** names, and that every class occurs. **Use it** for large batches in which all classes occur. **Do not
    use it** when few of many classes occur: absent classes attract items. In the authors' code, W also has negative
    cosines; the formula of the paper has none. **Cost.** 8|Q|Kd + 10|Q|²K per iteration.
    """

    examples: bool = False  # few shots: the examples of the support count too; else only names do
    example_weight: float = at_least(0, 0.02)  # γ, of the examples; the authors choose among 0.002, 0.01, 0.02 and 0.2
    name_weight: float | None = at_least(0, None)  # Λ, of the answer of the names; None means 1, or 1/2 with examples


@dataclass(frozen=True)
class StataOptions(NamedOptions):
    """Options of StatA; α is that of the paper, the others are those of TransCLIP, on which it builds.

    **Assumes** names. **Use it** when nothing is known about how many classes occur and a small gain is enough. **Do
    not use it** to find out which classes occur. With `Σ_0 = I/d` instead, the accuracy on clinc150
    differs by at most 0.4 points for temperatures from 15 to 100. Classes that tie for a query share its vote.
    **Cost.** 10|Q|Kd + 10|Q|²K per iteration.
    """

    anchor_weight: float = above(0, 1.0)  # α, number of queries that a name is worth


@dataclass(frozen=True)
class Gaussians:
    """Means about x̄, and the diagonals of covariances."""

    means: Float[Tensor, "task class dim"]
    variances: Float[Tensor, "task #class dim"]


@dataclass(frozen=True)
class WeightedShots:
    """The examples of each class, about x̄, in numbers of queries."""

    moments: Moments  # `Σ_s ω y_sk` and `Σ_s ω y_sk x_s`
    squares: Float[Tensor, "task class dim"]  # `Σ_s ω y_sk x_s²`
    means: Float[Tensor, "task class dim"]

    @classmethod
    def of(cls, task: TaskBatch, example_weight: float, origin: Float[Tensor, "task 1 dim"]) -> WeightedShots:
        """Weigh each example with `ω = 50γ|Q|/|S|`."""
        points = unit(task.zeroed("support")) - origin
        labels = task.support_labels.expand(task.n_tasks, -1)
        mask = None if task.support_mask is None else task.support_mask.expand(task.n_tasks, -1)
        examples, squares = (labelled_moments(x, labels, mask, task.n_classes) for x in (points, points.square()))
        n_support = examples.mass.sum(-1, keepdim=True)
        omega = example_weight / DENSITY_WEIGHT * task.n_query.to(task.dtype).unsqueeze(-1) / n_support
        weighted = Moments(omega * examples.mass, omega.unsqueeze(-1) * examples.sums)
        return cls(weighted, omega.unsqueeze(-1) * squares.sums, examples.mean())


@dataclass(frozen=True)
class NamedProblem:
    """What stays the same while a block of tasks is solved; points lie about the mean of the query, padding is zero."""

    points: Float[Tensor, "task query dim"]  # x_n - x̄
    names: Float[Tensor, "task class dim"]  # t_k - x̄
    origin: Float[Tensor, "task 1 dim"]  # x̄
    log_prior: Float[Tensor, "task query class"]  # ln ŷ_nk
    name_weight: float  # Λ
    pulls: Float[Tensor, "task query query"]  # (W + Wᵀ) / 2r
    query_mask: Bool[Tensor, "task query"] | None
    total: Float[Tensor, "task 1 1"]  # |Q| + ω|S|
    shots: WeightedShots | None  # None if only names count

    @classmethod
    def of(
        cls, task: TaskBatch, options: NamedOptions, name_weight: float = 1.0, example_weight: float | None = None
    ) -> NamedProblem:
        """Compute the names' own answer and the graph."""
        frame = Frame(task)
        names = unit(frame.names)
        points = unit(task.zeroed("query"))
        cosines = points @ points.mT
        graph = neighbour_affinities(points, task.query_mask, options.n_neighbours) * cosines.clamp(min=0)
        n_query = frame.n_query.reshape(-1, 1, 1)
        origin = points.sum(-2, keepdim=True) / n_query
        shots = None if example_weight is None else WeightedShots.of(task, example_weight, origin)
        return cls(
            points=masked(points - origin, task.query_mask),
            names=names - origin,
            origin=origin,
            log_prior=softmax(options.temperature * points @ names.mT).log(),
            pulls=(graph + graph.mT) / (2 * options.n_neighbours),
            name_weight=name_weight,
            query_mask=task.query_mask,
            total=n_query if shots is None else n_query + shots.moments.mass.sum(-1)[:, None, None],
            shots=shots,
        )

    def directions(self, z: Float[Tensor, "task query class"], otherwise: Float[Tensor, "task class dim"]) -> Tensor:
        """`norm( Σ_n z_nk x_n )`, about x̄; `otherwise` for classes without mass."""
        moments = self.moments(z)
        means = moments.sums / moments.mass.clamp(min=LEAST_MASS).unsqueeze(-1)
        return self.on_the_sphere(means).where(moments.mass.unsqueeze(-1) > LEAST_MASS, otherwise)

    def moments(self, z: Float[Tensor, "task query class"]) -> Moments:
        """`Σ_n z_nk` and `Σ_n z_nk x_n`, about x̄, with the examples if they count."""
        of_query = soft_moments(self.points, masked(z, self.query_mask))
        return of_query if self.shots is None else of_query + self.shots.moments

    def on_the_sphere(self, means: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        """`norm(m + x̄) - x̄`: unit length in the original coordinates."""
        return unit(means + self.origin) - self.origin

    def scatter(
        self, z: Float[Tensor, "task query class"], means: Float[Tensor, "task class dim"]
    ) -> tuple[Float[Tensor, "task class dim"], Float[Tensor, "task class"]]:
        """`Σ_n z_nk (x_n - μ_k)²` for each dimension, and `Σ_n z_nk`."""
        first = self.moments(z)
        squares = masked(z, self.query_mask).mT @ self.points.square()
        if self.shots is not None:
            squares = squares + self.shots.squares
        scatter = squares - 2 * means * first.sums + means.square() * first.mass.unsqueeze(-1)
        return scatter.clamp(min=0), first.mass


def log_densities(points: Float[Tensor, "task query dim"], at: Gaussians) -> Float[Tensor, "task query class"]:
    """`ln N(x_n; μ_k, Σ_k)` without its constant `(d/2) ln 2π`; Σ_k is diagonal."""
    means = at.means
    precisions = (1 / at.variances.clamp(min=LEAST_VARIANCE)).expand_as(at.means)
    own = 0.5 * (means.square() * precisions - precisions.log()).sum(-1).unsqueeze(-2)
    return points @ (means * precisions).mT - 0.5 * points.square() @ precisions.mT - own


def first_means(problem: NamedProblem) -> Float[Tensor, "task class dim"]:
    """`norm( Σ ŷ_nk x_n )` over the queries that ŷ gives most to class k, or over its examples if they count."""
    if problem.shots is not None:
        return problem.on_the_sphere(problem.shots.means)
    prior = masked(problem.log_prior.exp(), problem.query_mask)
    least = prior.topk(min(FIRST_QUERIES, prior.shape[-2]), dim=-2).values[..., -1:, :]
    return problem.directions(prior.where(prior >= least, 0), problem.names)


def votes(problem: NamedProblem, z: Float[Tensor, "task query class"]) -> Float[Tensor, "task class"]:
    """n_k: each query counts for its most probable class; classes that tie share it."""
    best = (z >= (1 - TIE) * z.amax(-1, keepdim=True)).to(z.dtype)
    return masked(best / best.sum(-1, keepdim=True), problem.query_mask).sum(-2)


def shared_update(problem: NamedProblem, z: Float[Tensor, "task query class"], old: Gaussians) -> Gaussians:
    """μ and Σ of TransCLIP."""
    means = problem.directions(z, old.means)
    return Gaussians(means, problem.scatter(z, means)[0].sum(-2, keepdim=True) / problem.total)


def anchored_update(
    problem: NamedProblem, anchor: Gaussians, anchor_weight: float, z: Float[Tensor, "task query class"], old: Gaussians
) -> Gaussians:
    """μ and Σ of StatA; the anchor is at the names, with Σ_0."""
    trust = votes(problem, z).unsqueeze(-1)
    trust = trust / (anchor_weight + trust)
    seen = problem.directions(z, anchor.means)
    means = problem.on_the_sphere(trust * seen + (1 - trust) * anchor.means)
    scatter, mass = problem.scatter(z, means)
    within = scatter / mass.clamp(min=LEAST_MASS).unsqueeze(-1)
    away = anchor.variances + (anchor.means - means).square()
    return Gaussians(means, trust * within + (1 - trust) * away)


def alternate(
    block: TaskBatch,
    problem: NamedProblem,
    at: Gaussians,
    update: Callable[[Tensor, Gaussians], Gaussians],
    n_iter: int,
) -> Solution:
    """Update the soft labels `SWEEPS` times, then the Gaussians, and so on."""
    z = problem.log_prior.exp()
    for iteration in range(n_iter + 1):
        fixed = problem.name_weight * problem.log_prior + DENSITY_WEIGHT * log_densities(problem.points, at)
        for _ in range(SWEEPS):
            labels = softmax(fixed + problem.pulls @ z)
            z = labels.weights
        if iteration < n_iter:
            at = update(z, at)
    return Frame(block).solution(labels, n_iter=n_iter, find_prototypes=at.means + problem.origin)


def solve_transclip(task: TaskBatch, options: TransclipOptions) -> Solution:
    """Alternate between labels and Gaussians with one covariance."""
    parts = []
    for block in blocks(task):
        name_weight = options.name_weight
        if name_weight is None:
            name_weight = FEW_SHOT_NAME_WEIGHT if options.examples else 1.0
        problem = NamedProblem.of(block, options, name_weight, options.example_weight if options.examples else None)
        start = Gaussians(first_means(problem), torch.full_like(problem.origin, 1 / task.dim))
        parts.append(alternate(block, problem, start, partial(shared_update, problem), options.max_iter))
    return Solution.join(parts)


def solve_stata(task: TaskBatch, options: StataOptions) -> Solution:
    """Alternate between labels and anchored Gaussians."""
    parts = []
    for block in blocks(task):
        problem = NamedProblem.of(block, options)
        scatter, _ = problem.scatter(problem.log_prior.exp(), problem.names)
        anchor = Gaussians(problem.names, scatter.sum(-2, keepdim=True) / problem.total)
        update = partial(anchored_update, problem, anchor, options.anchor_weight)
        parts.append(alternate(block, problem, anchor, update, options.max_iter))
    return Solution.join(parts)


def blocks(task: TaskBatch) -> Iterator[TaskBatch]:
    """Cut the tasks into blocks whose points and Gaussians fit the cache."""
    return task.blocks((task.query_slots + task.n_classes) * task.dim)


TRANSCLIP = Method(
    "transclip",
    TransclipOptions,
    "l2",
    solve_transclip,
    "Zanella, Gérin, Ben Ayed. Boosting Vision-Language Models with Transduction. NeurIPS 2024.",
    names=True,
)
STATA = Method(
    "stata",
    StataOptions,
    "l2",
    solve_stata,
    "Zanella, Fuchs, De Vleeschouwer, Ben Ayed. Realistic Test-Time Adaptation of Vision-Language Models. CVPR 2025.",
    names=True,
)
