"""α-TIM: TIM with Tsallis entropies, for queries that are not balanced (Veilleux et al., NeurIPS 2021).

With `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)`, `p̂` the mean of p over the query and `H_α(p) = (1 - Σ_k p_k^α) / (α - 1)`,
minimises over the prototypes W

    a · mean_S( -ln p_{n,y_n} ) - b · H_β(p̂) + c · mean_Q( H_γ(p_n) ),

starting at the support means. Orders above one penalise an unbalanced p̂ less than the Shannon entropy does; at
β = γ = 1 this is TIM. W is optimised with Adam; the gradient is derived in `inference.mutual_information` and costs two
matrix products.

=======  =============================  =====================================================================
paper    here                           meaning
=======  =============================  =====================================================================
τ        `temperature`                  sharpness of the classifier
a, b, c  `support_weight`,              weights of cross-entropy, marginal and conditional entropies
         `marginal_weight`,
         `conditional_weight`
β        `tsallis_alpha_marginal`       order of the marginal's entropy
γ        `tsallis_alpha_conditional`    order of the conditionals' entropies
=======  =============================  =====================================================================

Defaults are the values behind the PADDLE paper's tables, with Shannon cross-entropy. The authors' own code uses one
order for all three terms, 5 by default and tuned for each number of shots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from handful.fewshot.methods.method import Method, require
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.mutual_information import AdamIterate, Loss, adam_descent, descend
from handful.fewshot.task import TaskBatch


@dataclass(frozen=True)
class AlphaTimOptions:
    """Options of α-TIM.

    Attributes
    ----------
    temperature : float
        τ.
    support_weight, marginal_weight, conditional_weight : float
        a, b and c.
    tsallis_alpha_marginal, tsallis_alpha_conditional : float
        Orders β and γ of the two entropies; order one is the Shannon entropy.
    learning_rate : float
        Learning rate of Adam.
    max_iter : int
        Number of iterations, the same for every task; zero gives the nearest prototype.
    record : bool
        Whether to keep objective, criterion and time of every iteration in `Solution.trace`.
    """

    temperature: float = 15.0
    support_weight: float = 1.0
    marginal_weight: float = 1.0
    conditional_weight: float = 1.0
    tsallis_alpha_marginal: float = 7.0
    tsallis_alpha_conditional: float = 5.0
    learning_rate: float = 1e-4
    max_iter: int = 1000
    record: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name in ("temperature", "tsallis_alpha_marginal", "tsallis_alpha_conditional", "learning_rate"):
            require(getattr(self, name) > 0, f"{name} must be above 0", getattr(self, name))
        for name in ("support_weight", "marginal_weight", "conditional_weight", "max_iter"):
            require(getattr(self, name) >= 0, f"{name} must be at least 0", getattr(self, name))


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
    step = partial(adam_descent, loss=loss, learning_rate=options.learning_rate)
    return descend(step, AdamIterate.start, loss, task, options)


METHOD = Method(
    name="alpha_tim",
    options=AlphaTimOptions,
    transform="l2",
    solve=solve,
    citation=(
        "Veilleux, Boudiaf, Piantanida, Ben Ayed. Realistic Evaluation of Transductive Few-Shot Learning. NeurIPS 2021."
    ),
    support_arrays=4,
)
