"""K classes and one more logit: methods that compare cosines and let a point belong to no class.

With `c_nk = cos(z_n, w_k)`, a point has K logits `l_nk`, a function of `c_nk`, and an outlier logit `l_n0`; its
probabilities are `p_n = softmax(l_n1 … l_nK, l_n0)`. In arrays the outlier comes last. If a loss has the slopes
`r_nj = ∂L/∂p_nj` on the query and is the cross-entropy with weight a on the support,

    on the support   ∂L/∂l_nj = (a/|S|) (p_nj - y_nj),
    on the query     ∂L/∂l_nj = p_nj (r_nj - Σ_i p_ni r_ni),

and with `g_nk = ∂L/∂c_nk`, since `∂c_nk/∂w_k = (I - ŵ_k ŵ_kᵀ) ẑ_n / ‖w_k‖` for unit vectors ẑ and ŵ,

    ∂L/∂w_k = (I - ŵ_k ŵ_kᵀ) Σ_n g_nk ẑ_n / ‖w_k‖.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.fewshot.numerics.geometry import labelled_moments, masked
from handful.fewshot.numerics.simplex import SoftLabels, softmax
from handful.fewshot.numerics.vectors import unit
from handful.fewshot.solution import Solution
from handful.fewshot.solvers.frame import Frame
from handful.fewshot.task import TaskBatch
from handful.shapes import Float


@dataclass(frozen=True)
class OpenProblem:
    """What stays the same while a block of tasks is solved; points are the support, then the query, padding is zero."""

    points: Float[Tensor, "task point dim"]  # ẑ_n
    means: Float[Tensor, "task class dim"]  # of the support, in the task's coordinates
    targets: Float[Tensor, "task support open"]  # y_nj, with a column of zeros for the outlier
    support_shares: Float[Tensor, "task support 1"]  # 1/|S|
    query_shares: Float[Tensor, "task query 1"]  # 1/|Q|
    shots: Float[Tensor, "task 1"]  # |S|/K

    @classmethod
    def of(cls, task: TaskBatch) -> OpenProblem:
        """Build the problem of these tasks."""
        n_tasks = task.n_tasks
        in_support, in_query = (task.present(name).unsqueeze(-1) for name in ("support", "query"))
        support, query = task.zeroed("support"), task.zeroed("query")
        means = labelled_moments(support, task.support_labels, task.support_mask, task.n_classes).mean()
        labels = task.support_labels.where(in_support.squeeze(-1), 0)
        targets = torch.nn.functional.one_hot(labels, task.n_classes + 1).to(support.dtype) * in_support
        n_support = in_support.sum(-2, keepdim=True)
        return cls(
            points=torch.cat([unit(support).expand(n_tasks, -1, -1), unit(query)], 1),
            means=means.expand(n_tasks, -1, -1),
            targets=targets.expand(n_tasks, -1, -1),
            support_shares=(in_support / n_support).to(support.dtype).expand(n_tasks, -1, -1),
            query_shares=(in_query / in_query.sum(-2, keepdim=True)).to(query.dtype),
            shots=(n_support.squeeze(-1) / task.n_classes).to(query.dtype).expand(n_tasks, -1),
        )

    def cosines(self, prototypes: Float[Tensor, "task class dim"]) -> Float[Tensor, "task point class"]:
        """`c_nk` of all points."""
        return self.points @ unit(prototypes).mT

    def query(self, values: Float[Tensor, "task point column"]) -> Float[Tensor, "task query column"]:
        """Return the rows of the query."""
        return values[:, self.targets.shape[1] :]


def blocks(task: TaskBatch) -> Iterator[TaskBatch]:
    """Cut the tasks into blocks whose points and probabilities fit the cache."""
    return task.blocks((task.support_slots + task.query_slots) * max(task.dim, task.n_classes))


def open_softmax(
    logits: Float[Tensor, "task point class"], outlier: Float[Tensor, "#task #point 1"]
) -> Float[Tensor, "task point open"]:
    """`ln p_nj` over the classes and, last, the outlier."""
    return softmax(torch.cat([logits, outlier.expand(*logits.shape[:-1], 1)], -1)).log()


def logit_slopes(
    problem: OpenProblem,
    p: Float[Tensor, "task point open"],
    slopes: Float[Tensor, "task query open"],
    support_weight: float,
) -> Float[Tensor, "task point open"]:
    """`∂L/∂l_nj` from `∂L/∂p_nj` on the query, see above."""
    n_support = problem.targets.shape[1]
    of_support = support_weight * problem.support_shares * (p[:, :n_support] - problem.targets)
    of_query = p[:, n_support:] * (slopes - (p[:, n_support:] * slopes).sum(-1, keepdim=True))
    return torch.cat([of_support, of_query], 1)


def prototype_slopes(
    problem: OpenProblem, prototypes: Float[Tensor, "task class dim"], slopes: Float[Tensor, "task point class"]
) -> Float[Tensor, "task class dim"]:
    """`∂L/∂w_k` from `∂L/∂c_nk`, see above; zero for a prototype of length zero, which has no direction."""
    lengths: Tensor = torch.linalg.vector_norm(prototypes, dim=-1, keepdim=True)
    directions = unit(prototypes)
    pulls = slopes.mT @ problem.points
    across = pulls - directions * (directions * pulls).sum(-1, keepdim=True)
    return (across / lengths).where(lengths > 0, 0)


def open_solution(
    task: TaskBatch,
    closed: SoftLabels,
    unknown: Float[Tensor, "task query"],
    n_iter: int,
    prototypes: Float[Tensor, "task class dim"],
) -> Solution:
    """Wrap the answer of a method that rejects: `u_nk` given that query n has a class, and `o_n`.

    Proportions are `Σ_n (1 - o_n) u_nk / Σ_n (1 - o_n)`.
    """
    unknown = unknown.where(task.present("query"), 0)
    # If every query is rejected for certain, all count equally.
    kept = (1 - unknown).clamp(min=torch.finfo(unknown.dtype).eps).unsqueeze(-1)
    masses = masked(kept * closed.weights, task.query_mask).sum(-2)
    solution = Frame(task).solution(closed, n_iter=n_iter, find_prototypes=prototypes)
    return replace(solution, unknown=unknown, proportions=masses / masses.sum(-1, keepdim=True))
