"""Entropic optimal transport: Sinkhorn's algorithm for many problems at once; each stops on its own.

The state is the logarithm of the plan, so nothing underflows, however large the cost. A few sweeps at a time are done
on its exponential, where a sweep is two matrix-vector products; their scalings are then added to the logarithm. The
columns have their mass from the start, so one sweep changes no scale by more than the ratio of the total mass to the
smallest mass of a row or column. A few sweeps therefore stay far from the limits of a float.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Float
from handful_fewshot.numerics.fixed_point import fixed_point

SWEEPS_AT_ONCE = 5


@dataclass(frozen=True)
class TransportPlan:
    """`ln P`: its columns have their mass up to rounding, its rows up to `row_error`.

    `column_potential` is the vector h in `P_nk = e_n exp(h_k - cost_nk)`, a good start for a similar problem.
    """

    log_plan: Float[Tensor, "task point class"]
    column_potential: Float[Tensor, "task class"]
    row_error: Float[Tensor, "task"]


@dataclass(frozen=True)
class Marginals:
    """Sums that rows and columns shall have."""

    rows: Float[Tensor, "task point"]
    columns: Float[Tensor, "task class"]


def sinkhorn(
    cost: Float[Tensor, "task point class"],
    row_mass: Float[Tensor, "task point"],
    column_mass: Float[Tensor, "task class"],
    *,
    start: Float[Tensor, "task class"] | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> TransportPlan:
    """`argmin_P Σ P_nk cost_nk + Σ P_nk ln P_nk` over plans with the given row and column sums.

    Both sums must have the same total. Rows and columns are rescaled in turn until every row has its mass up to `tol`;
    this is checked after every five sweeps. A row of zero mass (padding) is ignored, whatever its cost. `start` is the
    initial column potential; it changes the number of sweeps, not the result.
    """
    potential = torch.zeros_like(column_mass) if start is None else start
    log_plan = potential.unsqueeze(-2) - cost
    log_plan = (log_plan - log_plan.logsumexp(-1, keepdim=True)) + row_mass.log().unsqueeze(-1)
    missing = column_mass.log() - log_plan.logsumexp(-2)
    start_plan = TransportPlan(log_plan + missing.unsqueeze(-2), potential + missing, torch.zeros_like(missing[:, 0]))
    most = -(-max_iter // SWEEPS_AT_ONCE)
    return fixed_point(sweeps, error, Marginals(row_mass, column_mass), start_plan, max_iter=most, tol=tol).answer


def error(to: Marginals, new: TransportPlan, old: TransportPlan) -> Float[Tensor, "task"]:
    """Largest error of a row sum."""
    return new.row_error


def sweeps(to: Marginals, state: TransportPlan) -> tuple[TransportPlan, TransportPlan]:
    """Scale rows and columns to their mass in turn, a few times, and measure the error of the row sums at the end."""
    plan = state.log_plan.exp()
    scale = torch.ones_like(to.columns).unsqueeze(-1)
    rows = to.rows.unsqueeze(-1)
    columns = to.columns.unsqueeze(-1)
    row_scale = torch.zeros_like(rows)
    for _ in range(SWEEPS_AT_ONCE):
        row_scale = (rows / (plan @ scale)).where(rows > 0, 0)
        scale = columns / (plan.mT @ row_scale)
    row_error = (row_scale * (plan @ scale) - rows).abs().amax((-2, -1))
    log_scale = scale.squeeze(-1).log()
    # A row of zero mass is -inf everywhere, and stays so.
    log_plan = state.log_plan + row_scale.log() + log_scale.unsqueeze(-2)
    new = TransportPlan(log_plan, state.column_potential + log_scale, row_error)
    return new, new
