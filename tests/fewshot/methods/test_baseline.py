"""Baseline: both heads, where they start, and how far the deterministic epochs are from stochastic ones."""

import torch

from handful import fewshot
from tests.tasks_at_hand import random_task


def test_prototypes_without_a_step_are_the_nearest_prototype():
    task = random_task(0, spread=2.0)
    solution = fewshot.solve("baseline", task, head="prototypes", max_iter=0)
    nearest = fewshot.solve("nearest_prototype", task)
    assert torch.equal(solution.predictions, nearest.predictions)
    torch.testing.assert_close(solution.prototypes, nearest.prototypes)


def stochastic(task: fewshot.TaskBatch, t: int, seed: int) -> torch.Tensor:
    """The published training of one task: random start, mini-batches of 4, momentum and dampening 0.9, 100 epochs."""
    generator = torch.Generator().manual_seed(seed)
    bound = task.dim**-0.5
    weights = (2 * torch.rand(task.n_classes, task.dim, generator=generator).double() - 1) * bound
    bias = (2 * torch.rand(task.n_classes, generator=generator).double() - 1) * bound
    parameters = [weights.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, dampening=0.9, weight_decay=1e-3)
    for _ in range(100):
        for rows in torch.randperm(task.support.shape[1], generator=generator).split(4):
            optimiser.zero_grad()
            logits = task.support[t, rows] @ weights.T + bias
            torch.nn.functional.cross_entropy(logits, task.support_labels[t, rows]).backward()
            optimiser.step()
    return (task.query[t] @ weights.T + bias).detach()


def test_deterministic_epochs_end_near_stochastic_ones():
    task = random_task(3, n_tasks=2, spread=1.5, n_query=60)
    ours = fewshot.solve("baseline", task).log_assignments.exp()
    for t in range(2):
        runs = torch.stack([stochastic(task, t, seed).softmax(-1) for seed in range(4)])
        among_runs = (runs[0] - runs[1:]).abs().mean()
        assert (ours[t] - runs.mean(0)).abs().mean() < 1.5 * among_runs
