import numpy as np
import pytest
import torch

from handful import fewshot
from handful.fewshot.methods.em_dirichlet import bound_step, log_dirichlet
from tests.tasks_at_hand import random_task


def statistics_of(parameters: torch.Tensor, n: int = 40_000) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.distributions.Dirichlet(parameters).sample((n,)).log().mean(0)


def test_the_density_is_that_of_a_dirichlet_distribution():
    a = torch.tensor([[[0.5, 2.0, 3.0], [4.0, 1.0, 0.1]]], dtype=torch.float64)
    p = torch.tensor([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], dtype=torch.float64)
    expected = torch.stack([torch.distributions.Dirichlet(a[0, k]).log_prob(p[0]) for k in range(2)], -1)
    torch.testing.assert_close(log_dirichlet(p.log(), a)[0], expected)


def negative_log_likelihood(a: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return torch.lgamma(a).sum(-1) - torch.lgamma(a.sum(-1)) - ((a - 1) * s).sum(-1)


def test_each_bound_lowers_the_negative_log_likelihood_and_the_end_is_its_minimum():
    true = torch.tensor([[0.3, 2.0, 5.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    s = torch.stack([statistics_of(parameters) for parameters in true])
    a, last = torch.ones_like(s), negative_log_likelihood(torch.ones_like(s), s)
    for _ in range(3000):
        a, _ = bound_step(s, a)
        value = negative_log_likelihood(a, s)
        assert (value <= last + 1e-12).all()
        last = value
    # At the minimum the derivative vanishes.
    torch.testing.assert_close(torch.digamma(a) - torch.digamma(a.sum(-1, keepdim=True)), s, atol=1e-5, rtol=0)
    torch.testing.assert_close(a, true, atol=0.1, rtol=0.05)


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
