"""EM-Dirichlet: Dirichlet densities of the names' probabilities (Martin, Huang, Shakeri, et al., CVPR 2024).

A query is described by what the names say about it, `p_n = softmax_j( τ cos(x_n, t_j) )`, with t_j the vector of the
name of class j. If a task has no names, the mean of the support of class j stands for it. Class k has a Dirichlet
density over these probabilities, with parameters a_k. Minimises over soft labels U and parameters

    - Σ_nk u_nk ln Dir(p_n; a_k) + Σ_nk u_nk ln u_nk - λ Σ_k π_k ln π_k,     π_k = (1/|Q|) Σ_n u_nk.

From U = p and a = 1, each iteration updates the parameters by maximum likelihood, and then

    u_nk ∝ Dir(p_n; a_k) π_k^{λ/|Q|}.

The maximum likelihood with `s_kj = Σ_n u_nk ln p_nj / Σ_n u_nk` is found by repeated minimisation of an upper bound:
`ln Γ(a+1)` is bounded by a parabola of curvature c through the last a, and `-ln Γ(Σ_j a_j)` by its tangent, so

    c_j = 2 (a_j ψ(a_j+1) - ln Γ(a_j+1)) / a_j²,     b_j = ψ(a_j+1) - ψ(Σ_j a_j) - c_j a_j - s_j,
    a_j = ( √(b_j² + 4 c_j) - b_j ) / 2 c_j.

At the end a cluster takes the name that is most probable for its queries on average, `argmax_j Σ_n u_nk p_nj`; clusters
with the same name become one class.

That is the zero-shot version. In the few-shot version, `examples=True`, the labelled points have u = their labels, and
s_k is over both, `(Σ_S y_nk ln p_n + Σ_Q u_nk ln p_n) / (c_k + Σ_Q u_nk)`; clusters keep their classes. As published,
names and examples are both there, and an example is described like a query. Where class means stand for names, an
example is described with itself left out of the mean of its class, and one that is alone in its class does not count.

The authors' code sets `λ = ⌊K/5⌋ |Q|`, where 5 is the number of classes that occur in their tasks. Here that number is
an option, the same for all tasks. Their code can also give every cluster a name of its own, by bipartite matching.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.fixed_point import concatenated, fixed_point
from handful_fewshot.numerics.geometry import masked
from handful_fewshot.numerics.vectors import SoftLabels, cosines, softmax, unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# ε of the logarithms, and the mass of a class below which its parameters stay, as in the authors' code.
LEAST = 1e-15
# The parameters of a class stop when the square of their relative change is at most this. The authors' code has the
# same number, for all classes and tasks together.
TOLERANCE = 1e-11
# Names whose probability differs by less than this part of it share a cluster.
TIE = 1e-9
# Arrays of shape [support, class] at the same time, in double precision, if the support has examples.
SUPPORT_ARRAYS = 16
# Numbers in the parameters of the tasks that are solved together, so that they stay in the cache.
BLOCK_NUMBERS = 200_000


@dataclass(frozen=True)
class EmDirichletOptions(Options):
    """Options of EM-Dirichlet; the defaults are those of the authors' zero-shot script, except `max_bounds`.

    With the authors' 1000 bounds it takes up to seven times as long, and 98 to 99% of the labels of clinc150 are
    the same.

    **Assumes** names, and that about five classes occur. **Use it** to compare with the literature. **Do not use it**
    when many classes may occur (most of them are lost), or with hundreds of classes: its cost grows with K². Matching
    clusters and names one to one leaves nearly all labels of clinc150 as they are without any matching, while the
    most probable name is up to 20 points better if one to four classes occur. It has no prototypes. **Cost.** Up to
    `max_bounds` evaluations of two special functions for K² parameters per iteration: 0.2 to 2 seconds per task with
    150 classes.
    """

    temperature: float = above(0, 30.0)  # τ, nats per unit of cosine
    expected_classes: int = at_least(1, 5)  # K_e in `λ = max(⌊K/K_e⌋, 1) |Q|`: the smaller, the fewer classes are found
    examples: bool = False  # few shots: densities are fitted to the examples of the support too; else only names count
    max_iter: int = at_least(1, 20)
    # Most upper bounds minimised for a class in one iteration. The authors allow 1000, which takes up to seven times as
    # long and gives 98 to 99% of the queries of clinc150 the same label.
    max_bounds: int = at_least(1, 100)


def bound_step(
    statistics: Float[Tensor, "set name"], a: Float[Tensor, "set name"]
) -> tuple[Float[Tensor, "set name"], Float[Tensor, "set name"]]:
    """Minimise one upper bound of the negative log-likelihood of each set of parameters."""
    slope = torch.digamma(a + 1)
    curvature = 2 * (a * slope - torch.lgamma(a + 1)) / a.square()
    # Near zero the quotient loses its digits; its limit is ψ'(1).
    curvature = curvature.where(a > 1e-5, torch.pi**2 / 6)
    b = slope - torch.digamma(a.sum(-1, keepdim=True)) - curvature * a - statistics
    root = (b.square() + 4 * curvature).sqrt()
    # Two forms of the same root: each loses digits where the other does not.
    new = torch.where(b > 0, 2 / (root + b), (root - b) / (2 * curvature))
    return new, new


def change(statistics: Tensor, new: Tensor, old: Tensor) -> Float[Tensor, "set"]:
    """Return `‖a - a'‖² / ‖a'‖²`."""
    return (new - old).square().sum(-1) / old.square().sum(-1)


def fitted(
    u: Float[Tensor, "task point class"],
    log_p: Float[Tensor, "task point name"],
    a: Float[Tensor, "task class name"],
    max_bounds: int,
) -> Float[Tensor, "task class name"]:
    """Parameters of largest likelihood, from `a`; classes without mass keep theirs."""
    mass = u.sum(-2)
    statistics = u.mT @ log_p / mass.clamp(min=LEAST).unsqueeze(-1)
    # Classes are independent of each other and stop one by one, in whatever task they are.
    rows = mass > LEAST
    outcome = fixed_point(bound_step, change, statistics[rows], a[rows], max_iter=max_bounds, tol=TOLERANCE)
    return a.masked_scatter(rows.unsqueeze(-1), outcome.answer)


def log_dirichlet(
    log_p: Float[Tensor, "task query name"], a: Float[Tensor, "task class name"]
) -> Float[Tensor, "task query class"]:
    """`ln Γ(Σ_j a_kj) - Σ_j ln Γ(a_kj) + Σ_j (a_kj - 1) ln p_nj`."""
    constant = torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)
    return constant.unsqueeze(-2) + log_p @ (a - 1).mT


def named(
    u: Float[Tensor, "task query class"], p: Float[Tensor, "task query name"]
) -> Float[Tensor, "task query name"]:
    """Soft labels after each cluster took the most probable name of its queries; clusters without mass keep theirs."""
    total = u.mT @ p
    best = (total >= (1 - TIE) * total.amax(-1, keepdim=True)).to(u.dtype)
    own = torch.eye(u.shape[-1], dtype=u.dtype, device=u.device)
    return u @ (best / best.sum(-1, keepdim=True)).where(u.sum(-2).unsqueeze(-1) > LEAST, own)


def examples(
    frame: Frame, temperature: float
) -> tuple[Float[Tensor, "task support class"], Float[Tensor, "task support name"]]:
    """Labels of the examples and `ln p`; without names, each is left out of the mean of its class, if another is left.

    Without names, an example that is alone in its class has no labels.
    """
    task = frame.task
    points = task.zeroed("support").double().expand(task.n_tasks, -1, -1)
    one_hot = task.targets.double().expand(task.n_tasks, -1, -1)
    if task.names is not None:
        return one_hot, (described(points, frame.names, temperature).weights + LEAST).log()
    counts = frame.support.mass.double()
    sums = frame.names.double() * counts.unsqueeze(-1)
    own = (unit(points) * unit(one_hot @ sums - points)).sum(-1, keepdim=True)
    similarity = cosines(points, sums).where(one_hot == 0, own)
    one_hot = one_hot * (counts > 1).unsqueeze(-2)
    return one_hot, (softmax(temperature * similarity).weights + LEAST).log()


def described(
    points: Float[Tensor, "task point dim"], names: Float[Tensor, "task class dim"], temperature: float
) -> SoftLabels:
    """`p_n = softmax_j( τ cos(x_n, t_j) )`, in double precision."""
    return softmax(temperature * cosines(points.double(), names.double()))


def solve(task: TaskBatch, options: EmDirichletOptions) -> Solution:
    """Iterate in double precision, one block of tasks after the other."""
    labels = concatenated([_labels(block, options) for block in task.blocks(task.n_classes**2, BLOCK_NUMBERS)])
    return Frame(task).solution(labels, n_iter=options.max_iter)


def _labels(task: TaskBatch, options: EmDirichletOptions) -> SoftLabels:
    n_tasks = task.n_tasks
    n_classes = task.n_classes
    mask = task.query_mask
    frame = Frame(task)
    by_names = described(task.zeroed("query"), frame.names, options.temperature)
    log_p = (by_names.weights + LEAST).log()
    n_query = task.n_query.double().unsqueeze(-1)
    power = max(n_classes // options.expected_classes, 1)  # λ/|Q|
    a = torch.ones(n_tasks, n_classes, n_classes, dtype=torch.float64, device=task.device)
    known = examples(frame, options.temperature) if options.examples else None
    labels = by_names
    for _ in range(options.max_iter):
        u = masked(labels.weights, mask)
        points = (u, log_p) if known is None else (torch.cat([known[0], u], -2), torch.cat([known[1], log_p], -2))
        a = fitted(*points, a, options.max_bounds)
        shares = (u.sum(-2) / n_query + LEAST).log()
        labels = softmax(log_dirichlet(log_p, a) + power * shares.unsqueeze(-2))
    if not options.examples:
        labels = softmax((named(masked(labels.weights, mask), by_names.weights) + LEAST).log())
    kept = (labels.weights, labels.logits, labels.largest, labels.log_total)
    return SoftLabels(*(values.to(task.dtype) for values in kept))


METHOD = Method(
    "em_dirichlet",
    EmDirichletOptions,
    "l2",
    solve,
    "Martin, Huang, Shakeri, Pesquet, Ben Ayed. Transductive Zero-Shot and Few-Shot CLIP. CVPR 2024.",
    support_arrays=SUPPORT_ARRAYS,
    names=True,
)
