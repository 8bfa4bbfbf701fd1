"""Entropies in nats, with `0 ln 0 = 0`."""

from __future__ import annotations

import torch
from torch import Tensor

from handful.shapes import Float


def entropy(probabilities: Float[Tensor, "*batch class"]) -> Float[Tensor, "*batch"]:
    """`-Σ_k p_k ln p_k` over the last axis."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)
