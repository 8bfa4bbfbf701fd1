"""Training on the support: gradients against autograd, steps against torch's optimisers."""

import torch

from handful.fewshot import TaskBatch
from handful.fewshot.methods.baseline import BaselineOptions
from handful.fewshot.solvers.finetuning import (
    LabelledPoints,
    LinearLayer,
    fit_linear,
    prototype_gradient,
)
from tests.tasks_at_hand import ragged_tasks, random_task


def cross_entropy(logits: torch.Tensor, data: LabelledPoints) -> torch.Tensor:
    """Mean over the real points of each task, summed over tasks."""
    losses = -logits.log_softmax(-1).gather(-1, data.labels.unsqueeze(-1)).squeeze(-1)
    return ((losses * data.real).sum(-1) / data.size()).sum()


def posed():
    task = TaskBatch.pad(ragged_tasks(0))
    generator = torch.Generator().manual_seed(0)
    return LabelledPoints.of(task), torch.randn(4, 5, 6, dtype=torch.float64, generator=generator)


def test_the_gradient_of_prototypes_is_autograds():
    data, w = posed()
    w.requires_grad_()
    cross_entropy(-7.5 * torch.cdist(data.points, w).square(), data).backward()
    torch.testing.assert_close(prototype_gradient(data, w.detach(), 15.0), w.grad)


def test_a_linear_layer_moves_as_under_torchs_sgd():
    task = random_task(1)
    data = LabelledPoints.of(task)
    v = torch.zeros(3, 6, 8, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([v, b], lr=0.01 * 5, weight_decay=1e-3)  # 18 points in batches of 4 are 5 steps
    for _ in range(25):
        optimiser.zero_grad()
        cross_entropy(LinearLayer(v, b).logits(data.points), data).backward()
        optimiser.step()
    layer = fit_linear(task, BaselineOptions(max_iter=25), bias=True)
    torch.testing.assert_close(layer.weights, v.detach())
    torch.testing.assert_close(layer.bias, b.detach())
