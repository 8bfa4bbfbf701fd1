"""Points on the probability simplex: softmax in logarithms, its exponential, Euclidean projection, entropies in nats.

Denormal floats (below 1e-38 in float32) make a product up to a hundred times slower on most processors, and a
sharply converged assignment matrix is full of them. So logarithms are clamped at `lowest_log` before they are
exponentiated, and probabilities below `exp(lowest_log)` are exactly zero. The clamp also removes -inf, whose
exponential takes far longer than that of a finite number (docs/measured/performance.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from handful.shapes import Float

# Clamped values are recognised by their exponential, which is exact up to rounding.
ABOVE_LOWEST = 1.0001


def lowest_log(dtype: torch.dtype) -> float:
    """Logarithm below which a probability counts as zero: 0.8 ln(smallest normal), -69.9 for float32.

    The factor 0.8 keeps the product with a small feature normal as well.
    """
    return 0.8 * math.log(torch.finfo(dtype).tiny)


@dataclass(frozen=True)
class SoftLabels:
    """Points on the simplex, `u_nk`: as weights for products, and as logarithms for everything else."""

    weights: Float[Tensor, "*batch class"]
    logits: Float[Tensor, "*batch class"]
    largest: Float[Tensor, "*batch 1"]  # of each row of logits
    log_total: Float[Tensor, "*batch 1"]  # ln Σ exp(logits - largest)

    def log(self) -> Float[Tensor, "*batch class"]:
        """`ln u_nk`, exact where the weight itself counts as zero."""
        return (self.logits - self.largest).sub_(self.log_total)


def softmax(logits: Float[Tensor, "*batch class"]) -> SoftLabels:
    """`u_k = exp(logits_k) / Σ_j exp(logits_j)` over the last axis; a row may contain -inf, but not only -inf."""
    lowest = lowest_log(logits.dtype)
    largest = logits.amax(-1, keepdim=True)
    weights = torch.threshold_((logits - largest).clamp_(min=lowest).exp_(), ABOVE_LOWEST * math.exp(lowest), 0.0)
    total = weights.sum(-1, keepdim=True)
    return SoftLabels(weights.div_(total), logits, largest, total.log())


def project_to_simplex(points: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch class"]:
    """`argmin_p ‖p - x‖²` over the simplex: `p = max(x - θ, 0)`, with θ from the sorted cumulative sums."""
    descending = points.sort(-1, descending=True).values
    excess = descending.cumsum(-1) - 1
    rank = torch.arange(1, points.shape[-1] + 1, dtype=points.dtype, device=points.device)
    n_positive = (descending * rank > excess).sum(-1, keepdim=True)
    threshold = excess.gather(-1, n_positive - 1) / n_positive
    return (points - threshold).clamp_(min=0)


def entropy(probabilities: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch"]:
    """`-Σ_k p_k ln p_k` over the last axis."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)


def tsallis_slope(log_probabilities: Tensor, order: float) -> Tensor:
    """`∂H_α/∂p_k = -α (p_k^{α-1} - 1) / (α - 1)`, element by element, of `H_α(p) = (1 - Σ_k p_k^α) / (α - 1)`.

    A constant that is the same for all classes is left out: it has no effect on derivatives along the simplex. At α = 1
    this is `-ln p_k`; `expm1` keeps the quotient accurate when the order is close to one.
    """
    if order == 1:
        return -log_probabilities
    return torch.expm1((order - 1) * log_probabilities).mul_(-order / (order - 1))
