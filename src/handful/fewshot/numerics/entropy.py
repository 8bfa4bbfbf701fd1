"""Entropies in nats, with `0 ln 0 = 0`: Shannon entropy, and Tsallis entropy, which equals it at order one."""

from __future__ import annotations

import torch
from torch import Tensor

from handful.shapes import Float


def entropy(probabilities: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch"]:
    """`-Σ_k p_k ln p_k` over the last axis."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)


def tsallis_entropy(probabilities: Float[Tensor, "*batch class"], order: float) -> Float[Tensor, "*batch"]:
    """`(1 - Σ_k p_k^α) / (α - 1)` over the last axis, with α the order; `-Σ_k p_k ln p_k` at α = 1."""
    if order == 1:
        return entropy(probabilities)
    return (1 - probabilities.pow(order).sum(-1)) / (order - 1)


def tsallis_slope(log_probabilities: Tensor, order: float) -> Tensor:
    """`∂H_α/∂p_k` up to a constant, `-α (p_k^{α-1} - 1) / (α - 1)`, element by element; `-ln p_k` at α = 1.

    The constant is the same for all classes, so it has no effect on derivatives along the simplex. `expm1` keeps the
    quotient accurate when the order is close to one.
    """
    if order == 1:
        return -log_probabilities
    return torch.expm1((order - 1) * log_probabilities).mul_(-order / (order - 1))
