"""PT-MAP: its plan against POT, its marginals, its update, and what a stated column mass does."""

import pytest
import torch

import handful_fewshot as fewshot
from tests.fewshot.methods.test_nearest_prototype import class_means
from tests.tasks_at_hand import random_task


def at_hand(seed: int) -> fewshot.TaskBatch:
    """Features on the unit sphere, where the published cost weight belongs."""
    return fewshot.transform("pt_map_preprocess", random_task(seed, spread=1.5))


def pots_plan(task: fewshot.TaskBatch, t: int, prototypes: torch.Tensor) -> torch.Tensor:
    ot = pytest.importorskip("ot")
    n_query, n_classes = task.query.shape[1], task.n_classes
    rows = torch.ones(n_query, dtype=torch.float64)
    columns = torch.full((n_classes,), n_query / n_classes, dtype=torch.float64)
    cost = torch.cdist(task.query[t], prototypes).square()
    return ot.sinkhorn(rows, columns, cost, reg=0.1, method="sinkhorn_log", stopThr=1e-12, numItermax=20_000)


def test_its_plan_is_pots():
    task = at_hand(0)
    solution = fewshot.solve("pt_map", task, max_iter=0, tol=1e-11, max_sweeps=20_000)
    for t in range(task.n_tasks):
        expected = pots_plan(task, t, class_means(task)[t])
        torch.testing.assert_close(solution.log_assignments[t].exp(), expected, atol=1e-8, rtol=0)


@pytest.mark.parametrize("column_mass", [None, 10.0])
def test_prototypes_move_as_in_a_loop(column_mass):
    task = at_hand(2)
    solution = fewshot.solve("pt_map", task, max_iter=3, tol=1e-11, max_sweeps=20_000, column_mass=column_mass)
    one_hot = torch.nn.functional.one_hot(task.support_labels, 6).double()
    factor = 1.0 if column_mass is None else column_mass / (15 / 6)
    for t in range(task.n_tasks):
        w = class_means(task)[t]
        for _ in range(3):
            plan = factor * pots_plan(task, t, w)
            weights, points = torch.cat([one_hot[t], plan]), torch.cat([task.support[t], task.query[t]])
            w = w + 0.2 * (weights.T @ points / weights.sum(0).unsqueeze(-1) - w)
        torch.testing.assert_close(solution.prototypes[t], w, atol=1e-7, rtol=0)
