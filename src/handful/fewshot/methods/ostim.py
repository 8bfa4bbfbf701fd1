"""OSTIM: TIM with an outlier logit (Boudiaf, Bennequin, Tami, et al., arXiv 2206.09236, 2022).

The logits of a point are `l_nk = τ cos(z_n, w_k)`. That of the outlier is minus their mean, `l_n0 = -(1/K) Σ_k l_nk`: a
point unlike all classes is an outlier. With p the softmax over these K + 1 logits and `p̂` its mean over the query,
minimises over the prototypes, by Adam from the support means,

    a · mean_S( -ln p_{n,y_n} ) - b · H(p̂) + c · mean_Q( H(p_n) ).

It is TIM with a class that has no examples; the outlier counts as one more class of equal size in `H(p̂)`. A query is
unknown with `o_n = p_n0`; its labels, given that it has a class, are the softmax over the other K logits.

Defaults are the authors' for five shots and features that were centred and scaled to unit length first; for one shot
they use 100 iterations and c = 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least
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
class OstimOptions(Options):
    """Options of OSTIM."""

    temperature: float = above(0, 10.0)  # τ
    support_weight: float = at_least(0, 1.0)  # a
    marginal_weight: float = at_least(0, 1.0)  # b
    conditional_weight: float = at_least(0, 0.1)  # c
    learning_rate: float = above(0, 1e-4)  # of Adam
    max_iter: int = at_least(0, 50)  # the same for every task


def solve(task: TaskBatch, options: OstimOptions) -> Solution:
    """Descend on W from the support means, a few tasks at a time."""
    return Solution.join([_solve_block(block, options) for block in blocks(task)])


def _solve_block(task: TaskBatch, options: OstimOptions) -> Solution:
    problem = OpenProblem.of(task)
    (w,) = minimised(
        lambda w: [gradient(problem, w, options)], [problem.means], options.learning_rate, options.max_iter
    )
    logits = problem.query(options.temperature * problem.cosines(w))
    unknown = open_softmax(logits, _outlier(logits))[..., -1].exp()
    return open_solution(task, softmax(logits), unknown, options.max_iter, w)


def gradient(
    problem: OpenProblem, prototypes: Float[Tensor, "task class dim"], options: OstimOptions
) -> Float[Tensor, "task class dim"]:
    """`∂L/∂w_k`, through both the logit of a class and that of the outlier."""
    logits = options.temperature * problem.cosines(prototypes)
    log_p = open_softmax(logits, _outlier(logits))
    p = log_p.exp()
    marginal = (problem.query_shares * problem.query(p)).sum(-2, keepdim=True)
    log_marginal = marginal.clamp(min=torch.finfo(p.dtype).tiny).log()
    # ∂H/∂p_j is -ln p_j and a constant, which has no effect along the simplex.
    slopes = options.marginal_weight * log_marginal - options.conditional_weight * problem.query(log_p)
    of_logits = logit_slopes(problem, p, problem.query_shares * slopes, options.support_weight)
    of_classes = of_logits[..., :-1] - of_logits[..., -1:] / logits.shape[-1]
    return prototype_slopes(problem, prototypes, options.temperature * of_classes)


def _outlier(logits: Float[Tensor, "task point class"]) -> Float[Tensor, "task point 1"]:
    return -logits.mean(-1, keepdim=True)


METHOD = Method(
    "ostim",
    OstimOptions,
    "task_cl2n",
    solve,
    "Boudiaf, Bennequin, Tami, Hudelot, Toubhans, Piantanida, Ben Ayed. Model-Agnostic Few-Shot Open-Set "
    "Recognition. arXiv 2206.09236, 2022.",
    support_arrays=10,
    rejects=True,
)
