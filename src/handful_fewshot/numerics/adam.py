"""One step of Adam (Kingma and Ba, ICLR 2015): element-wise, so tasks never interact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
DIVISION_GUARD = 1e-8
# A gradient below this moves nothing: the guard is 1e7 times as large. Its square would come near the denormal numbers,
# with which the step takes twenty times as long.
LOWEST_GRADIENT = 1e-15


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

    `gradient` and `state` are overwritten. Torch's own kernel reads and writes every array once; one operation after
    the other takes two to four times as long.
    """
    count = state.count + 1
    new = variable.clone(memory_format=torch.contiguous_format)
    torch._fused_adam_(
        [new],
        [torch.hardshrink(gradient, LOWEST_GRADIENT)],
        [state.first],
        [state.second],
        [],
        [torch.tensor(float(count), device=variable.device)],
        lr=learning_rate,
        beta1=FIRST_DECAY,
        beta2=SECOND_DECAY,
        weight_decay=0.0,
        eps=DIVISION_GUARD,
        amsgrad=False,
        maximize=False,
    )
    return new, AdamState(state.first, state.second, count)


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
