"""EOL: enhanced outlier logits (Ochal, Patacchiola, Boudiaf, Wang, arXiv 2408.02052, 2024), after their public code.

With `l_nk = τ (e^{η_k} cos(z_n, w_k) + δ_k)`, a scale and a shift for each class, a point has a class with probability

    ι_n = σ( ln Σ_k e^{l_nk} - ln K + ln b ),     p_nk = ι_n softmax_k(l_nk),     p_n0 = 1 - ι_n,

so p is the softmax over the K logits and the constant `ln(K/b)`. With `p̂` its mean over the query, s examples of each
class, `a_k = p̂_k s/(1-b)` and `a_0 = p̂_0/b`, minimises over w, η and δ, by Adam from the support means and zero,

    λ_c mean_S( -ln p_{n,y_n} ) + (λ_e/K) mean_Q( -Σ_k p_nk ln p_nk ) + λ_m ( (1/K) Σ_k a_k ln a_k + a_0 ln a_0 ).

A query is unknown with `o_n = 1 - ι_n`. Then, once, prototypes become the means of all points, support included, by
their weights `p_nk`, and labels, given that a query has a class, are the softmax of `l_nk` at these.

The caller gives b: it is the expected share of unknown items, and 0.5 in the authors' protocol, where half of the query
is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least, limited
from handful.fewshot.numerics.adam import minimised
from handful.fewshot.numerics.simplex import softmax
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.outlier_logit import (
    OpenProblem,
    blocks,
    logit_slopes,
    open_softmax,
    open_solution,
    prototype_slopes,
)
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class EolOptions(Options):
    """Options of EOL."""

    unknown_share: float = limited(lambda share: 0 < share < 1, "between 0 and 1", 0.5)  # b
    temperature: float = above(0, 10.0)  # τ
    support_weight: float = at_least(0, 1.0)  # λ_c
    marginal_weight: float = at_least(0, 1.0)  # λ_m
    conditional_weight: float = at_least(0, 1.0)  # λ_e
    learning_rate: float = above(0, 0.01)  # of Adam
    max_iter: int = at_least(0, 50)  # the same for every task


@dataclass(frozen=True)
class ScaledPrototypes:
    """What is optimised: prototypes, and a scale and a shift for each class."""

    prototypes: Float[Tensor, "task class dim"]  # w
    log_scales: Float[Tensor, "task 1 class"]  # η
    shifts: Float[Tensor, "task 1 class"]  # δ

    def logits(self, cosines: Float[Tensor, "task point class"], temperature: float) -> Tensor:
        """`l_nk`."""
        return temperature * (self.log_scales.exp() * cosines + self.shifts)


def solve(task: TaskBatch, options: EolOptions) -> Solution:
    """Descend from the support means, a few tasks at a time."""
    return Solution.join([_solve_block(block, options) for block in blocks(task)])


def _solve_block(task: TaskBatch, options: EolOptions) -> Solution:
    problem = OpenProblem.of(task)
    nothing = torch.zeros_like(problem.means[..., :1]).mT
    parts = minimised(
        lambda *parts: gradient(problem, ScaledPrototypes(*parts), options),
        [problem.means, nothing, nothing],
        options.learning_rate,
        options.max_iter,
    )
    head = ScaledPrototypes(*parts)
    logits = head.logits(problem.cosines(head.prototypes), options.temperature)
    log_p = open_softmax(logits, _outlier(problem, options))
    unknown = problem.query(log_p)[..., -1].exp()
    means = _refined(task, log_p[..., :-1].exp())
    refined = ScaledPrototypes(means, head.log_scales, head.shifts)
    closed = softmax(problem.query(refined.logits(problem.cosines(means), options.temperature)))
    return open_solution(task, closed, unknown, options.max_iter, means)


def gradient(problem: OpenProblem, head: ScaledPrototypes, options: EolOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of the loss in w, η and δ."""
    n_classes = problem.means.shape[-2]
    cosines = problem.cosines(head.prototypes)
    log_p = open_softmax(head.logits(cosines, options.temperature), _outlier(problem, options))
    p = log_p.exp()
    mean = (problem.query_shares * problem.query(p)).sum(-2, keepdim=True)
    # The weights of a_k and a_0 as functions of p̂, and of the terms `a ln a`, whose slope is `1 + ln a`.
    b = options.unknown_share
    weights = torch.ones_like(mean)
    weights[..., :-1] = problem.shots.unsqueeze(-1) / (1 - b)
    weights[..., -1] = 1 / b
    terms = torch.full_like(mean, 1 / n_classes)
    terms[..., -1] = 1
    of_marginal = terms * weights * (1 + (mean * weights).clamp(min=torch.finfo(p.dtype).tiny).log())
    of_conditional = -(1 + problem.query(log_p)) / n_classes
    of_conditional[..., -1] = 0  # the sum is over the K classes
    slopes = options.marginal_weight * of_marginal + options.conditional_weight * of_conditional
    of_logits = logit_slopes(problem, p, problem.query_shares * slopes, options.support_weight)[..., :-1]
    of_logits = options.temperature * of_logits
    scaled = head.log_scales.exp() * of_logits
    return (
        prototype_slopes(problem, head.prototypes, scaled),
        (scaled * cosines).sum(-2, keepdim=True),
        of_logits.sum(-2, keepdim=True),
    )


def _outlier(problem: OpenProblem, options: EolOptions) -> Float[Tensor, "1 1 1"]:
    return problem.means.new_full((1, 1, 1), math.log(problem.means.shape[-2] / options.unknown_share))


def _refined(task: TaskBatch, p: Float[Tensor, "task point class"]) -> Float[Tensor, "task class dim"]:
    """`w_k = Σ_n p_nk z_n / Σ_n p_nk` over support and query."""
    parts = p.where(torch.cat([task.present("support").expand(len(p), -1), task.present("query")], 1).unsqueeze(-1), 0)
    of_support, of_query = parts[:, : task.support_slots], parts[:, task.support_slots :]
    sums = of_support.mT @ task.zeroed("support") + of_query.mT @ task.zeroed("query")
    return sums / parts.sum(-2).unsqueeze(-1)


METHOD = Method(
    "eol",
    EolOptions,
    "cl2n",
    solve,
    "Ochal, Patacchiola, Boudiaf, Wang. EOL: Transductive Few-Shot Open-Set Recognition by Enhancing Outlier "
    "Logits. arXiv 2408.02052, 2024.",
    support_arrays=12,
    rejects=True,
)
