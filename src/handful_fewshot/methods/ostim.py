"""OSTIM and EOL: TIM with an outlier logit (Boudiaf et al., arXiv 2206.09236; Ochal et al., arXiv 2408.02052).

With `c_nk = cos(z_n, w_k)`, a point has K logits `l_nk`, a function of `c_nk`, and an outlier logit `l_n0`; its
probabilities are `p_n = softmax(l_n1 … l_nK, l_n0)`. In arrays the outlier comes last. A query is unknown with
`o_n = p_n0`; its labels, given that it has a class, are the softmax over the other K logits. With `p̂` the mean of p
over the query, a loss is minimised by Adam from the support means.

OSTIM: `l_nk = τ c_nk`, and the outlier has minus their mean, `l_n0 = -(1/K) Σ_k l_nk`: a point unlike all classes is an
outlier. It is TIM with a class that has no examples; the outlier counts as one more class of equal size in `H(p̂)`:

    a · mean_S( -ln p_{n,y_n} ) - b · H(p̂) + c · mean_Q( H(p_n) ).

EOL, after its public code: `l_nk = τ (e^{η_k} c_nk + δ_k)`, a scale and a shift for each class, and `l_n0 = ln(K/u)`,
so that a point has a class with probability `σ( ln Σ_k e^{l_nk} - ln K + ln u )`. The caller gives u: it is the
expected share of unknown items, and 0.5 in the authors' protocol. With s examples of each class, `a_k = p̂_k s/(1-u)`
and `a_0 = p̂_0/u`, it minimises over w, η and δ, from zero,

    a · mean_S( -ln p_{n,y_n} ) + (c/K) mean_Q( -Σ_k p_nk ln p_nk ) + b ( (1/K) Σ_k a_k ln a_k + a_0 ln a_0 ).

Then, once, prototypes become the means of all points, support included, by their weights `p_nk`, and labels are those
at these.

Where few of many classes occur, EOL may fall below chance. In `p̂_k` its third term has the slope

    (b/K) (s/(1-u)) (1 + ln a_k),

which is positive for a class with a large share of the query, and goes to minus infinity with the share of one that is
absent. Adam divides slopes by their sizes, so `δ_k` of the classes that occur falls, and that of all others rises, by
up to the learning rate at each iteration: a distance of `2 · 0.01 · 50 · τ = 10` in the logits. Where the cosines of an
item, times τ, differ by less, it gets a class that does not occur. With b = 0 this is over.

Gradients. If the loss has the slopes `r_nj = ∂L/∂p_nj` on the query,

    on the support   ∂L/∂l_nj = (a/|S|) (p_nj - y_nj),
    on the query     ∂L/∂l_nj = p_nj (r_nj - Σ_i p_ni r_ni),

and with `g_nk = ∂L/∂c_nk`, since `∂c_nk/∂w_k = (I - ŵ_k ŵ_kᵀ) ẑ_n / ‖w_k‖` for unit vectors ẑ and ŵ,

    ∂L/∂w_k = (I - ŵ_k ŵ_kᵀ) Σ_n g_nk ẑ_n / ‖w_k‖.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least, limited
from handful_fewshot.numerics.adam import minimised
from handful_fewshot.numerics.vectors import softmax, unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class OstimOptions(Options):
    """Options of OSTIM; the defaults are the authors' for five shots and features that were centred and of unit length.

    For one shot they use 100 iterations and c = 0.5. Where their code centres features inside the method, it uses a
    learning rate of 1e-3, on features of their original length.

    **Assumes** that every class occurs, about equally often, and that there are as many unknown items as items of
    one class. **Use it** on balanced queries with about five classes. **Do not use it** when few of many classes
    occur. **Cost.** 4(|S|+|Q|)Kd per iteration.
    """

    temperature: float = above(0, 10.0)  # τ
    support_weight: float = at_least(0, 1.0)  # a
    marginal_weight: float = at_least(0, 1.0)  # b
    conditional_weight: float = at_least(0, 0.1)  # c
    learning_rate: float = above(0, 1e-4)  # of Adam
    max_iter: int = at_least(0, 50)  # the same for every task


@dataclass(frozen=True)
class EolOptions(OstimOptions):
    """Options of EOL; the defaults are the authors', who use a share of 0.3 with one unknown item in six.

    **Assumes** a known share of unknown items, `unknown_share`, and known classes that occur about equally often.
    **Use it** with about five classes when that share is known. **Do not use it** when few of many classes occur: it
    then prefers those that do not, unless `marginal_weight` is 0. **Cost.** 4(|S|+|Q|)Kd per iteration.
    """

    conditional_weight: float = at_least(0, 1.0)  # c
    learning_rate: float = above(0, 0.01)  # of Adam
    unknown_share: float = limited(lambda share: 0 < share < 1, "between 0 and 1", 0.5)  # u


@dataclass(frozen=True)
class OpenProblem:
    """What stays the same while a block of tasks is solved; points are the support, then the query, padding is zero."""

    points: Float[Tensor, "task point dim"]  # ẑ_n
    means: Float[Tensor, "task class dim"]  # of the support, in the task's coordinates
    targets: Float[Tensor, "task support open"]  # y_nj, with a column of zeros for the outlier
    support_shares: Float[Tensor, "task support 1"]  # 1/|S|
    query_shares: Float[Tensor, "task query 1"]  # 1/|Q|
    shots: Float[Tensor, "task 1"]  # |S|/K

    @classmethod
    def of(cls, task: TaskBatch) -> OpenProblem:
        """Build the problem of these tasks."""
        frame = Frame(task)
        n_tasks = task.n_tasks
        targets = task.targets.expand(n_tasks, -1, -1)
        in_query = task.present("query").unsqueeze(-1)
        real = targets.sum(-1, keepdim=True)
        n_support = real.sum(-2, keepdim=True)
        return cls(
            points=torch.cat([unit(task.zeroed(name)).expand(n_tasks, -1, -1) for name in ("support", "query")], 1),
            means=frame.support.about(-frame.origin).mean().expand(n_tasks, -1, -1),
            targets=torch.cat([targets, torch.zeros_like(real)], -1),
            support_shares=real / n_support,
            query_shares=in_query / frame.n_query.reshape(-1, 1, 1),
            shots=n_support.squeeze(-1) / task.n_classes,
        )

    def cosines(self, prototypes: Float[Tensor, "task class dim"]) -> Float[Tensor, "task point class"]:
        """`c_nk` of all points."""
        return self.points @ unit(prototypes).mT

    def query(self, values: Float[Tensor, "task point column"]) -> Float[Tensor, "task query column"]:
        """Return the rows of the query."""
        return values[:, self.targets.shape[1] :]


def open_softmax(
    logits: Float[Tensor, "task point class"], outlier: Float[Tensor, "#task #point 1"]
) -> Float[Tensor, "task point open"]:
    """`ln p_nj` over the classes and, last, the outlier."""
    return softmax(torch.cat([logits, outlier.expand(*logits.shape[:-1], 1)], -1)).log()


def logit_slopes(
    problem: OpenProblem,
    p: Float[Tensor, "task point open"],
    slopes: Float[Tensor, "task query open"],
    support_weight: float,
) -> Float[Tensor, "task point open"]:
    """`∂L/∂l_nj` from `∂L/∂p_nj` on the query, see above."""
    n_support = problem.targets.shape[1]
    of_support = support_weight * problem.support_shares * (p[:, :n_support] - problem.targets)
    of_query = p[:, n_support:] * (slopes - (p[:, n_support:] * slopes).sum(-1, keepdim=True))
    return torch.cat([of_support, of_query], 1)


def prototype_slopes(
    problem: OpenProblem, prototypes: Float[Tensor, "task class dim"], slopes: Float[Tensor, "task point class"]
) -> Float[Tensor, "task class dim"]:
    """`∂L/∂w_k` from `∂L/∂c_nk`, see above; zero for a prototype of length zero, which has no direction."""
    lengths: Tensor = torch.linalg.vector_norm(prototypes, dim=-1, keepdim=True)
    directions = unit(prototypes)
    pulls = slopes.mT @ problem.points
    across = pulls - directions * (directions * pulls).sum(-1, keepdim=True)
    return (across / lengths).where(lengths > 0, 0)


def mean_over_query(problem: OpenProblem, p: Float[Tensor, "task point open"]) -> Float[Tensor, "task 1 open"]:
    """`p̂_j`, large enough to have a logarithm."""
    mean = (problem.query_shares * problem.query(p)).sum(-2, keepdim=True)
    return mean.clamp(min=torch.finfo(p.dtype).tiny)


# ---------------------------------------------------------------------------------------------------------------------
# OSTIM


def mean_outlier(logits: Float[Tensor, "task point class"]) -> Float[Tensor, "task point 1"]:
    """`l_n0 = -(1/K) Σ_k l_nk`."""
    return -logits.mean(-1, keepdim=True)


def ostim_gradient(
    problem: OpenProblem, options: OstimOptions, prototypes: Float[Tensor, "task class dim"]
) -> tuple[Float[Tensor, "task class dim"]]:
    """`∂L/∂w_k`, through both the logit of a class and that of the outlier."""
    logits = options.temperature * problem.cosines(prototypes)
    log_p = open_softmax(logits, mean_outlier(logits))
    p = log_p.exp()
    # ∂H/∂p_j is -ln p_j and a constant, which has no effect along the simplex.
    of_marginal = mean_over_query(problem, p).log()
    of_conditional = -problem.query(log_p)
    slopes = options.marginal_weight * of_marginal + options.conditional_weight * of_conditional
    of_logits = logit_slopes(problem, p, problem.query_shares * slopes, options.support_weight)
    of_classes = of_logits[..., :-1] - of_logits[..., -1:] / logits.shape[-1]
    return (prototype_slopes(problem, prototypes, options.temperature * of_classes),)


def ostim_block(task: TaskBatch, options: OstimOptions) -> Solution:
    """Solve a few tasks."""
    problem = OpenProblem.of(task)
    gradient = partial(ostim_gradient, problem, options)
    (w,) = minimised(gradient, [problem.means], options.learning_rate, options.max_iter)
    logits = problem.query(options.temperature * problem.cosines(w))
    unknown = open_softmax(logits, mean_outlier(logits))[..., -1].exp()
    return Frame(task).solution(softmax(logits), n_iter=options.max_iter, find_prototypes=w, unknown=unknown)


# ---------------------------------------------------------------------------------------------------------------------
# EOL


def scaled_logits(
    cosines: Float[Tensor, "task point class"], eta: Tensor, delta: Tensor, options: EolOptions
) -> Float[Tensor, "task point class"]:
    """`l_nk = τ (e^{η_k} c_nk + δ_k)`."""
    return options.temperature * (eta.exp() * cosines + delta)


def constant_outlier(logits: Float[Tensor, "task point class"], options: EolOptions) -> Float[Tensor, "1 1 1"]:
    """`l_n0 = ln(K/u)`."""
    return logits.new_full((1, 1, 1), math.log(logits.shape[-1] / options.unknown_share))


def eol_gradient(
    problem: OpenProblem, options: EolOptions, w: Float[Tensor, "task class dim"], eta: Tensor, delta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of the loss in w, η and δ."""
    n_classes = problem.means.shape[-2]
    u = options.unknown_share
    cosines = problem.cosines(w)
    logits = scaled_logits(cosines, eta, delta, options)
    log_p = open_softmax(logits, constant_outlier(logits, options))
    p = log_p.exp()
    # `a = weights · p̂`, and the loss has the sum of `terms · a ln a`; the slope of `a ln a` is `1 + ln a`.
    mean = mean_over_query(problem, p)
    weights = torch.full_like(mean, 1 / u)
    terms = torch.ones_like(mean)
    weights[..., :-1] = problem.shots.unsqueeze(-1) / (1 - u)
    terms[..., :-1] = 1 / n_classes
    of_marginal = terms * weights * (1 + (mean * weights).log())
    of_conditional = -(1 + problem.query(log_p)) / n_classes
    of_conditional[..., -1] = 0  # the sum is over the K classes
    slopes = options.marginal_weight * of_marginal + options.conditional_weight * of_conditional
    of_logits = logit_slopes(problem, p, problem.query_shares * slopes, options.support_weight)[..., :-1]
    of_logits = options.temperature * of_logits
    scaled = eta.exp() * of_logits
    of_eta = (scaled * cosines).sum(-2, keepdim=True)
    of_delta = of_logits.sum(-2, keepdim=True)
    return prototype_slopes(problem, w, scaled), of_eta, of_delta


