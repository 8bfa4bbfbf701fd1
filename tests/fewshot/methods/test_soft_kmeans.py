"""Soft K-means: independent iteration, monotone objective, first step is the nearest prototype."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from handful import fewshot
from tests.fewshot.oracles.em import em
from tests.tasks_at_hand import random_task


def test_independent_iteration_without_proportions():
    task = random_task(21, n_tasks=1)
    arrays = (task.support[0].numpy(), task.support_labels[0].numpy(), task.query[0].numpy())
    trajectory = list(em(*arrays, 6, 30, power=0.0))
    for n in (1, 5, 30):
        solution = fewshot.solve("soft_kmeans", task, max_iter=n, tol=0.0)
        np.testing.assert_allclose(solution.log_assignments[0].exp(), trajectory[n - 1][0], atol=1e-10)
        np.testing.assert_allclose(solution.prototypes[0], trajectory[n - 1][2], atol=1e-10)


@given(seed=st.integers(0, 10_000))
def test_the_objective_never_rises(seed):
    solution = fewshot.solve("soft_kmeans", random_task(seed), max_iter=40, tol=0.0, record=True)
    assert solution.trace.observed.diff(dim=-1).max() <= 1e-9
    assert (solution.description_length.partition == 0).all()
