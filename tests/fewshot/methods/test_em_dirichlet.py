import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.em_dirichlet import log_dirichlet
from tests.tasks_at_hand import random_task


def test_the_density_is_that_of_a_dirichlet_distribution():
    a = torch.tensor([[[0.5, 2.0, 3.0], [4.0, 1.0, 0.1]]], dtype=torch.float64)
    p = torch.tensor([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], dtype=torch.float64)
    expected = torch.stack([torch.distributions.Dirichlet(a[0, k]).log_prob(p[0]) for k in range(2)], -1)
    torch.testing.assert_close(log_dirichlet(p.log(), a)[0], expected)


def by_hand(support, labels, query, n_classes, n_iter, tau, power, *, examples=False, given=None):
    """The iterations with the maximum of the likelihood found by Newton's method, not by bounds."""

    def norm(x):
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    from scipy.special import digamma, gammaln, polygamma

    means = np.stack([support[labels == k].mean(0) for k in range(n_classes)])
    names = norm(means if given is None else given)
    p = np.exp(tau * norm(query) @ names.T)
    p /= p.sum(1, keepdims=True)
    u = p.copy()
    y, of_examples = np.zeros((0, n_classes)), np.zeros((0, n_classes))
    if examples:
        y, cosines = np.eye(n_classes)[labels], norm(support) @ names.T
        for n, k in enumerate(labels if given is None else ()):
            cosines[n, k] = norm(support[n]) @ norm(support[(labels == k) & (np.arange(len(labels)) != n)].mean(0))
        of_examples = np.exp(tau * cosines)
        of_examples /= of_examples.sum(1, keepdims=True)
    points = np.concatenate([of_examples, p])
    for _ in range(n_iter):
        share, weights = u.mean(0), np.concatenate([y, u])
        log_u = np.zeros_like(u)
        for k in range(n_classes):
            s = (weights[:, k, None] * np.log(points)).sum(0) / weights[:, k].sum()
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
    if examples:
        return u
    named = np.zeros_like(u)
    for k in range(n_classes):
        named[:, (u[:, k, None] * p).sum(0).argmax()] += u[:, k]
    return named


@pytest.mark.parametrize(("n_classes", "expected", "power"), [(3, 5, 1), (4, 2, 2)])
@pytest.mark.parametrize("shots", [1, 6])
def test_it_is_what_the_equations_say(n_classes, expected, power, shots):
    task = random_task(3, n_tasks=2, n_classes=n_classes, n_query=40, shots=shots, spread=1.5)
    kind = {"examples": shots > 1}
    solution = fewshot.solve(
        "em_dirichlet", task, temperature=2.0, expected_classes=expected, max_iter=3, max_bounds=2000, **kind
    )
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        u = by_hand(*arrays, n_classes, 3, 2.0, power, **kind)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.tensor(u), atol=2e-2, rtol=0)


def test_an_example_that_is_alone_in_its_class_does_not_count():
    """With one example per class nothing can be left out, and the classes are those of the names."""
    task = random_task(4, shots=1)
    few = fewshot.solve("em_dirichlet", task, examples=True, max_iter=1, temperature=2.0)
    other = task.with_features(3 * task.support, task.query)
    again = fewshot.solve("em_dirichlet", other, examples=True, max_iter=1, temperature=2.0)
    torch.testing.assert_close(few.log_assignments, again.log_assignments)


@pytest.mark.parametrize("shots", [1, 4])
@pytest.mark.parametrize("examples", [False, True])
def test_with_names_it_is_the_published_one(shots, examples):
    """A made-up pair of spaces; with few shots an example is described by the names, even one alone in its class."""
    task = random_task(3, n_tasks=2, n_classes=4, n_query=40, shots=shots, spread=1.5)
    names = task.support[:, :4] + torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(1)).double()
    named = fewshot.TaskBatch(task.support, task.support_labels, task.query, 4, names=names)
    options = {"temperature": 2.0, "expected_classes": 2, "max_iter": 3, "max_bounds": 2000, "examples": examples}
    found = fewshot.solve("em_dirichlet", named, **options)
    for t in range(2):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        u = by_hand(*arrays, 4, 3, 2.0, 2, examples=examples, given=names[t].numpy())
        torch.testing.assert_close(found.log_assignments[t].exp(), torch.tensor(u), atol=2e-2, rtol=0)
