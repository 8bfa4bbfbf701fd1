"""iLPC: its graph and its training against other implementations, the procedure written out, and what balance does."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot.methods.ilpc import average_losses, graph
from handful_fewshot.numerics.vectors import unit
from tests.tasks_at_hand import random_task


def graph_by_loops(x: np.ndarray, n_neighbours: int) -> np.ndarray:
    weights = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        others = sorted((j for j in range(len(x)) if j != i), key=lambda j: -(x[i] @ x[j]))
        for j in others[:n_neighbours]:
            weights[i, j] += max(x[i] @ x[j], 0) ** 3
            weights[j, i] += max(x[i] @ x[j], 0) ** 3
    degrees = weights.sum(0)
    degrees[degrees == 0] = 1
    return weights / np.sqrt(np.outer(degrees, degrees))


def propagated(x: np.ndarray, y: np.ndarray, n_neighbours: int, alpha: float) -> np.ndarray:
    """Let labels spread step by step, `F ← α𝒲F + Y`."""
    w, f = graph_by_loops(x, n_neighbours), y
    for _ in range(400):
        f = alpha * w @ f + y
    return f


def losses_by_torch(points: torch.Tensor, labels: torch.Tensor, start: torch.Tensor, n_steps: int) -> torch.Tensor:
    """Train a layer of torch with its own optimizer."""
    layer = torch.nn.Linear(points.shape[1], len(start)).double()
    with torch.no_grad():
        layer.weight.copy_(start)
        layer.bias.zero_()
    descent = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    total = torch.zeros(len(points), dtype=torch.float64)
    for _ in range(n_steps):
        loss = torch.nn.functional.cross_entropy(layer(points), labels, reduction="none")
        descent.zero_grad()
        loss.mean().backward()
        descent.step()
        total += loss.detach()
    return total / n_steps


def swept(p: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Sinkhorn's sweeps; a class whose share is used up gets next to nothing."""
    p, columns = np.maximum(p, 1e-36), np.maximum(columns, 1e-12)
    columns = columns * (len(p) / columns.sum())
    for _ in range(5000):
        p = p * (columns / p.sum(0))
        p = p / p.sum(1, keepdims=True)
    return p


def written_out(support, labels, query, n_classes: int, balanced: bool) -> tuple[np.ndarray, int]:
    """Run the whole procedure, one loop after the other."""
    x = np.concatenate([support, query])
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    label = {n: int(k) for n, k in enumerate(labels)}
    columns, found, n_rounds = np.full(n_classes, len(query) / n_classes), np.zeros((len(x), n_classes)), 0
    while len(label) < len(x):
        n_rounds += 1
        y = np.zeros((len(x), n_classes))
        for n, k in label.items():
            y[n, k] = 1
        waiting = [n for n in range(len(x)) if n not in label]
        f = propagated(x, y, 5, 0.8)[waiting]
        p = (f / f.sum(1, keepdims=True)) ** 3
        found[waiting] = swept(p, columns) if balanced else p / p.sum(1, keepdims=True)
        everyone = [label.get(n, found[n].argmax()) for n in range(len(x))]
        means = unit(torch.tensor(y.T @ x))
        losses = losses_by_torch(torch.tensor(x), torch.tensor(everyone), means, 50)
        of_class = [[n for n in waiting if everyone[n] == k] for k in range(n_classes)]
        chosen = [n for own in of_class for n in sorted(own, key=lambda n: losses[n])[:2]]
        if len(chosen) < 5:
            break
        for n in chosen:
            label[n] = int(everyone[n])
            columns[everyone[n]] -= 1
    return found[len(support) :], n_rounds


def test_the_graph_is_that_of_loops():
    points = unit(torch.cat([random_task(0).support[0], random_task(0).query[0]]))
    for n_neighbours in (1, 4, 100):
        expected = torch.tensor(graph_by_loops(points.numpy(), n_neighbours))
        torch.testing.assert_close(graph(points, n_neighbours), expected)


def test_points_without_neighbours_and_with_too_many():
    """A zero vector and one that points away have no edges; of four equal points none is preferred."""
    points = torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    expected = torch.zeros(6, 6, dtype=torch.float64)
    expected[:4, :4] = (1 - torch.eye(4)) / 3
    torch.testing.assert_close(graph(points, 1), expected)


def test_losses_are_those_of_torchs_descent():
    task = random_task(1)
    points, labels = unit(task.support[0]), task.support_labels[0]
    start = unit(torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(average_losses(points, labels, start, 40), losses_by_torch(points, labels, start, 40))


@pytest.mark.parametrize("balanced", [False, True])
def test_it_is_the_procedure_written_out(balanced):
    task = random_task(2, n_query=24, n_present=6, spread=2.0)
    options = {"n_neighbours": 5, "step": 2, "training_steps": 50, "balanced": balanced}
    solution = fewshot.solve("ilpc", task, **options)
    for t in range(task.n_tasks):
        arrays = (task.support[t].numpy(), task.support_labels[t].numpy(), task.query[t].numpy())
        found, n_rounds = written_out(*arrays, 6, balanced)
        torch.testing.assert_close(solution.log_assignments[t].exp(), torch.tensor(found), atol=1e-5, rtol=0)
        assert solution.n_iter[t] == n_rounds
    assert solution.n_iter.max() > 2


def test_only_balance_gives_every_class_its_share():
    task = random_task(3, n_present=1, n_query=30)
    free, forced = (
        fewshot.solve("ilpc", task, balanced=balanced, training_steps=10).proportions for balanced in (False, True)
    )
    assert (free.amax(-1) > 0.8).all()
    assert (forced.amax(-1) < 0.4).all()
