"""Baseline and Baseline++: gradients and steps against torch, where they start, the scale of cosines."""

import torch

import handful_fewshot as fewshot
from handful_fewshot import TaskBatch
from handful_fewshot.methods.baseline import BaselineOptions, BaselinePPOptions, fit_linear, prototype_gradient
from tests.fewshot.oracles.stochastic_epochs import trained
from tests.tasks_at_hand import ragged_tasks, random_task


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the real points of each task, summed over tasks."""
    return -((logits.log_softmax(-1) * targets).sum((-2, -1)) / targets.sum((-2, -1))).sum()


def test_the_gradient_of_prototypes_is_autograds():
    task = TaskBatch.pad(ragged_tasks(0))
    w = torch.randn(4, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    cross_entropy(-7.5 * torch.cdist(task.support, w).square(), task.targets).backward()
    torch.testing.assert_close(prototype_gradient(task.support, task.targets, w.detach(), 15.0), w.grad)


def test_a_linear_layer_moves_as_under_torchs_sgd():
    task = random_task(1)
    v = torch.zeros(3, 6, 8, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([v, b], lr=0.01 * 5, weight_decay=1e-3)  # 18 points in batches of 4 are 5 steps
    for _ in range(25):
        optimiser.zero_grad()
        cross_entropy(task.support @ v.mT + b.unsqueeze(-2), task.targets).backward()
        optimiser.step()
    weights, offsets = fit_linear(task, BaselineOptions(max_iter=25), bias=True)
    torch.testing.assert_close(weights, v.detach())
    torch.testing.assert_close(offsets, b.detach())


def test_prototypes_without_a_step_are_the_nearest_prototype():
    task = random_task(0, spread=2.0)
    solution = fewshot.solve("baseline", task, head="prototypes", max_iter=0)
    nearest = fewshot.solve("nearest_prototype", task)
    assert torch.equal(solution.predictions, nearest.predictions)
    torch.testing.assert_close(solution.prototypes, nearest.prototypes)


def test_deterministic_epochs_end_near_stochastic_ones():
    task = random_task(3, n_tasks=2, spread=1.5, n_query=60)
    ours = fewshot.solve("baseline", task).log_assignments.exp()
    runs = torch.stack([trained(task, seed, cosine=False).softmax(-1) for seed in range(4)])
    among_runs = (runs[0] - runs[1:]).abs().mean()
    assert (ours - runs.mean(0)).abs().mean() < 1.5 * among_runs


def test_baseline_pp_is_a_linear_layer_without_bias_on_unit_features():
    task = random_task(0, spread=2.0)
    unit = fewshot.transform("l2", task)
    scaled = unit.with_features(3 * unit.support, 3 * unit.query)
    weights, _ = fit_linear(scaled, BaselinePPOptions(), bias=False)
    solution = fewshot.solve("baseline_pp", task, scale=3.0)
    torch.testing.assert_close(solution.log_assignments, (scaled.query @ weights.mT).log_softmax(-1))


def test_the_scale_is_two_and_beyond_two_hundred_classes_ten():
    few, many = random_task(1), random_task(1, n_classes=201, n_tasks=1)
    for task, scale in ((few, 2.0), (many, 10.0)):
        a, b = fewshot.solve("baseline_pp", task), fewshot.solve("baseline_pp", task, scale=scale)
        assert torch.equal(a.log_assignments, b.log_assignments)
