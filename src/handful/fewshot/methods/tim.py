"""TIM: transductive information maximisation by gradient (Boudiaf et al., NeurIPS 2020).

With `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)` and `p̂` the mean of p over the query, minimises over the prototypes W

    a · mean_S( -ln p_{n,y_n} ) - b · H(p̂) + c · mean_Q( H(p_n) ),

starting at the support means: fit the labels, be confident about every query point, and use all classes. W is optimised
with Adam; the gradient is derived in `inference.mutual_information` and costs two matrix products.

=======  ========================  ==========================================================================
paper    here                      meaning
=======  ========================  ==========================================================================
τ        `temperature`             sharpness of the classifier
λ, a     `support_weight`          weight of the cross-entropy on the support
b        `marginal_weight`         weight of H(p̂), which favours balanced classes; 1 in TIM's own paper
α, c     `conditional_weight`      weight of H(p_n), which favours confident answers
=======  ========================  ==========================================================================

Defaults are the values behind the PADDLE paper's tables, which tuned b. The defaults of TIM's authors are weights
(0.1, 1, 0.1) and 1000 iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from handful.fewshot.methods.method import Method, require
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.mutual_information import AdamIterate, Loss, adam_descent, descend
from handful.fewshot.task import TaskBatch


@dataclass(frozen=True)
class TimOptions:
    """Options of TIM by gradient.

    Attributes
    ----------
    temperature : float
        τ.
    support_weight, marginal_weight, conditional_weight : float
        a, b and c.
    learning_rate : float
        Learning rate of Adam.
    max_iter : int
        Number of iterations, the same for every task; zero gives the nearest prototype.
    record : bool
        Whether to keep objective, criterion and time of every iteration in `Solution.trace`.
    """

    temperature: float = 15.0
    support_weight: float = 1.0
    marginal_weight: float = 0.3
    conditional_weight: float = 1.0
    learning_rate: float = 1e-4
    max_iter: int = 2000
    record: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.temperature > 0, "temperature must be above 0", self.temperature)
        for name in ("support_weight", "marginal_weight", "conditional_weight"):
            require(getattr(self, name) >= 0, f"{name} must be at least 0", getattr(self, name))
        require(self.learning_rate > 0, "learning_rate must be above 0", self.learning_rate)
        require(self.max_iter >= 0, "max_iter must be at least 0", self.max_iter)


def solve(task: TaskBatch, options: TimOptions) -> Solution:
    """Descend on W from the support means."""
    loss = Loss(options.temperature, options.support_weight, options.marginal_weight, options.conditional_weight)
    step = partial(adam_descent, loss=loss, learning_rate=options.learning_rate)
    return descend(step, AdamIterate.start, loss, task, options)


METHOD = Method(
    name="tim",
    options=TimOptions,
    transform="l2",
    solve=solve,
    citation=(
        "Boudiaf, Masud, Rony, Dolz, Piantanida, Ben Ayed. Transductive Information Maximization For Few-Shot "
        "Learning. NeurIPS 2020."
    ),
    support_arrays=4,
)
