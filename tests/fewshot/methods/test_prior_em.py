"""EM for the proportions: an independent referee, PADDLE with frozen prototypes, the likelihood."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import handful_fewshot as fewshot
from handful_fewshot import TaskBatch
from tests.fewshot.methods.test_nearest_prototype import class_means
from tests.tasks_at_hand import random_task


def posteriors(task: TaskBatch, t: int) -> np.ndarray:
    """What the nearest-prototype classifier says about each query, under a uniform prior."""
    squares = torch.cdist(task.query, class_means(task))[t].square().numpy()
    likelihoods = np.exp(-0.5 * (squares - squares.min(1, keepdims=True)))
    return likelihoods / likelihoods.sum(1, keepdims=True)


def reweighted(posterior: np.ndarray, n_iter: int) -> np.ndarray:
    """Saerens et al., equations as printed: posteriors times the ratio of new to old priors, renormalised."""
    old = np.full(posterior.shape[1], 1 / posterior.shape[1])
    prior = old
    for _ in range(n_iter):
        ratio = posterior * (prior / old)
        current = ratio / ratio.sum(1, keepdims=True)
        prior = current.mean(0)
    return current


@given(seed=st.integers(0, 10_000), n_iter=st.integers(1, 60))
def test_it_is_saerens_em(seed, n_iter):
    task = random_task(seed, spread=2.0)
    solution = fewshot.solve("prior_em", task, max_iter=n_iter, tol=0.0)
    for t in range(task.n_tasks):
        expected = torch.from_numpy(reweighted(posteriors(task, t), n_iter))
        torch.testing.assert_close(solution.log_assignments[t].exp(), expected, atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(solution.proportions[t], expected.mean(0), atol=1e-9, rtol=1e-7)
