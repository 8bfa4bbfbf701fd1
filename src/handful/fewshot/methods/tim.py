"""TIM: transductive information maximisation by gradient (Boudiaf et al., NeurIPS 2020).

With `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)` and `p̂` the mean of p over the query, minimises over the prototypes W

    a · mean_S( -ln p_{n,y_n} ) - b · H(p̂) + c · mean_Q( H(p_n) ),

starting at the support means: fit the labels, be confident about every query point, and use all classes. W is optimised
with Adam; the gradient is derived in `solvers.mutual_information` and costs two matrix products.

Defaults are the values behind the PADDLE paper's tables, which tuned b. The defaults of TIM's authors are weights
(0.1, 1, 0.1) and 1000 iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

from handful.fewshot.methods.method import Method, Options, above, at_least
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.mutual_information import Loss, solve_by_adam
from handful.fewshot.task import TaskBatch


@dataclass(frozen=True)
class TimOptions(Options):
    """Options of TIM by gradient."""

    temperature: float = above(0, 15.0)  # τ
    support_weight: float = at_least(0, 1.0)  # a; λ in the paper
    marginal_weight: float = at_least(0, 0.3)  # b, which favours balanced classes; 1 in TIM's own paper
    conditional_weight: float = at_least(0, 1.0)  # c, which favours confident answers; α in the paper
    learning_rate: float = above(0, 1e-4)  # of Adam
    max_iter: int = at_least(0, 2000)  # the same for every task; zero gives the nearest prototype


def solve(task: TaskBatch, options: TimOptions) -> Solution:
    """Descend on W from the support means."""
    loss = Loss(options.temperature, options.support_weight, options.marginal_weight, options.conditional_weight)
    return solve_by_adam(task, loss, options.learning_rate, options.max_iter)


METHOD = Method(
    "tim",
    TimOptions,
    "l2",
    solve,
    "Boudiaf, Masud, Rony, Dolz, Piantanida, Ben Ayed. Transductive Information Maximization For Few-Shot "
    "Learning. NeurIPS 2020.",
    support_arrays=4,
)
