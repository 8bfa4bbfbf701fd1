"""TransCLIP and StatA: the equations, one query and one class at a time."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from tests.tasks_at_hand import random_task


def norm(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def names_and_graph(support, labels, query, n_classes, tau, r):
    """Names, items, what the names say of each item, and the graph of nearest neighbours."""
    names = norm(np.stack([support[labels == k].mean(0) for k in range(n_classes)]))
    x = norm(query)
    y_hat = np.exp(tau * x @ names.T)
    w = np.zeros((len(x), len(x)))
    for n in range(len(x)):
        others = sorted((o for o in range(len(x)) if o != n), key=lambda o: -x[n] @ x[o])
        for o in others[:r]:
            w[n, o] = max(x[n] @ x[o], 0)
    return names, x, y_hat / y_hat.sum(1, keepdims=True), w


def transclip_by_hand(support, labels, query, n_classes, n_iter, tau, r=3):
    """The equations, one query and one class at a time."""
    _, x, y_hat, w = names_and_graph(support, labels, query, n_classes, tau, r)
    m, d = x.shape
    mu = np.zeros((n_classes, d))
    for k in range(n_classes):
        for n in np.argsort(-y_hat[:, k])[:8]:
            mu[k] += y_hat[n, k] * x[n]
    mu, sigma, z = norm(mu), np.full(d, 1 / d), y_hat.copy()
    for iteration in range(n_iter + 1):
        log_density = np.array(
            [[-0.5 * ((x[n] - mu[k]) ** 2 / sigma).sum() for k in range(n_classes)] for n in range(m)]
        )
        for _ in range(5):
            new = y_hat * np.exp((log_density + (50 / (2 * r)) * (w + w.T) @ z) / 50)
            z = new / new.sum(1, keepdims=True)
        if iteration < n_iter:
            mu = norm(np.stack([(z[:, k, None] * x).sum(0) for k in range(n_classes)]))
            sigma = sum(z[n, k] * (x[n] - mu[k]) ** 2 for n in range(m) for k in range(n_classes)) / m
    return z, mu


def few_shot_by_hand(support, labels, query, names, n_iter, tau, gamma, name_weight, r=3):
    """The few-shot equations, one point and one class at a time."""
    n_classes = len(names)
    _, x, _, w = names_and_graph(support, labels, query, n_classes, tau, r)
    s = norm(support)
    y_hat = np.exp(tau * x @ norm(names).T)
    y_hat /= y_hat.sum(1, keepdims=True)
    m, d = x.shape
    of_query, of_shot = 1 / m, 50 * gamma / len(s)
    mu = norm(np.stack([sum(s[i] for i in range(len(s)) if labels[i] == k) for k in range(n_classes)]))
    sigma, z = np.full(d, 1 / d), y_hat.copy()
    for iteration in range(n_iter + 1):
        log_density = np.array(
            [[-0.5 * ((x[n] - mu[k]) ** 2 / sigma).sum() for k in range(n_classes)] for n in range(m)]
        )
        for _ in range(5):
            exponent = (log_density + (50 / (2 * r)) * (w + w.T) @ z) / 50
            new = y_hat**name_weight * np.exp(exponent - exponent.max(1, keepdims=True))
            z = new / new.sum(1, keepdims=True)
        if iteration < n_iter:
            sums, squares, mass = np.zeros((n_classes, d)), np.zeros(d), 0.0
            for k in range(n_classes):
                sums[k] = of_query * (z[:, k, None] * x).sum(0) + of_shot * s[labels == k].sum(0)
            mu = norm(sums)
            for k in range(n_classes):
                squares += of_query * (z[:, k, None] * (x - mu[k]) ** 2).sum(0)
                squares += of_shot * ((s[labels == k] - mu[k]) ** 2).sum(0)
                mass += of_query * z[:, k].sum() + of_shot * (labels == k).sum()
            sigma = squares / mass
    return z, mu


def stata_by_hand(support, labels, query, n_classes, n_iter, tau, r=3, alpha=4.0):
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


@pytest.mark.parametrize(("shots", "tau", "n_iter"), [(1, 10.0, 3), (3, 2.0, 10)])
@pytest.mark.parametrize(
    ("method", "by_hand", "options"),
    [("transclip", transclip_by_hand, {}), ("stata", stata_by_hand, {"anchor_weight": 4.0})],
)
def test_they_are_what_the_equations_say(method, by_hand, options, shots, tau, n_iter):
    task = random_task(3, n_tasks=2, shots=shots)
    solution = fewshot.solve(method, task, temperature=tau, max_iter=n_iter, **options)
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        z, mu = by_hand(*arrays, task.n_classes, n_iter, tau)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.tensor(z), atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(solution.prototypes[t], torch.tensor(mu))


@pytest.mark.parametrize(("gamma", "name_weight"), [(0.02, None), (0.2, 1.5), (0.0, None)])
def test_with_few_shots_it_is_what_the_equations_say(gamma, name_weight):
    """A made-up pair of spaces: names lie in directions of their own, as texts do beside images."""
    task = random_task(3, n_tasks=2)
    names = task.support[:, :6] + 2 * torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1)).double()
    named = fewshot.TaskBatch(task.support, task.support_labels, task.query, task.n_classes, names=names)
    options = {"examples": True, "example_weight": gamma, "name_weight": name_weight}
    found = fewshot.solve("transclip", named, temperature=8.0, max_iter=4, **options)
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy(), names[t].numpy())
        z, mu = few_shot_by_hand(*arrays, 4, 8.0, gamma, 0.5 if name_weight is None else name_weight)
        torch.testing.assert_close(found.log_assignments[t].exp(), torch.tensor(z), atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(found.prototypes[t], torch.tensor(mu))


def test_examples_of_great_weight_hold_the_means():
    task = random_task(4)
    found = fewshot.solve("transclip", task, examples=True, example_weight=1e9)
    points = torch.nn.functional.normalize(task.support, dim=-1)
    for t in range(3):
        sums = torch.stack([points[t][task.support_labels[t] == k].sum(0) for k in range(6)])
        torch.testing.assert_close(found.prototypes[t], torch.nn.functional.normalize(sums, dim=-1), atol=1e-7, rtol=0)
