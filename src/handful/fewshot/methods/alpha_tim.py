"""α-TIM: TIM with Tsallis entropies, for queries that are not balanced (Veilleux et al., NeurIPS 2021).

With `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)`, `p̂` the mean of p over the query and `H_α(p) = (1 - Σ_k p_k^α) / (α - 1)`,
minimises over the prototypes W

    a · mean_S( -ln p_{n,y_n} ) - b · H_β(p̂) + c · mean_Q( H_γ(p_n) ),

starting at the support means. Orders above one penalise an unbalanced p̂ less than the Shannon entropy does; at
β = γ = 1 this is TIM. W is optimised with Adam; the gradient is derived in `solvers.mutual_information` and costs two
matrix products.

Defaults are the values behind the PADDLE paper's tables, with Shannon cross-entropy. The authors' own code uses one
order for all three terms, 5 by default and tuned for each number of shots.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.mutual_information import Loss, solve_by_adam
from handful.fewshot.task import TaskBatch


@dataclass(frozen=True)
class AlphaTimOptions(Options):
    """Options of α-TIM."""

    temperature: float = above(0, 15.0)  # τ
    support_weight: float = at_least(0, 1.0)  # a
    marginal_weight: float = at_least(0, 1.0)  # b
    conditional_weight: float = at_least(0, 1.0)  # c
    tsallis_alpha_marginal: float = above(0, 7.0)  # β; order one is the Shannon entropy
    tsallis_alpha_conditional: float = above(0, 5.0)  # γ
    learning_rate: float = above(0, 1e-4)  # of Adam
    max_iter: int = at_least(0, 1000)  # the same for every task; zero gives the nearest prototype


def solve(task: TaskBatch, options: AlphaTimOptions) -> Solution:
    """Descend on W from the support means."""
    loss = Loss(
        options.temperature,
        options.support_weight,
        options.marginal_weight,
        options.conditional_weight,
        options.tsallis_alpha_marginal,
        options.tsallis_alpha_conditional,
    )
    return solve_by_adam(task, loss, options.learning_rate, options.max_iter)


METHOD = Method(
    "alpha_tim",
    AlphaTimOptions,
    "l2",
    solve,
    "Veilleux, Boudiaf, Piantanida, Ben Ayed. Realistic Evaluation of Transductive Few-Shot Learning. NeurIPS 2021.",
    support_arrays=4,
)
