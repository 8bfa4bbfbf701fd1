"""Which labels a linear fit explains without correction: the group-lasso path, solved as a Huber regression.

Let Y hold one-hot labels of N points and U an orthonormal basis of r directions, `P = I - U Uᵀ`. The path solves, for
decreasing λ,

    min_γ  ½‖P (Y - γ)‖² + λ Σ_i ‖γ_i‖,

where row γ_i corrects the label of point i if the fit on U cannot explain it. P is a projection, so the first term is
the error of the best fit, `½‖P(Y - γ)‖² = min_B ½‖Y - γ - U B‖²`, and for given B the best γ is a soft threshold:

    r_i = y_i - Bᵀu_i,    γ_i = max(0, 1 - λ/‖r_i‖) r_i,    what remains is  min_B Σ_i huber_λ(‖r_i‖).

So a group lasso with N·K unknowns, at N²K operations per sweep of coordinate descent, becomes a robust regression with
r·K unknowns. It is solved by reweighted least squares; each round lowers the objective:

    w_i = min(1, λ/‖r_i‖),    B = (Uᵀ diag(w) U)⁻¹ Uᵀ diag(w) Y,

and as y_i is one-hot, `‖r_i‖² = 1 - 2 u_iᵀ b_{y_i} + u_iᵀ B Bᵀ u_i`: a round costs N r², not N K. All λ are solved
together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from handful.shapes import Float, Int

# A level is done when no residual changes by more than this share of λ, the threshold that decides what is zero.
TOLERANCE = 1e-6
MAX_ROUNDS = 2000


def outlier_path(
    basis: Float[Tensor, "point component"],
    labels: Int[Tensor, "point"],
    n_classes: int,
    n_levels: int,
    smallest: float,
) -> tuple[Float[Tensor, "level"], Float[Tensor, "level point"]]:
    """Return ascending levels λ and `‖r_i‖` of every point at each; `‖γ_i‖ = max(0, ‖r_i‖ - λ)`.

    Levels are equally spaced in logarithms, from `smallest · λ_max` to λ_max, where γ = 0. The basis U has orthonormal
    columns.
    """
    n_components = basis.shape[1]
    one_hot = torch.nn.functional.one_hot(labels, n_classes).to(basis.dtype)
    squares = (basis.unsqueeze(-1) * basis.unsqueeze(-2)).flatten(1)  # u_i u_iᵀ, one row per point

    def residual_norms(fit: Float[Tensor, "level component class"]) -> Float[Tensor, "level point"]:
        explained = (fit.index_select(-1, labels) * basis.mT).sum(1)
        return ((fit @ fit.mT).flatten(1) @ squares.mT).sub_(explained, alpha=2).add_(1).clamp_(min=0).sqrt_()

    start = residual_norms((basis.mT @ one_hot).unsqueeze(0))  # least squares
    levels = start.max() * torch.logspace(math.log10(smallest), 0, n_levels, dtype=basis.dtype)
    residuals = torch.empty(n_levels, len(basis), dtype=basis.dtype)
    running, norms = torch.arange(n_levels), start.expand(n_levels, -1)
    for _ in range(MAX_ROUNDS):
        level = levels[running].unsqueeze(-1)
        weights = (level / norms).clamp_(max=1)
        normal = (weights @ squares).reshape(-1, n_components, n_components)
        target = (weights.unsqueeze(1) * basis.mT).flatten(0, 1) @ one_hot
        fit = torch.linalg.solve(normal, target.reshape(-1, n_components, n_classes))
        previous, norms = norms, residual_norms(fit)
        residuals[running] = norms
        moving = (norms - previous).abs().amax(-1) > TOLERANCE * level.squeeze(-1)
        running, norms = running[moving], norms[moving]
        if len(running) == 0:
            break
    return levels, residuals
