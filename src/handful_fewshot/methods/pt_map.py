"""PT-MAP: balanced optimal transport and slowly moving prototypes (Hu, Gripon, Pateux, ICANN 2021).

From the support means, repeat `max_iter` times

    P: the transport plan of the query with `Σ_k p_nk = 1`, `Σ_n p_nk = |Q|/K` and cost ‖z_n - w_k‖², entropy weight 1/λ
    W: w_k ← w_k + α ( (Σ_S y_nk z_n + m Σ_Q p_nk z_n) / (c_k + m Σ_Q p_nk) - w_k ),     m = 1,

then label the query with a final plan. By construction every class gets the same share of the query.

PADDLE's public code asks for column sums of |Q|/K_eff while rows sum to one. No plan can have both; Sinkhorn's sweeps
then end in the balanced plan times m = K/K_eff, so the query has more weight in W. K_eff is part of the answer, and no
method here has access to it; the caller may give the column sum as `column_mass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from handful_fewshot.frame import Frame
from handful_fewshot.methods.method import Method, Options, above, at_least, limited
from handful_fewshot.numerics.geometry import soft_moments
from handful_fewshot.numerics.transport import sinkhorn
from handful_fewshot.numerics.vectors import half_squared_distances, softmax
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch


@dataclass(frozen=True)
class PTMAPOptions(Options):
    """Options of PT-MAP; the defaults are its authors'.

    **Assumes** that every class has the same share of the query. **Do not use it** when few of the classes are
    present: it spreads the query over all of them. The authors' rotation by QR is left out of `pt_map_preprocess`,
    because it changes no distance; a negative feature keeps its sign. PADDLE's tables have `column_mass=|Q|//K_eff`
    and `step_size=0.02`. `converged` says whether the last plan met its row sums to `tol`; well separated classes
    in unequal numbers can need more than 1,000 sweeps. **Cost.** 20 times 4|Q|Kd and a few hundred sweeps of 4|Q|K.
    """

    # α, how far prototypes move at each iteration. PADDLE's configurations use 0.02, and 0.01 for one encoder.
    step_size: float = limited(lambda size: 0 <= size <= 1, "in 0 … 1", 0.2)
    cost_weight: float = above(
        0, 10.0
    )  # λ, weight of a unit of squared distance relative to a nat of the plan's entropy
    column_mass: float | None = above(0, None)  # of each class when prototypes are averaged; None means |Q|/K
    max_iter: int = at_least(0, 20)
    max_sweeps: int = at_least(1, 1000)
    tol: float = at_least(0, 1e-6)  # a plan is done when every row sum is right up to this


def solve(task: TaskBatch, options: PTMAPOptions) -> Solution:
    """Alternate plan and prototypes; each plan starts from the column potential of the previous one."""
    frame = Frame(task)
    real = task.present("query").to(frame.query.dtype)
    balanced = (frame.n_query / task.n_classes).unsqueeze(-1).expand(-1, task.n_classes)
    find_plan = partial(sinkhorn, row_mass=real, column_mass=balanced, max_iter=options.max_sweeps, tol=options.tol)

    prototypes = frame.support.mean()
    plan = find_plan(2 * options.cost_weight * half_squared_distances(frame.query, prototypes))
    for _ in range(options.max_iter):
        weights = plan.log_plan.exp()
        if options.column_mass is not None:
            weights = weights * (options.column_mass / balanced).unsqueeze(-2)
        average = (frame.support + soft_moments(frame.query, weights)).mean()
        prototypes = torch.lerp(prototypes.expand_as(average), average, options.step_size)
        cost = 2 * options.cost_weight * half_squared_distances(frame.query, prototypes)
        plan = find_plan(cost, start=plan.column_potential)
    # Row sums are right up to the tolerance; the softmax makes them exact. Padded rows are all -inf and set to zero.
    u = softmax(plan.log_plan.where(real.unsqueeze(-1) > 0, 0))
    return frame.solution(
        u, n_iter=options.max_iter, converged=plan.row_error <= options.tol, find_prototypes=frame.placed(prototypes)
    )


METHOD = Method(
    "pt_map",
    PTMAPOptions,
    "pt_map_preprocess",
    solve,
    "Hu, Gripon, Pateux. Leveraging the Feature Distribution in Transfer-Based Few-Shot Learning. ICANN 2021.",
)
