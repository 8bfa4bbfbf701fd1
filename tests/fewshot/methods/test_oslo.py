import math

import pytest
import torch

import handful_fewshot as fewshot
from tests.tasks_at_hand import random_task


def cosine(x: list[float], y: list[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def by_hand(support, labels, query, n_classes, n_steps, lambda_s=0.05, lambda_z=0.1):
    """The paper's equations, one number at a time."""
    dim = len(query[0])
    own = [[x for x, y in zip(support, labels, strict=True) if y == k] for k in range(n_classes)]
    w = [[sum(x[j] for x in own[k]) / len(own[k]) for j in range(dim)] for k in range(n_classes)]
    z = [[1 / n_classes] * n_classes for _ in query]
    for _ in range(n_steps):
        similar = [[cosine(x, w[k]) for k in range(n_classes)] for x in query]
        xi = [
            1 / (1 + math.exp(-sum(a * b for a, b in zip(z_n, row, strict=True)) / lambda_s))
            for z_n, row in zip(z, similar, strict=True)
        ]
        z = []
        for xi_n, row in zip(xi, similar, strict=True):
            powers = [math.exp(xi_n * value / lambda_z) for value in row]
            z.append([value / sum(powers) for value in powers])
        for k in range(n_classes):
            mass = len(own[k]) + sum(xi_n * z_n[k] for xi_n, z_n in zip(xi, z, strict=True))
            w[k] = [
                (
                    sum(x[j] for x in own[k])
                    + sum(xi_n * z_n[k] * x[j] for xi_n, z_n, x in zip(xi, z, query, strict=True))
                )
                / mass
                for j in range(dim)
            ]
    closest = [max(range(n_classes), key=lambda k: cosine(x, w[k])) for x in query]
    return [1 - value for value in xi], w, closest


@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_it_is_what_the_equations_say(n_steps):
    task = random_task(3, n_tasks=2, spread=1.5)
    solution = fewshot.solve("oslo", task, max_iter=n_steps)
    for t in range(2):
        lists = (task.support[t].tolist(), task.support_labels[t].tolist(), task.query[t].tolist())
        unknown, prototypes, closest = by_hand(*lists, task.n_classes, n_steps)
        assert solution.unknown[t].tolist() == pytest.approx(unknown, abs=1e-12)
        assert solution.predictions[t].tolist() == closest
        torch.testing.assert_close(solution.prototypes[t], torch.tensor(prototypes, dtype=torch.float64))
