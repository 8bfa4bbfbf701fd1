"""Class proportions by EM under a fixed classifier (Saerens, Latinne, Decaestecker, Neural Computation 2002).

The classifier is the nearest prototype, a mixture of unit Gaussians around the support means; only its class prior is
unknown. Maximises the likelihood of the query, `Σ_Q ln Σ_k π_k exp(-½‖z_n - w_k‖²)`, by alternating from a uniform π:

    U: u_nk ∝ π_k exp(-½‖z_n - w_k‖²)          π: π_k = (1/|Q|) Σ_Q u_nk

The likelihood never decreases. This is PADDLE at λ = |Q| with frozen prototypes. Alexandari, Kundaje and Shrikumar
(ICML 2020) find it hard to beat once the classifier is calibrated, that is, once half squared distances are nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Bool, Float
from handful_fewshot.frame import Frame, iterate
from handful_fewshot.methods.method import Method, Options, at_least
from handful_fewshot.numerics.geometry import masked
from handful_fewshot.numerics.vectors import SoftLabels, half_squared_distances, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class PriorEMOptions(Options):
    """Options of EM for the proportions.

    **Assumes** that the query differs from the support only in its class proportions. **Use it** when few of the
    classes occur, features are scaled so that half squared distances are nats, and time is short. **Do not use it**
    when the support means are far from the query's classes, because they do not move. **Cost.** |Q|Kd once, then
    |Q|K per iteration, in any dimension.
    """

    max_iter: int = at_least(1, 1000)
    tol: float = at_least(0, 1e-6)  # a task stops when `max_k |π_k - π_k'| ≤ tol`; at zero after `max_iter` iterations


@dataclass(frozen=True)
class MixtureProblem:
    """What stays the same while a task is solved."""

    half_distances: Float[Tensor, "task query class"]
    query_mask: Bool[Tensor, "task query"] | None
    n_query: Float[Tensor, "task"]


def step(
    problem: MixtureProblem, proportions: Float[Tensor, "task class"]
) -> tuple[Float[Tensor, "task class"], SoftLabels]:
    """Update U from the proportions, then the proportions from U; a class without mass never gets it back."""
    u = softmax(proportions.log().unsqueeze(-2) - problem.half_distances)
    return masked(u.weights, problem.query_mask).sum(-2) / problem.n_query.unsqueeze(-1), u


def move(problem: MixtureProblem, new: Tensor, old: Tensor) -> Float[Tensor, "task"]:
    """`max_k |π_k - π_k'|`."""
    return (new - old).abs().amax(-1)


def solve(task: TaskBatch, options: PriorEMOptions) -> Solution:
    """Compute the distances once, then iterate `step` until the proportions converge."""
    frame = Frame(task)
    means = frame.support.mean()
    problem = MixtureProblem(half_squared_distances(frame.query, means), frame.query_mask, frame.n_query)
    uniform = torch.full_like(problem.half_distances[:, 0], 1 / task.n_classes)
    return iterate(frame, step, move, problem, uniform, options, find_prototypes=frame.placed(means))


METHOD = Method(
    "prior_em",
    PriorEMOptions,
    "range_scale_public_code",
    solve,
    "Saerens, Latinne, Decaestecker. Adjusting the Outputs of a Classifier to New a Priori Probabilities. "
    "Neural Computation, 2002.",
)
