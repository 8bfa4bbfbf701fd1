"""TIM and α-TIM, by gradient, and TIM by alternating directions: information maximisation.

TIM is by Boudiaf et al. (NeurIPS 2020), α-TIM by Veilleux et al. (NeurIPS 2021). A point belongs to class k with
probability `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)`. With `p̂_k = mean_Q p_nk`, the loss of a task is

    L(W) = a · mean_S( -ln p_{n,y_n} ) - b · H_β(p̂) + c · mean_Q( H_γ(p_n) ),     H_α(p) = (1 - Σ_k p_k^α) / (α - 1),

starting at the support means: fit the labels, use all classes, be confident about every query. H is Tsallis's entropy;
at order one, TIM's, it is Shannon's. Orders above one, α-TIM's, penalise an unbalanced p̂ less.

**By gradient**, with Adam. For logits `l_nk = -(τ/2)‖z_n - w_k‖²` and `h(x) = ∂H/∂x` (a constant may be dropped),

    on the support   ∂L/∂l_nk = (a/|S|) r_nk,   r_nk = p_nk - y_nk,
    on the query     ∂L/∂l_nk = (1/|Q|) r_nk,   r_nk = p_nk (s_nk - Σ_j p_nj s_nj),   s_nk = c h_γ(p_nk) - b h_β(p̂_k),

and since `∂l_nk/∂w_k = τ (z_n - w_k)`, with `σ_n = τa/|S|` on the support and `τ/|Q|` on the query,

    ∂L/∂w_k = Σ_n σ_n r_nk (z_n - w_k) = Σ_n r_nk (σ_n z_n) - w_k Σ_n σ_n r_nk.

So a step takes two large matrix products, `W Zᵀ` and `R (σZ)`. Only in this file the class axis comes before the point
axis: with few classes both products are then nearly twice as fast, and a softmax over classes reads contiguous memory.

**By alternating directions**, TIM-ADM. Soft labels q of the query are tied to p by a divergence of weight one:

    a · mean_S( -ln p_{n,y_n} ) - b · H(q̂) - c · mean_Q( Σ_k q_nk ln p_nk ) + mean_Q( KL(q_n ‖ p_n) ).

Both updates have a closed form. That of W is the stationary point with p held, here as a step from the old prototype:

    q: q_nk ∝ p_nk^{1+c} / (Σ_m p_mk^{1+c})^{b/(1+b)},  rows normalised
    W: w_k ← w_k + [ Σ_S A (y_nk - p_nk)(z_n - w_k) + Σ_Q B (q_nk - p_nk)(z_n - w_k) ] / [ A c_k + B Σ_Q q_nk ],
       A = a / |S|,  B = (1 + c) / |Q|

The exact minimiser over q depends on q̂ itself. The paper's update replaces q̂ by what it would be if the normalisers of
all rows were equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least
from handful_fewshot.numerics.adam import minimised
from handful_fewshot.numerics.vectors import half_squared_distances, lowest_log, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class TimOptions(Options):
    """Options of TIM; the defaults are behind the PADDLE paper's tables. Its authors have (0.1, 1, 0.1), 1000 steps.

    **Assumes** that every class occurs in the query, about equally often. **Use it** on balanced queries, K =
    K_eff. **Do not use it** when few of many classes occur, unless `marginal_weight` is lowered: the PADDLE paper
    tuned it to 0.3 on five-way tasks. Features should have unit length; τ = 15 is meant for that. There is no
    tolerance: with separable features the cross-entropy keeps falling, and Adam never stops moving. **Cost.**
    4(|S|+|Q|)Kd per iteration, thousands of iterations.
    """

    temperature: float = above(0, 15.0)  # τ
    support_weight: float = at_least(0, 1.0)  # a; λ in the paper
    marginal_weight: float = at_least(0, 0.3)  # b, which favours balanced classes
    conditional_weight: float = at_least(0, 1.0)  # c, which favours confident answers; α in the paper
    learning_rate: float = above(0, 1e-4)  # of Adam
    max_iter: int = at_least(0, 2000)  # the same for every task; zero gives the nearest prototype


@dataclass(frozen=True)
class AlphaTimOptions(TimOptions):
    """Options of α-TIM, as behind the PADDLE paper's tables, with Shannon cross-entropy.

    The authors' own code uses one order for all three terms, 5 by default and tuned for each number of shots.

    **Assumes** that every class may occur, in unequal shares. **Use it** when proportions are unknown but most
    classes occur. With few of many classes it loses less than `tim`, but it was not made for that. At β = γ = 1 it
    equals `tim`. **Cost.** As `tim`, per iteration.
    """

    marginal_weight: float = at_least(0, 1.0)  # b
    max_iter: int = at_least(0, 1000)
    tsallis_alpha_marginal: float = above(0, 7.0)  # β
    tsallis_alpha_conditional: float = above(0, 5.0)  # γ


@dataclass(frozen=True)
class TimAdmOptions(Options):
    """Options of TIM by alternating directions; the defaults are those of its authors. Not in PADDLE's tables.

    **Assumes** what `tim` assumes, and more strongly at its authors' weights. **Use it** on balanced queries where
    `tim` takes too long: 150 closed-form updates instead of a thousand small steps. Neither update minimises
    exactly, so the loss need not fall at every iteration. **Cost.** 4(|S|+|Q|)Kd per iteration.
    """

    temperature: float = above(0, 15.0)  # τ
    support_weight: float = above(0, 0.1)  # a
    marginal_weight: float = at_least(0, 1.0)  # b
    conditional_weight: float = at_least(0, 0.1)  # c
    max_iter: int = at_least(0, 150)  # the same for every task; zero gives the nearest prototype


@dataclass(frozen=True)
class InformationProblem:
    """What stays the same while a block of tasks is solved; points are the support, then the query, centred."""

    by_dim: Float[Tensor, "task dim point"]  # τ z_n, for logits
    by_point: Float[Tensor, "task point dim"]  # σ_n z_n, for gradients
    shares: Float[Tensor, "task point 1"]  # σ_n; zero for padding
    targets: Float[Tensor, "task class support"]  # y_nk
    query_shares: Float[Tensor, "task query 1"]  # 1/|Q|; zero for padding

    @classmethod
    def of(cls, frame: Frame, options: Any) -> InformationProblem:
        """Build the problem of a frame's tasks, relative to its origin."""
        task = frame.task
        n_tasks = frame.task.n_tasks
        targets = frame.task.targets
        real = targets.sum(-1)
        of_support = options.support_weight * (real / real.sum(-1, keepdim=True)).expand(n_tasks, -1)
        of_query = task.present("query") / frame.n_query.unsqueeze(-1)
        points = torch.cat([frame.support_points.expand(n_tasks, -1, -1), frame.query], 1)
        shares = options.temperature * torch.cat([of_support, of_query], 1).unsqueeze(-1)
        return cls(
            by_dim=(options.temperature * points).mT.contiguous(),
            by_point=shares * points,
            shares=shares,
            targets=targets.mT.expand(n_tasks, -1, -1),
            query_shares=of_query.unsqueeze(-1).contiguous(),
        )


