"""iLPC: labels propagated over a graph, the cleanest accepted in rounds (Lazarou, Stathaki, Avrithis, ICCV 2021).

Points of unit length are joined to their nearest neighbours, with `a_ij = max(⟨x_i, x_j⟩, 0)³`; W = a + aᵀ, scaled by
its degrees to 𝒲 = D^-½ W D^-½. Labelled points are the support and the queries accepted so far. In each round

    1. labels spread over the graph: F = (I - α𝒲)⁻¹ Y, with Y the labels, and zero for open queries;
    2. an open query gets `p_n ∝ f_n^T`, element by element, and its most probable class as label;
    3. a linear classifier that starts at the class means is trained on all points with these labels, by gradient
       descent. Labels with a small loss, on average over all steps, are probably clean;
    4. the `step` open queries of each class with the smallest loss are accepted, and keep their label.

A round that finds fewer than five queries to accept is the last. A query keeps the p_n of its last round.

The authors' public code is for balanced tasks: in step 2 the probabilities are rescaled until every class has |Q|/K
queries, less those accepted. That is `balanced` here. Their unbalanced runs are told the true counts, which no method
here is. Four details differ. Their graph also has negative weights, for which D^-½ need not exist. F is computed
exactly, not by 20 steps of conjugate gradients. The classifier starts without a random bias. Neighbours at the same
distance are all joined, and queries with two most probable classes are neither trained on nor accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from handful.shapes import Float, Int
from handful_fewshot.frame import OneAnswer, OneTask, first_of_each_class, solve_each
from handful_fewshot.methods.method import Method, Options, above, at_least, limited
from handful_fewshot.numerics.transport import sinkhorn
from handful_fewshot.numerics.vectors import unit
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# Of the gradient descent, and the least number of queries that a round accepts: constants of the authors' code.
LEARNING_RATE = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
LEAST_ACCEPTED = 5
# Similarities and probabilities that differ by less are a tie.
TIE = 1e-9
# Smallest probability, and smallest number of queries of a class, when probabilities are rescaled.
FLOOR = 1e-12


@dataclass(frozen=True)
class ILPCOptions(Options):
    """Options of iLPC; the defaults are its authors', except `balanced`.

    **Assumes** that neighbours share a class, and that a classifier learns clean labels first. **Use it** to
    compare with the literature. **Do not use it** with hundreds of classes: every round trains a classifier. With
    `balanced`, most labels are wrong if shares are unequal. There are no prototypes and no objective. **Cost.**
    (|S| + |Q|)³/3, and 4,000 (|S| + |Q|) K d for each round.
    """

    n_neighbours: int = at_least(1, 20)
    alpha: float = limited(lambda share: 0 <= share < 1, "at least 0 and below 1", 0.8)  # α, the weight of neighbours
    sharpness: float = above(0, 3.0)  # T
    step: int = at_least(1, 3)  # most queries per class accepted in one round
    training_steps: int = at_least(1, 1000)
    # Give every class |Q|/K queries, as the authors do. This tells the method the shares of the classes; if they are
    # not equal, most labels are wrong.
    balanced: bool = False


def graph(points: Float[Tensor, "point dim"], n_neighbours: int) -> Float[Tensor, "point point"]:
    """𝒲 of points of unit length; a point without neighbours has a row of zeros."""
    similarity = (points @ points.mT).fill_diagonal_(-torch.inf)
    farthest = similarity.topk(min(n_neighbours, len(points) - 1)).values[:, -1:]
    directed = similarity.clamp(min=0).pow(3).where(similarity >= farthest - TIE, 0)
    weights = directed + directed.mT
    degrees = weights.sum(-1)
    scale = degrees.where(degrees > 0, 1).rsqrt()
    return scale.unsqueeze(-1) * weights * scale


def average_losses(
    points: Float[Tensor, "point dim"], labels: Int[Tensor, "point"], start: Float[Tensor, "class dim"], n_steps: int
) -> Float[Tensor, "point"]:
    """Cross-entropy of each point, on average over the steps of gradient descent on all points."""
    truth = one_hot(labels, len(start)).to(points.dtype)
    points = torch.cat([points, torch.ones_like(points[:, :1])], -1)  # the last weight of a class is its bias
    weights = torch.cat([start, torch.zeros_like(start[:, :1])], -1)
    velocity = torch.zeros_like(weights)
    losses = torch.zeros_like(points[:, 0])
    for _ in range(n_steps):
        log_p = (points @ weights.mT).log_softmax(-1)
        losses -= (log_p * truth).sum(-1)
        gradient = (log_p.exp() - truth).mT @ points / len(points) + WEIGHT_DECAY * weights
        velocity = MOMENTUM * velocity + gradient
        weights = weights - LEARNING_RATE * velocity
    return losses / n_steps


def rescaled(
    p: Float[Tensor, "open class"], budget: Float[Tensor, "class"], sharpness: float
) -> Float[Tensor, "open class"]:
    """Scale rows and columns of `p^T` until each class has its share of the budget."""
    budget = budget.clamp(min=FLOOR)
    column_mass = budget * (len(p) / budget.sum())
    plan = sinkhorn(-sharpness * p.clamp(min=FLOOR).log()[None], p.new_ones(1, len(p)), column_mass[None])
    return plan.log_plan[0].softmax(-1)


def solve_one(task: OneTask, options: ILPCOptions) -> OneAnswer:
    """Return `ln u_nk` of one task and the rounds taken; they always end."""
    support, support_labels, query, n_classes = task
    points = unit(torch.cat([support, query]))
    n_support = len(support)
    spread = torch.linalg.cholesky(
        torch.eye(len(points)).double() - options.alpha * graph(points, options.n_neighbours)
    )
    labels = torch.cat([support_labels, support_labels.new_zeros(len(query))])
    labelled = torch.arange(len(points)) < n_support
    budget = query.new_full((n_classes,), len(query) / n_classes)
    found = query.new_zeros(len(points), n_classes)
    n_rounds = 0
    while not bool(labelled.all()):
        n_rounds += 1
        known = one_hot(labels, n_classes).double() * labelled.unsqueeze(-1)
        f = torch.cholesky_solve(known, spread)[~labelled].clamp(min=0)
        total = f.sum(-1, keepdim=True)
        p = (f / total).where(total > 0, 1 / n_classes)
        sharp = p.pow(options.sharpness)
        p = rescaled(p, budget, options.sharpness) if options.balanced else sharp / sharp.sum(-1, keepdim=True)
        found[~labelled] = p
        labels[~labelled] = p.argmax(-1)
        best = found.topk(min(2, n_classes)).values
        candidates = (~labelled & (best[:, 0] > best[:, -1] + TIE)).nonzero().squeeze(-1)
        if int(torch.bincount(labels[candidates]).clamp(max=options.step).sum()) < LEAST_ACCEPTED:
            break
        trained = torch.cat([candidates, labelled.nonzero().squeeze(-1)])
        losses = average_losses(points[trained], labels[trained], unit(known.mT @ points), options.training_steps)
        chosen = candidates[first_of_each_class(labels[candidates], (losses[: len(candidates)],), options.step)]
        labelled[chosen] = True
        budget = budget - torch.bincount(labels[chosen], minlength=n_classes)
    return found[n_support:].log(), n_rounds, True


def solve(task: TaskBatch, options: ILPCOptions) -> Solution:
    """Solve the tasks one by one."""
    return solve_each(solve_one, task, options)


METHOD = Method(
    "ilpc",
    ILPCOptions,
    "l2",
    solve,
    "Lazarou, Stathaki, Avrithis. Iterative Label Cleaning for Transductive and Semi-Supervised Few-Shot Learning. "
    "ICCV 2021.",
)
