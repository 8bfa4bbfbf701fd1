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
from functools import partial
from typing import Any

import torch
from torch import Tensor

from handful.fewshot.numerics.adam import AdamState, adam_step
from handful.fewshot.numerics.distances import half_squared_distances
from handful.fewshot.numerics.fixed_point import fixed_point
from handful.fewshot.numerics.simplex import SoftLabels, lowest_log, softmax, tsallis_entropy, tsallis_slope
from handful.fewshot.solution import DescriptionLength, Solution
from handful.fewshot.solvers.frame import Frame, placed
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
class Iterate:
    """What one iteration passes to the next: prototypes relative to the frame's origin, and the state of Adam."""

    prototypes: Float[Tensor, "task class dim"]
    memory: AdamState | None = None


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


def evaluate(frame: Frame, prototypes: Float[Tensor, "task class dim"], loss: Loss) -> DescriptionLength:
    """Cross-entropy and conditional entropies as data, marginal entropy as partition; W relative to the origin."""
    task, present = frame.task, frame.task.present("support")
    support = (task.support - frame.origin.unsqueeze(-2)).where(present.unsqueeze(-1), 0)
    log_p = softmax(-loss.temperature * half_squared_distances(support.expand(task.n_tasks, -1, -1), prototypes)).log()
    labels = task.support_labels.where(present, 0).unsqueeze(-1).expand(task.n_tasks, -1, -1)
    of_labels = log_p.gather(-1, labels).squeeze(-1).where(present, 0)
    fit = -of_labels.sum(-1) / present.sum(-1)
    p = classify(frame, prototypes, loss.temperature).weights
    conditional = tsallis_entropy(p, loss.conditional_order)
    if frame.query_mask is not None:
        conditional = conditional.where(frame.query_mask, 0)
    marginal = tsallis_entropy(frame.proportions(p), loss.marginal_order)
    return DescriptionLength(
        loss.support_weight * fit + loss.conditional_weight * conditional.sum(-1) / frame.n_query,
        -loss.marginal_weight * marginal,
    )


def classify(frame: Frame, prototypes: Float[Tensor, "task class dim"], temperature: float) -> SoftLabels:
    """`p_n = softmax_k(-(τ/2)‖z_n - w_k‖²)` for the query; W relative to the frame's origin."""
    return softmax(-temperature * half_squared_distances(frame.query, prototypes))


def adam_descent(problem: InformationProblem, at: Iterate, loss: Loss, learning_rate: float) -> Iterate:
    """One step of Adam on W along the closed-form gradient."""
    memory = AdamState.zeros_like(at.prototypes) if at.memory is None else at.memory
    return Iterate(*adam_step(at.prototypes, gradient(problem, at.prototypes, loss), memory, learning_rate))


def descend(
    step: Callable[[InformationProblem, Iterate], Iterate], loss: Loss, task: TaskBatch, options: Any
) -> Solution:
    """Iterate `at = step(problem, at)` from the support means; label the query with the final prototypes.

    `options` has `max_iter`, the number of iterations of every task, and `record`.
    """
    # Both copies of the points are read at every step.
    blocks = task.blocks(2 * (task.support_slots + task.query_slots) * task.dim)
    return Solution.join([_descend_block(step, loss, Frame(block), options) for block in blocks])


def _descend_block(
    step: Callable[[InformationProblem, Iterate], Iterate], loss: Loss, frame: Frame, options: Any
) -> Solution:
    def advance(problem: InformationProblem, at: Iterate) -> tuple[Iterate, Tensor]:
        at = step(problem, at)
        return at, at.prototypes

    def objective(prototypes: Tensor, rows: Tensor) -> Tensor:
        length = evaluate(frame.select(rows), prototypes, loss)
        return length.data + length.partition

    w, trace = frame.support.mean().expand(frame.task.n_tasks, -1, -1), None
    if options.max_iter:
        outcome = fixed_point(
            advance,
            lambda _, new, old: (new.prototypes - old.prototypes).norm(dim=-1).mean(-1),
            InformationProblem.of(frame, loss),
            Iterate(w),
            n_tasks=frame.task.n_tasks,
            device=frame.task.device,
            max_iter=options.max_iter,
            tol=0.0,
            observe=objective if options.record else None,
        )
        w, trace = outcome.answer, outcome.trace
    return frame.solution(
        classify(frame, w, loss.temperature),
        n_iter=options.max_iter,
        trace=trace,
        find_prototypes=partial(placed, w),
        measure=partial(_measured, w, loss),
    )


def _measured(
    prototypes: Float[Tensor, "task class dim"], loss: Loss, frame: Frame, weights: Tensor
) -> DescriptionLength:
    return evaluate(frame, prototypes, loss)
