"""One step of Adam (Kingma and Ba, ICLR 2015): element-wise, so tasks never interact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
DIVISION_GUARD = 1e-8
# Squared gradients below this have no effect: the guard is 1e7 times their root. Unclamped, they become denormal.
LOWEST_SQUARE = 1e-30


@dataclass(frozen=True)
class AdamState:
    """Running means of gradients and of squared gradients, shaped like the variable, and `count` steps so far."""

    first: Tensor
    second: Tensor
    count: int

    @classmethod
    def zeros_like(cls, variable: Tensor) -> AdamState:
        """Return the state before the first step."""
        return cls(torch.zeros_like(variable), torch.zeros_like(variable), 0)


def adam_step(variable: Tensor, gradient: Tensor, state: AdamState, learning_rate: float) -> tuple[Tensor, AdamState]:
    """`x - η m̂ / (√v̂ + ε)`, with m̂ and v̂ the bias-corrected means; `variable` is left as it was.

    `gradient` and `state` are overwritten: their memory is reused for the result, because allocating new memory would
    cost more than the arithmetic. Both corrections are the same for all elements, so they are moved out of the
    fraction: `m̂ / (√v̂ + ε) = (√b / a) m / (√v + ε√b)`, with a and b one minus the decays to the power of the count.
    """
    count = state.count + 1
    first = state.first.lerp_(gradient, 1 - FIRST_DECAY)
    second = state.second.lerp_(gradient.square_().clamp_(min=LOWEST_SQUARE), 1 - SECOND_DECAY)
    a = 1 - FIRST_DECAY**count
    root_b = math.sqrt(1 - SECOND_DECAY**count)
    divisor = torch.sqrt(second, out=gradient).add_(DIVISION_GUARD * root_b)
    return torch.addcdiv(variable, first, divisor, value=-learning_rate * root_b / a), AdamState(first, second, count)


def minimised(
    gradient: Callable[..., Sequence[Tensor]], start: Sequence[Tensor], learning_rate: float, n_steps: int
) -> list[Tensor]:
    """Take that many steps from `start`; `gradient` takes all variables and returns a slope for each."""
    variables = list(start)
    states = [AdamState.zeros_like(variable) for variable in start]
    for _ in range(n_steps):
        slopes = gradient(*variables)
        for i, slope in enumerate(slopes):
            variables[i], states[i] = adam_step(variables[i], slope, states[i], learning_rate)
    return variables
