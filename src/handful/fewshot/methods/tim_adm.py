"""TIM-ADM: transductive information maximisation by alternating directions (Boudiaf et al., NeurIPS 2020).

Splits TIM's loss with soft labels q of the query, tied to the classifier `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)` by a
divergence of weight one:

    a · mean_S( -ln p_{n,y_n} ) - b · H(q̂) - c · mean_Q( Σ_k q_nk ln p_nk ) + mean_Q( KL(q_n ‖ p_n) ),

with q̂ the mean of q over the query. Both updates have a closed form:

    q: q_nk ∝ p_nk^{1+c} / (Σ_m p_mk^{1+c})^{b/(1+b)},  rows normalised
    W: the stationary point in w_k with p held,
       w_k ← w_k + [ Σ_S A (y_nk - p_nk)(z_n - w_k) + Σ_Q B (q_nk - p_nk)(z_n - w_k) ] / [ A c_k + B Σ_Q q_nk ],
       A = a / |S|,  B = (1 + c) / |Q|

The W update is written as a step from the old prototype. The exact minimiser over q depends on q̂ itself. The paper's
update, used here, replaces q̂ by what it would be if the normalisers of all rows were equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.mutual_information import InformationProblem, Loss, probabilities, pull, solve_by
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class TimAdmOptions(Options):
    """Options of TIM by alternating directions; the defaults are those of its authors."""

    temperature: float = above(0, 15.0)  # τ
    support_weight: float = above(0, 0.1)  # a
    marginal_weight: float = at_least(0, 1.0)  # b
    conditional_weight: float = at_least(0, 0.1)  # c
    max_iter: int = at_least(0, 150)  # the same for every task; zero gives the nearest prototype


def update_labels(
    log_p: Float[Tensor, "task class query"], shares: Float[Tensor, "task query 1"], loss: Loss
) -> Tensor:
    """`q_nk ∝ p_nk^{1+c} / (Σ_m p_mk^{1+c})^{b/(1+b)}`; the sum leaves out padding."""
    powers = (1 + loss.conditional_weight) * log_p
    real = shares.mT > 0
    totals = powers.where(real, -torch.inf).logsumexp(-1, keepdim=True)
    return (powers - loss.marginal_weight / (1 + loss.marginal_weight) * totals).softmax(1)


def step(
    problem: InformationProblem, w: Float[Tensor, "task class dim"], loss: Loss
) -> Float[Tensor, "task class dim"]:
    """Update soft labels, then prototypes; residuals of the query have weight 1 + c, see A and B above."""
    n_support = problem.targets.shape[-1]
    p, _ = probabilities(problem, w, loss.temperature)
    of_query = p[..., n_support:]
    q = update_labels(of_query.log(), problem.query_shares, loss)
    weight = 1 + loss.conditional_weight
    residuals = torch.cat([problem.targets - p[..., :n_support], weight * (q - of_query)], -1)
    labels = torch.cat([problem.targets, weight * q], -1)
    return w + pull(problem, residuals, w) / torch.bmm(labels, problem.shares)


def solve(task: TaskBatch, options: TimAdmOptions) -> Solution:
    """Alternate from the support means."""
    loss = Loss(options.temperature, options.support_weight, options.marginal_weight, options.conditional_weight)

    def find(problem: InformationProblem, w: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        for _ in range(options.max_iter):
            w = step(problem, w, loss)
        return w

    return solve_by(find, loss, task, options.max_iter)


METHOD = Method(
    "tim_adm",
    TimAdmOptions,
    "l2",
    solve,
    "Boudiaf, Masud, Rony, Dolz, Piantanida, Ben Ayed. Transductive Information Maximization For Few-Shot "
    "Learning. NeurIPS 2020.",
    support_arrays=5,
)
