"""The loss of TIM and α-TIM, a cross-entropy minus a mutual information, and its minimisation over prototypes.

A point belongs to class k with probability `p_nk = softmax_k(-(τ/2)‖z_n - w_k‖²)`. The loss of a task is

    L(W) = a · mean_S( -ln p_{n,y_n} ) - b · H(p̂) + c · mean_Q( H(p_n) ),     p̂_k = mean_Q p_nk,

cross-entropy on the support minus a weighted mutual information between query points and their labels. H is the
Tsallis entropy, of order β for the marginal p̂ and γ for the conditionals p_n; at order one it is the Shannon entropy.

The gradient in closed form. With logits `l_nk = -(τ/2)‖z_n - w_k‖²` and `h(x) = ∂H/∂x` (a constant may be dropped),

    on the support   ∂L/∂l_nk = (a/|S|) r_nk,   r_nk = p_nk - y_nk,
    on the query     ∂L/∂l_nk = (1/|Q|) r_nk,   r_nk = p_nk (s_nk - Σ_j p_nj s_nj),   s_nk = c h_γ(p_nk) - b h_β(p̂_k),

and since `∂l_nk/∂w_k = τ (z_n - w_k)`, with `σ_n = τa/|S|` on the support and `τ/|Q|` on the query,

    ∂L/∂w_k = Σ_n σ_n r_nk (z_n - w_k) = Σ_n r_nk (σ_n z_n) - w_k Σ_n σ_n r_nk.

So a step takes two large matrix products, `W Zᵀ` and `R (σZ)`. Only in this file the class axis comes before the point
axis: with few classes both products are then nearly twice as fast, and a softmax over classes reads contiguous memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from handful.fewshot.numerics.adam import minimised
from handful.fewshot.numerics.simplex import lowest_log, softmax, tsallis_slope
from handful.fewshot.numerics.vectors import half_squared_distances
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class Loss:
    """Temperature τ, the three weights a, b, c, and the orders β, γ of the two entropies."""

    temperature: float
    support_weight: float
    marginal_weight: float
    conditional_weight: float
    marginal_order: float = 1.0
    conditional_order: float = 1.0


@dataclass(frozen=True)
class InformationProblem:
    """What stays the same while a block of tasks is solved; points are the support, then the query, centred."""

    by_dim: Float[Tensor, "task dim point"]  # τ z_n, for logits
    by_point: Float[Tensor, "task point dim"]  # σ_n z_n, for gradients
    shares: Float[Tensor, "task point 1"]  # σ_n; zero for padding
    targets: Float[Tensor, "task class support"]  # y_nk
    query_shares: Float[Tensor, "task query 1"]  # 1/|Q|; zero for padding

    @classmethod
    def of(cls, frame: Frame, loss: Loss) -> InformationProblem:
        """Build the problem of a frame's tasks, relative to its origin."""
        task, n_tasks = frame.task, frame.task.n_tasks
        present = task.present("support")
        support = (task.support - frame.origin.unsqueeze(-2)).where(present.unsqueeze(-1), 0).expand(n_tasks, -1, -1)
        labels = task.support_labels.where(present, 0)
        targets = torch.nn.functional.one_hot(labels, task.n_classes).to(support.dtype) * present.unsqueeze(-1)
        support_shares = present * (loss.support_weight / present.sum(-1, keepdim=True))
        of_query = task.present("query") / frame.n_query.unsqueeze(-1)
        points = torch.cat([support, frame.query], 1)
        shares = torch.cat([support_shares.to(support.dtype).expand(n_tasks, -1), of_query], 1).unsqueeze(-1)
        shares = loss.temperature * shares
        return cls(
            by_dim=(loss.temperature * points).mT.contiguous(),
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


def information_slope(
    p: Float[Tensor, "task class query"],
    log_p: Float[Tensor, "task class query"],
    shares: Float[Tensor, "task query 1"],
    loss: Loss,
) -> Float[Tensor, "task class query"]:
    """`s_nk - Σ_j p_nj s_nj` with `s_nk = c h_γ(p_nk) - b h_β(p̂_k)`; log_p may lack a constant per point.

    At order one that constant cancels; any other order needs the logarithm itself.
    """
    log_marginal = torch.bmm(p, shares).log_()
    if loss.conditional_order != 1:
        log_p = p.log()
    s = tsallis_slope(log_p, loss.conditional_order).mul_(loss.conditional_weight)
    s.sub_(tsallis_slope(log_marginal, loss.marginal_order).mul_(loss.marginal_weight))
    return s.sub_((p * s).sum(1, keepdim=True))


def pull(
    problem: InformationProblem,
    residuals: Float[Tensor, "task class point"],
    prototypes: Float[Tensor, "task class dim"],
) -> Float[Tensor, "task class dim"]:
    """`Σ_n σ_n r_nk (z_n - w_k)`: the total pull of the points on each prototype."""
    return torch.bmm(residuals, problem.by_point).addcmul_(torch.bmm(residuals, problem.shares), prototypes, value=-1)


def gradient(
    problem: InformationProblem, prototypes: Float[Tensor, "task class dim"], loss: Loss
) -> Float[Tensor, "task class dim"]:
    """`∂L/∂w_k`, as above."""
    n_support = problem.targets.shape[-1]
    residuals, logits = probabilities(problem, prototypes, loss.temperature)
    of_query = residuals[..., n_support:]
    of_query.mul_(information_slope(of_query, logits[..., n_support:], problem.query_shares, loss))
    residuals[..., :n_support].sub_(problem.targets)
    return pull(problem, residuals, prototypes)


def solve_by(
    find: Callable[[InformationProblem, Float[Tensor, "task class dim"]], Tensor],
    loss: Loss,
    task: TaskBatch,
    n_iter: int,
) -> Solution:
    """Label the query with the prototypes that `find` returns, given those at the support means; all centred."""
    # Both copies of the points are read at every step.
    numbers = 2 * (task.support_slots + task.query_slots) * task.dim
    parts = []
    for frame in map(Frame, task.blocks(numbers)):
        start = frame.support.mean().expand(frame.task.n_tasks, -1, -1)
        w = find(InformationProblem.of(frame, loss), start)
        u = softmax(-loss.temperature * half_squared_distances(frame.query, w))
        parts.append(frame.solution(u, n_iter=n_iter, find_prototypes=frame.placed(w)))
    return Solution.join(parts)


def solve_by_adam(task: TaskBatch, loss: Loss, learning_rate: float, n_iter: int) -> Solution:
    """Take steps of Adam on W along the closed-form gradient."""

    def find(problem: InformationProblem, start: Float[Tensor, "task class dim"]) -> Float[Tensor, "task class dim"]:
        return minimised(lambda w: [gradient(problem, w, loss)], [start], learning_rate, n_iter)[0]

    return solve_by(find, loss, task, n_iter)