def eol_block(task: TaskBatch, options: EolOptions) -> Solution:
    """Solve a few tasks."""
    problem = OpenProblem.of(task)
    zeros = torch.zeros_like(problem.means[..., :1]).mT
    start = [problem.means, zeros, zeros]
    gradient = partial(eol_gradient, problem, options)
    w, eta, delta = minimised(gradient, start, options.learning_rate, options.max_iter)
    logits = scaled_logits(problem.cosines(w), eta, delta, options)
    log_p = open_softmax(logits, constant_outlier(logits, options))
    # `w_k = Σ_n p_nk z_n / Σ_n p_nk` over support and query
    shares = torch.cat([problem.support_shares, problem.query_shares], 1)
    p = log_p[..., :-1].exp().where(shares > 0, 0)
    of_support = p[:, : task.support_slots]
    of_query = p[:, task.support_slots :]
    sums = of_support.mT @ task.zeroed("support") + of_query.mT @ task.zeroed("query")
    means = sums / p.sum(-2).unsqueeze(-1)
    closed = softmax(problem.query(scaled_logits(problem.cosines(means), eta, delta, options)))
    unknown = problem.query(log_p)[..., -1].exp()
    return Frame(task).solution(closed, n_iter=options.max_iter, find_prototypes=means, unknown=unknown)


