"""Adam as a pure function against torch's optimiser."""

import torch

from handful_fewshot.numerics.adam import AdamState, adam_step


def test_it_is_torchs_adam():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    gradients = [torch.randn(2, 3, 4, generator=generator, dtype=torch.float64) for _ in range(30)]
    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=1e-2)
    ours, state = start, AdamState.zeros_like(start)
    for gradient in gradients:
        theirs.grad = gradient.clone()
        optimiser.step()
        ours, state = adam_step(ours, gradient, state, 1e-2)
    torch.testing.assert_close(ours, theirs.detach())
