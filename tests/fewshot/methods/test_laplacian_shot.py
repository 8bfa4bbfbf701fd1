"""LaplacianShot: where it starts, what it iterates, and what it does with neighbours."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.laplacian_shot import LaplacianProblem, energy
from handful_fewshot.numerics.vectors import neighbour_affinities
from tests.fewshot.methods.test_nearest_prototype import class_means
from tests.tasks_at_hand import random_task


@pytest.mark.parametrize("n_iter", [1, 2, 7])
def test_the_iteration_is_that_of_a_loop(n_iter):
    task = random_task(1, spread=2.0)
    solution = fewshot.solve("laplacian_shot", task, smoothness=1.3, n_neighbours=3, max_iter=n_iter, tol=0.0)
    graph = neighbour_affinities(task.query, None, 3).numpy()
    squares = torch.cdist(task.query, class_means(task)).square()
    distances, problem = squares.numpy(), LaplacianProblem(squares, torch.from_numpy(graph), None)
    found = energy(problem, solution.log_assignments.exp(), 1.3)
    for t in range(task.n_tasks):
        y = np.exp(-distances[t]) / np.exp(-distances[t]).sum(1, keepdims=True)
        for _ in range(n_iter):
            y = np.exp(1.3 * graph[t] @ y - distances[t])
            y = y / y.sum(1, keepdims=True)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.from_numpy(y), atol=1e-9, rtol=1e-7)
        expected = (y * distances[t]).sum() - 1.3 * (y * (graph[t] @ y)).sum() + (y * np.log(y)).sum()
        assert found[t].item() == pytest.approx(expected)
