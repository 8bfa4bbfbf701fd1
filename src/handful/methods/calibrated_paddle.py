"""Calibrated PADDLE: PADDLE's mixture, its scale estimated from the support and its prior from the query.

There is nothing to tune. Three things decide how well published PADDLE does on new features, and none of them is in its
objective: the scale of the features, how strongly few classes are preferred, and how far prototypes may follow the
query. Here

1. **scale**: features are multiplied by c, with c² from left-out pairs of the support (`inference.calibration`);
2. **prior**: the proportions π have a symmetric Dirichlet prior, `π ~ Dir(α, …, α)`, integrated out by variational
   Bayes, and α is the value that makes the expected counts of the query most probable: small where few classes occur,
   large where all do. With `D_nk = ½c²‖z_n - w_k‖²` to the support means and `N_k = Σ_Q u_nk`,

       u_n = softmax_k( -D_nk + ψ(N_k + α) ),     α ← α Σ_k [ψ(N_k + α) - ψ(α)] / (K [ψ(|Q| + Kα) - ψ(Kα)]),

   from α = 1/K. Uniform proportions (α → ∞) are used instead if they have the higher evidence, or if α reaches the
   shots s: a prototype of s examples is off by a share 1/s of the spread, which alone makes counts uneven;
3. **two passes**: a sharp scale separates classes that are easily confused, but gives outliers of a large class to
   other classes; a soft scale does the opposite. The more classes occur, the more can be confused. So the first pass is
   sharp, 1.6 c², and the second uses `√(K̂/12.5) c²`, at most 1.6 c² and at least 0.4 c², where `K̂ = |Q|² / Σ_k N_k²`
   is the number of classes that the first pass found, weighted by size;
4. **prototypes** move once, as PADDLE moves them, and the query is assigned again.

Steps 2 and 3 are the rules of `inference.joint`, which a streamed run follows as well; tasks in memory are
stacked by `inference.stack`.

PADDLE's own `v_k = 1 + ln û_k` is the limit of `ψ(N_k + α)` for large counts and α → 0, up to constants. Dirichlet
prior and its estimation: Minka, *Estimating a Dirichlet distribution*, 2000. Frozen prototypes with free proportions:
Saerens, Latinne and Decaestecker 2002. The numbers of step 3 were chosen on three banks (docs/methods).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from handful.inference.batches import AgainstOne, EachItsOwn
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame, Labels
from handful.inference.joint import tilts
from handful.inference.stack import Batches, Settled, compare, label
from handful.methods.method import Method, require
from handful.numerics.geometry import columns_of
from handful.numerics.simplex import softmax
from handful.shapes import Float
from handful.solution import Solution
from handful.task import TaskBatch


@dataclass(frozen=True)
class CalibratedPaddleOptions:
    """Options of calibrated PADDLE: when to stop.

    Attributes
    ----------
    max_iter, tol : int, float
        A pass ends when no expected class count changes by more than `tol` queries, or after `max_iter` iterations.
    """

    max_iter: int = 1000
    tol: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        require(self.max_iter >= 1, "max_iter must be at least 1", self.max_iter)
        require(self.tol >= 0, "tol must be at least 0", self.tol)


def solve(task: TaskBatch, options: CalibratedPaddleOptions) -> Solution:
    """Find the scale, find the proportions in two passes, move the prototypes once and label the query."""
    frame = Frame(task)
    found = label(batches(frame), max_iter=options.max_iter, tol=options.tol)
    # Assignments are logarithms of probabilities, so the normaliser is one.
    labels = Labels(found.log_assignments, found.proportions, torch.zeros_like(found.log_assignments[..., 0]))
    return frame.solution(
        labels,
        n_iter=found.of_tasks("n_iter"),
        converged=found.of_tasks("converged"),
        find_prototypes=partial(prototypes, found.groups),
    )


def batches(frame: Frame) -> Batches:
    """Compare the tasks with the classes they share, or each task with its own."""
    if len(frame.task.source("support")) > 1 or frame.task.n_tasks == 1:
        return EachItsOwn(frame)
    means, scale = frame.support.mean()[0], squared_scale(frame).double()
    return AgainstOne(frame.query, frame.query_mask, means, frame.support.mass[0], scale)


def prototypes(
    groups: list[Settled], frame: Frame, _: Float[Tensor, "task query class"]
) -> Float[Tensor, "task class dim"]:
    """Means over the support and the query, with the labels of the second pass."""
    posed = batches(frame)
    scores = compare(posed).scores
    weights = torch.zeros_like(scores)
    for group in groups:
        state, rows = group.state, group.rows
        nats = (state.factor * posed.squared_scale[rows]).reshape(-1, 1, 1)
        before = tilts(state.counts_before, state.concentration_before).unsqueeze(1)
        u = softmax(before + nats * columns_of(scores[rows], group.classes)).weights
        items = torch.arange(scores.shape[1], device=rows.device).reshape(1, -1, 1)
        weights[rows.reshape(-1, 1, 1), items, group.classes.unsqueeze(1)] = u.to(weights)
        even = rows[state.spread_out]
        weights[even] = softmax(scores[even] * nats[state.spread_out].to(scores)).weights
    return frame.prototypes(weights)


METHOD = Method(
    name="calibrated_paddle",
    options=CalibratedPaddleOptions,
    transform="l2",
    solve=solve,
    in_blocks=True,
    citation="handful; after Martin et al., NeurIPS 2022, Saerens et al. 2002 and Minka 2000.",
)
