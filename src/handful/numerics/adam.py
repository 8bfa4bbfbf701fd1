"""One step of Adam (Kingma and Ba, ICLR 2015) as a pure function: element-wise, so tasks never interact."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FIRST_DECAY, SECOND_DECAY, DIVISION_GUARD = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class AdamState:
    """Running means of gradients and squared gradients, shaped like the variable; `count` steps so far [task]."""

    first: Tensor
    second: Tensor
    count: Tensor

    @classmethod
    def zeros_like(cls, variable: Tensor) -> AdamState:
        """Return the state before the first step, for a variable with a leading task axis."""
        zeros = torch.zeros_like(variable)
        return cls(zeros, zeros, variable.new_zeros(len(variable)))


def adam_step(variable: Tensor, gradient: Tensor, state: AdamState, learning_rate: float) -> tuple[Tensor, AdamState]:
    """`x - η m̂ / (√v̂ + ε)`, with m̂ and v̂ the bias-corrected means; every argument is left as it was."""
    count = state.count + 1
    first = torch.lerp(state.first, gradient, 1 - FIRST_DECAY)
    second = torch.lerp(state.second, gradient.square(), 1 - SECOND_DECAY)
    per_task = count.reshape(-1, *[1] * (variable.ndim - 1))
    step = learning_rate / (1 - FIRST_DECAY**per_task)
    root = (second / (1 - SECOND_DECAY**per_task)).sqrt_().add_(DIVISION_GUARD)
    return variable - step * first / root, AdamState(first, second, count)
