"""The simple control: a linear head, and EM of the shares of the classes with half an item taken off every count.

A head that is fitted to the support alone says how likely each class is for each query, `p_nk`, under equal shares.
From `π_k = (1/|Q|) Σ_Q p_nk`, each iteration computes

    U: u_nk ∝ π_k p_nk          π: π_k ∝ max( Σ_Q u_nk - t, 0 ),     t = 1/2.

A class with support for less than half an item leaves for good, so few classes are left. If none is left, each query is
labelled on its own. With t = 0 it is EM for the shares of a fixed classifier, as in `prior_em`.

As long as no class leaves, an iteration never lowers the logarithm of a posterior of the shares of the classes in use,

    Σ_Q ln Σ_k π_k p_nk - t Σ_k ln π_k,

because π maximises `Σ_k (Σ_Q u_nk - t) ln π_k` on the simplex if every count is above t. The prior is `Π_k π_k^{-t}`, a
Dirichlet density with parameters 1 - t: at t = 1/2 Jeffreys' prior of shares, improper from t = 1 on. It has no upper
bound where a share is zero, so what is found is a mode among the classes in use. That a count of at most t becomes zero
is a rule: there is then no maximum inside the simplex.

The rule is that of Figueiredo and Jain, who take N/2 off every count, N being the number of parameters of a component,
by the minimum message length of a mixture. Here the components do not move, and each has one parameter, its
share: N = 1. They update one component at a time; here all are updated together.

The head is that of `handful.fitted.FittedModel`: logistic regression on centred rows with C = 30 at unit length, in
which examples that look mislabelled count less, at a temperature found from examples that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from handful.fitted import FittedModel
from handful.shapes import Bool, Float
from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, at_least
from handful_fewshot.numerics.fixed_point import Outcome, fixed_point
from handful_fewshot.numerics.geometry import masked
from handful_fewshot.numerics.vectors import SoftLabels, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class SparseEMOptions(Options):
    """Options of the simple control.

    **Assumes** that few of the classes occur, and that the query differs from the support only in its shares. **Use
    it** as what every other method has to beat: what a method adds is what it gains over this. **Do not use it**
    when nearly all classes occur, where it loses to labelling each item alone, or to ask whether a class is present
    or an item unknown: it says nothing about either. It has no prototypes. **Cost.** Six or seven logistic
    regressions per support; then |Q|K per iteration.
    """

    taken_off: float = at_least(0, 0.5)  # t, items taken off the count of every class in every iteration
    max_iter: int = at_least(1, 1000)
    tol: float = at_least(0, 1e-6)  # a task stops when `max_k |π_k - π_k'| ≤ tol`; at zero after `max_iter` iterations


@dataclass(frozen=True)
class SharesProblem:
    """What stays the same while a task is solved."""

    scores: Float[Tensor, "task query class"]  # ln p_nk and a constant per query
    query_mask: Bool[Tensor, "task query"] | None


def step(
    problem: SharesProblem, shares: Float[Tensor, "task class"], taken_off: float
) -> tuple[Float[Tensor, "task class"], SoftLabels]:
    """Update U from the shares, then the shares from U; without any share, each query is on its own and stays so."""
    some_left = shares.sum(-1, keepdim=True) > 0
    u = softmax(problem.scores + shares.log().where(some_left, 0).unsqueeze(-2))
    counts = (masked(u.weights, problem.query_mask).sum(-2) - taken_off).clamp(min=0).where(some_left, 0)
    total = counts.sum(-1, keepdim=True)
    return (counts / total).where(total > 0, 0), u


def move(problem: SharesProblem, new: Tensor, old: Tensor) -> Float[Tensor, "task"]:
    """`max_k |π_k - π_k'|`."""
    return (new - old).abs().amax(-1)


def solve_scores(
    scores: Float[Tensor, "task query class"], query_mask: Bool[Tensor, "task query"] | None, options: SparseEMOptions
) -> Outcome[SoftLabels]:
    """Begin at the mean chances of the queries, and iterate `step` until the shares converge."""
    alone = masked(softmax(scores).weights, query_mask).sum(-2)
    return fixed_point(
        partial(step, taken_off=options.taken_off),
        move,
        SharesProblem(scores, query_mask),
        alone / alone.sum(-1, keepdim=True),
        max_iter=options.max_iter,
        tol=options.tol,
    )


def solve(task: TaskBatch, options: SparseEMOptions) -> Solution:
    """Fit a head to each support, score the queries with it, and find the shares."""
    outcome = solve_scores(head_scores(task), task.query_mask, options)
    return Frame(task).solution(outcome.answer, n_iter=outcome.n_iter, converged=outcome.converged)


def head_scores(task: TaskBatch) -> Float[Tensor, "task query class"]:
    """Nats of every class for every query, under equal shares; tasks that share a support share its head."""
    query = task.zeroed("query").cpu().numpy()
    scores = np.empty((*query.shape[:2], task.n_classes), query.dtype)
    support = task.support.cpu().numpy()
    labels = task.support_labels.cpu().numpy()
    real = task.present("support").cpu().numpy()
    shared = len(support) == 1
    for t in range(len(support)):
        row = t if len(real) > 1 else 0
        own = real[row]
        codes = labels[t if len(labels) > 1 else 0]
        catalogue = FittedModel.of(support[t][own], codes[own], "raw")
        rows = slice(None) if shared else t
        points = catalogue.points(query[rows].reshape(-1, task.dim))
        scores[rows] = catalogue.head.scores(points).reshape(scores[rows].shape)
    return torch.from_numpy(scores).to(task.device)


METHOD = Method(
    "sparse_em",
    SparseEMOptions,
    "l2",
    solve,
    "handful; after Saerens et al., Neural Computation, 2002, and Figueiredo, Jain. Unsupervised Learning of Finite "
    "Mixture Models. IEEE Transactions on Pattern Analysis and Machine Intelligence, 2002.",
)
