"""Baseline: both heads, where they start, and how far the deterministic epochs are from stochastic ones."""

import torch

from handful import fewshot
from tests.fewshot.oracles.stochastic_epochs import trained
from tests.tasks_at_hand import random_task


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