def probabilities(
    problem: InformationProblem, prototypes: Float[Tensor, "task class dim"], temperature: float
) -> tuple[Float[Tensor, "task class point"], Float[Tensor, "task class point"]]:
    """`p_nk` of all points, and `ln p_nk` up to a constant per point, both clamped to avoid denormal floats."""
    half_norms = torch.linalg.vecdot(prototypes, prototypes).mul_(0.5 * temperature)
    logits = torch.bmm(prototypes, problem.by_dim).sub_(half_norms.unsqueeze(-1))
    # A product with a denormal float is slow; in single precision, what is clamped is below e^-70 of the largest.
    logits.sub_(logits.amax(1, keepdim=True)).clamp_(min=lowest_log(logits.dtype))
    p = logits.exp()
    return p.div_(p.sum(1, keepdim=True)), logits


def tsallis_slope(log_probabilities: Tensor, order: float) -> Tensor:
    """`∂H_α/∂p_k = -α (p_k^{α-1} - 1) / (α - 1)`, element by element, of `H_α(p) = (1 - Σ_k p_k^α) / (α - 1)`.

    A constant that is the same for all classes is left out: it has no effect on derivatives along the simplex. At α = 1
    this is `-ln p_k`; `expm1` keeps the quotient accurate when the order is close to one.
    """
    if order == 1:
        return -log_probabilities
    return torch.expm1((order - 1) * log_probabilities).mul_(-order / (order - 1))


def information_slope(
    p: Float[Tensor, "task class query"],
    log_p: Float[Tensor, "task class query"],
    shares: Float[Tensor, "task query 1"],
    options: AlphaTimOptions,
) -> Float[Tensor, "task class query"]:
    """`s_nk - Σ_j p_nj s_nj` with `s_nk = c h_γ(p_nk) - b h_β(p̂_k)`; log_p may lack a constant per point.

    At order one that constant cancels; any other order needs the logarithm itself.
    """
    log_marginal = torch.bmm(p, shares).log_()
    if options.tsallis_alpha_conditional != 1:
        log_p = p.log()
    s = tsallis_slope(log_p, options.tsallis_alpha_conditional).mul_(options.conditional_weight)
    s.sub_(tsallis_slope(log_marginal, options.tsallis_alpha_marginal).mul_(options.marginal_weight))
    return s.sub_((p * s).sum(1, keepdim=True))


