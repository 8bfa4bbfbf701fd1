"""Batch normalisation over the batch of all processes, with any communication backend.

`y = γ (x - μ) / √(σ² + ε) + β`, with μ and σ² over the images of every process: sums add, so two processes with half a
batch each see what one process with the whole batch sees. torch's own `SyncBatchNorm` does this on GPUs only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from handful.shapes import Float


class BatchNorm(nn.BatchNorm2d):
    """`nn.BatchNorm2d`, with the statistics of all processes while several train together."""

    def forward(self, input: Float[Tensor, "item channel height width"]) -> Float[Tensor, "item channel height width"]:
        """Normalise each channel."""
        if not (self.training and _several_processes()):
            return super().forward(input)
        # At least single precision, even where the network runs in half: a mean over a whole map would lose its last
        # digits.
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        count = x.numel() // x.shape[1] * torch.distributed.get_world_size()
        mean = sum_of_processes(x.sum((0, 2, 3))) / count
        centred = x - mean[:, None, None]
        variance = sum_of_processes(centred.square().sum((0, 2, 3))) / count
        self._remember(mean.detach(), variance.detach() * count / (count - 1))
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return (centred * scale[:, None, None] + self.bias[:, None, None]).to(input.dtype)

    def _remember(self, mean: Float[Tensor, "channel"], variance: Float[Tensor, "channel"]) -> None:
        """Update the running statistics, as `nn.BatchNorm2d` does."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)


def sum_of_processes(value: Tensor) -> Tensor:
    """`s = Σ_p x_p` over all processes, with its gradient."""
    total: Tensor = _SumOfProcesses.apply(value)  # type: ignore[no-untyped-call]
    return total


class _SumOfProcesses(torch.autograd.Function):
    """Every process has its own copy of the sum, so the gradient of x_p is the sum of all copies' gradients."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        torch.distributed.all_reduce(total)
        return total


def _several_processes() -> bool:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1