# ---------------------------------------------------------------------------------------------------------------------


def solve_ostim(task: TaskBatch, options: OstimOptions) -> Solution:
    """Descend on W, a few tasks at a time."""
    return Solution.join([ostim_block(block, options) for block in blocks(task)])


def solve_eol(task: TaskBatch, options: EolOptions) -> Solution:
    """Descend on W, η and δ, a few tasks at a time."""
    return Solution.join([eol_block(block, options) for block in blocks(task)])


def blocks(task: TaskBatch) -> Iterator[TaskBatch]:
    """Cut the tasks into blocks whose points and probabilities fit the cache."""
    return task.blocks((task.support_slots + task.query_slots) * max(task.dim, task.n_classes))


OSTIM = Method(
    "ostim",
    OstimOptions,
    "task_cl2n",
    solve_ostim,
    "Boudiaf, Bennequin, Tami, Hudelot, Toubhans, Piantanida, Ben Ayed. Model-Agnostic Few-Shot Open-Set "
    "Recognition. arXiv 2206.09236, 2022.",
    support_arrays=10,
    rejects=True,
)
EOL = Method(
    "eol",
    EolOptions,
    "cl2n",
    solve_eol,
    "Ochal, Patacchiola, Boudiaf, Wang. EOL: Transductive Few-Shot Open-Set Recognition by Enhancing Outlier "
    "Logits. arXiv 2408.02052, 2024.",
    support_arrays=12,
    rejects=True,
)
