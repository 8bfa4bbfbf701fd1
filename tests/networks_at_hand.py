"""What is asked of every network."""

import torch
from torch import nn
from torch.nn import functional


def n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def losses_of_one_step(network: nn.Module, dim: int, side: int, n_items: int, rate: float) -> tuple[float, float]:
    """Loss on one fixed batch of noise, before and after a step of gradient descent on it."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(n_items, 3, side, side, generator=generator)
    labels = torch.arange(n_items) % 2
    classifier = nn.Linear(dim, 2)
    nn.init.normal_(classifier.weight, std=0.1, generator=generator)
    optimizer = torch.optim.SGD([*network.parameters(), *classifier.parameters()], rate)
    before = functional.cross_entropy(classifier(network(images)), labels)
    before.backward()
    optimizer.step()
    with torch.no_grad():
        after = functional.cross_entropy(classifier(network(images)), labels)
    return before.item(), after.item()
