import numpy as np
import pytest
import torch

from handful import fewshot
from tests.fewshot.methods.test_transclip import names_and_graph, norm
from tests.tasks_at_hand import random_task


def by_hand(support, labels, query, n_classes, n_iter, alpha, tau, r=3):
    """The equations, one query and one class at a time."""
    names, x, y_hat, w = names_and_graph(support, labels, query, n_classes, tau, r)
    m = len(x)
    first = sum(y_hat[n, k] * (x[n] - names[k]) ** 2 for n in range(m) for k in range(n_classes)) / m
    mu, sigma, z = names.copy(), np.tile(first, (n_classes, 1)), y_hat.copy()
    for iteration in range(n_iter + 1):
        log_density = np.zeros((m, n_classes))
        for n in range(m):
            for k in range(n_classes):
                log_density[n, k] = -0.5 * ((x[n] - mu[k]) ** 2 / sigma[k] + np.log(sigma[k])).sum()
        for _ in range(5):
            exponent = (log_density + (50 / (2 * r)) * (w + w.T) @ z) / 50
            new = y_hat * np.exp(exponent - exponent.max(1, keepdims=True))
            z = new / new.sum(1, keepdims=True)
        if iteration < n_iter:
            for k in range(n_classes):
                beta = (z.argmax(1) == k).sum()
                beta = beta / (alpha + beta)
                mu[k] = norm(beta * norm((z[:, k, None] * x).sum(0)) + (1 - beta) * names[k])
                within = (z[:, k, None] * (x - mu[k]) ** 2).sum(0) / z[:, k].sum()
                sigma[k] = beta * within + (1 - beta) * (first + (names[k] - mu[k]) ** 2)
    return z, mu


@pytest.mark.parametrize(("shots", "tau", "alpha", "n_iter"), [(1, 10.0, 1.0, 3), (3, 2.0, 4.0, 10)])
def test_it_is_what_the_equations_say(shots, tau, alpha, n_iter):
    task = random_task(3, n_tasks=2, shots=shots)
    solution = fewshot.solve("stata", task, temperature=tau, anchor_weight=alpha, max_iter=n_iter)
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        z, mu = by_hand(*arrays, task.n_classes, n_iter, alpha, tau)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.tensor(z), atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(solution.prototypes[t], torch.tensor(mu))
