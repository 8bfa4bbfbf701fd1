"""Random tasks for tests: small, but with everything that can differ between tasks."""

from __future__ import annotations

import numpy as np
import torch

from handful_fewshot import TaskBatch


def random_task(
    seed: int,
    *,
    n_tasks: int = 3,
    n_classes: int = 6,
    shots: int = 3,
    n_query: int = 15,
    dim: int = 8,
    n_present: int = 3,
    spread: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> TaskBatch:
    """Gaussian classes, of which a few are present in each query."""
    rng = np.random.default_rng(seed)
    centres = 2 * rng.standard_normal((n_tasks, n_classes, dim))
    labels = np.stack([rng.permutation(np.repeat(np.arange(n_classes), shots)) for _ in range(n_tasks)])
    truth = np.stack([rng.choice(rng.permutation(n_classes)[:n_present], n_query) for _ in range(n_tasks)])
    rows = np.arange(n_tasks)[:, None]
    support = centres[rows, labels] + spread * rng.standard_normal((n_tasks, n_classes * shots, dim))
    query = centres[rows, truth] + spread * rng.standard_normal((n_tasks, n_query, dim))
    return TaskBatch(torch.tensor(support, dtype=dtype), labels, torch.tensor(query, dtype=dtype), n_classes)


def ragged_tasks(seed: int, n_classes: int = 5, dim: int = 6) -> list[TaskBatch]:
    """Tasks with unequal shots, within a task and between tasks, and unequal query sizes."""
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(4):
        shots = rng.integers(1, 5, n_classes)
        labels = rng.permutation(np.repeat(np.arange(n_classes), shots))
        centres = 2 * rng.standard_normal((n_classes, dim))
        support = centres[labels] + rng.standard_normal((len(labels), dim))
        query = centres[rng.integers(0, 2, rng.integers(1, 12))]
        tasks.append(TaskBatch.single(support, labels, query + rng.standard_normal(query.shape), n_classes))
    return tasks
