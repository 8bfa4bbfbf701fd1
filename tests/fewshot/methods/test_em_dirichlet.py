import numpy as np
import pytest
import torch

from handful import fewshot
from handful.fewshot.methods.em_dirichlet import log_dirichlet
from tests.tasks_at_hand import random_task


def test_the_density_is_that_of_a_dirichlet_distribution():
    a = torch.tensor([[[0.5, 2.0, 3.0], [4.0, 1.0, 0.1]]], dtype=torch.float64)
    p = torch.tensor([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], dtype=torch.float64)
    expected = torch.stack([torch.distributions.Dirichlet(a[0, k]).log_prob(p[0]) for k in range(2)], -1)
    torch.testing.assert_close(log_dirichlet(p.log(), a)[0], expected)


def by_hand(support, labels, query, n_classes, n_iter, tau, power):
    """The iterations with the maximum of the likelihood found by Newton's method, not by bounds."""

    def norm(x):
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    from scipy.special import digamma, gammaln, polygamma

    names = norm(np.stack([support[labels == k].mean(0) for k in range(n_classes)]))
    p = np.exp(tau * norm(query) @ names.T)
    p /= p.sum(1, keepdims=True)
    u = p.copy()
    for _ in range(n_iter):
        share = u.mean(0)
        log_u = np.zeros_like(u)
        for k in range(n_classes):
            s = (u[:, k, None] * np.log(p)).sum(0) / u[:, k].sum()
            a = np.ones(n_classes)
            for _ in range(200):
                gradient = digamma(a.sum()) - digamma(a) + s
                q, z = -polygamma(1, a), polygamma(1, a.sum())
                b = (gradient / q).sum() / (1 / z + (1 / q).sum())
                move = (gradient - b) / q
                while ((a - move) <= 0).any():
                    move = move / 2
                a = a - move
            log_u[:, k] = gammaln(a.sum()) - gammaln(a).sum() + ((a - 1) * np.log(p)).sum(1) + power * np.log(share[k])
        u = np.exp(log_u - log_u.max(1, keepdims=True))
        u /= u.sum(1, keepdims=True)
    named = np.zeros_like(u)
    for k in range(n_classes):
        named[:, (u[:, k, None] * p).sum(0).argmax()] += u[:, k]
    return named


@pytest.mark.parametrize(("n_classes", "expected", "power"), [(3, 5, 1), (4, 2, 2)])
def test_it_is_what_the_equations_say(n_classes, expected, power):
    task = random_task(3, n_tasks=2, n_classes=n_classes, n_query=40, shots=1, spread=1.5)
    solution = fewshot.solve(
        "em_dirichlet", task, temperature=2.0, expected_classes=expected, max_iter=3, max_bounds=2000
    )
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        u = by_hand(*arrays, n_classes, 3, 2.0, power)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.tensor(u), atol=2e-2, rtol=0)