def pull(
    problem: InformationProblem,
    residuals: Float[Tensor, "task class point"],
    prototypes: Float[Tensor, "task class dim"],
) -> Float[Tensor, "task class dim"]:
    """`Σ_n σ_n r_nk (z_n - w_k)`: the total pull of the points on each prototype."""
    return torch.bmm(residuals, problem.by_point).addcmul_(torch.bmm(residuals, problem.shares), prototypes, value=-1)


def gradient(
    problem: InformationProblem, options: AlphaTimOptions, prototypes: Float[Tensor, "task class dim"]
) -> tuple[Float[Tensor, "task class dim"]]:
    """`∂L/∂w_k`, as above."""
    n_support = problem.targets.shape[-1]
    residuals, logits = probabilities(problem, prototypes, options.temperature)
    of_query = residuals[..., n_support:]
    of_query.mul_(information_slope(of_query, logits[..., n_support:], problem.query_shares, options))
    residuals[..., :n_support].sub_(problem.targets)
    return (pull(problem, residuals, prototypes),)


def update_labels(
    log_p: Float[Tensor, "task class query"], shares: Float[Tensor, "task query 1"], options: TimAdmOptions
) -> Float[Tensor, "task class query"]:
    """`q_nk ∝ p_nk^{1+c} / (Σ_m p_mk^{1+c})^{b/(1+b)}`; the sum leaves out padding."""
    powers = (1 + options.conditional_weight) * log_p
    b = options.marginal_weight
    totals = powers.where(shares.mT > 0, -torch.inf).logsumexp(-1, keepdim=True)
    return (powers - b / (1 + b) * totals).softmax(1)


def adm_step(
    problem: InformationProblem, w: Float[Tensor, "task class dim"], options: TimAdmOptions
) -> Float[Tensor, "task class dim"]:
    """Update soft labels, then prototypes; residuals of the query have weight 1 + c, see A and B above."""
    n_support = problem.targets.shape[-1]
    p, _ = probabilities(problem, w, options.temperature)
    of_query = p[..., n_support:]
    weight = 1 + options.conditional_weight
    q = update_labels(of_query.log(), problem.query_shares, options)
    residuals = torch.cat([problem.targets - p[..., :n_support], weight * (q - of_query)], -1)
    labels = torch.cat([problem.targets, weight * q], -1)
    return w + pull(problem, residuals, w) / torch.bmm(labels, problem.shares)


def solve_by(
    find: Callable[[InformationProblem, Float[Tensor, "task class dim"]], Tensor], task: TaskBatch, options: Any
) -> Solution:
    """Label the query with the prototypes that `find` returns, given those at the support means; all centred."""
    # Both copies of the points are read at every step.
    numbers = 2 * (task.support_slots + task.query_slots) * task.dim
    parts = []
    for frame in map(Frame, task.blocks(numbers)):
        start = frame.support.mean().expand(frame.task.n_tasks, -1, -1)
        w = find(InformationProblem.of(frame, options), start)
        u = softmax(-options.temperature * half_squared_distances(frame.query, w))
        parts.append(frame.solution(u, n_iter=options.max_iter, find_prototypes=frame.placed(w)))
    return Solution.join(parts)


def solve_alpha_tim(task: TaskBatch, options: AlphaTimOptions) -> Solution:
    """Descend on W from the support means."""

    def find(problem: InformationProblem, start: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        return minimised(partial(gradient, problem, options), [start], options.learning_rate, options.max_iter)[0]

    return solve_by(find, task, options)


def solve_tim(task: TaskBatch, options: TimOptions) -> Solution:
    """Descend with the entropies of Shannon."""
    shannon = AlphaTimOptions(**asdict(options), tsallis_alpha_marginal=1.0, tsallis_alpha_conditional=1.0)
    return solve_alpha_tim(task, shannon)


def solve_tim_adm(task: TaskBatch, options: TimAdmOptions) -> Solution:
    """Alternate from the support means."""

    def find(problem: InformationProblem, w: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        for _ in range(options.max_iter):
            w = adm_step(problem, w, options)
        return w

    return solve_by(find, task, options)


CITATION = (
    "Boudiaf, Masud, Rony, Dolz, Piantanida, Ben Ayed. Transductive Information Maximization For Few-Shot "
    "Learning. NeurIPS 2020."
)
TIM = Method("tim", TimOptions, "l2", solve_tim, CITATION, support_arrays=4)
TIM_ADM = Method("tim_adm", TimAdmOptions, "l2", solve_tim_adm, CITATION, support_arrays=5)
ALPHA_TIM = Method(
    "alpha_tim",
    AlphaTimOptions,
    "l2",
    solve_alpha_tim,
    "Veilleux, Boudiaf, Piantanida, Ben Ayed. Realistic Evaluation of Transductive Few-Shot Learning. NeurIPS 2021.",
    support_arrays=4,
)
