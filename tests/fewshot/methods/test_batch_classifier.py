"""The model of `BatchClassifier` as a method; what every method promises is checked in tests/contract."""

import numpy as np
import torch

import handful_fewshot as fewshot
from handful.datasets import load_clinc150


def tasks(shots: int, present: int, n_tasks: int, seed: int = 0):
    """Tasks that share a support of clinc150's 150 classes, and their truth."""
    bank, rng = load_clinc150(), np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(150)]
    support = np.concatenate([of_class[:shots] for of_class in rows])
    queries = []
    for _ in range(n_tasks):
        pool = np.concatenate([rows[k][shots:] for k in rng.choice(150, present, replace=False)])
        queries.append(rng.choice(pool, 75, replace=False))
    task = fewshot.TaskBatch(
        torch.from_numpy(bank.take(support).astype(np.float32)).unsqueeze(0),
        torch.from_numpy(bank.labels[support].astype(np.int64)).unsqueeze(0),
        torch.from_numpy(np.stack([bank.take(rows) for rows in queries]).astype(np.float32)),
        150,
    )
    return fewshot.transform("l2", task), torch.from_numpy(np.stack([bank.labels[rows] for rows in queries]))


def accuracy(method: str, task: fewshot.TaskBatch, truth: torch.Tensor) -> float:
    return 100 * float((fewshot.solve(method, task).predictions == truth).double().mean())


def test_few_classes_present_gain_much_over_each_item_alone():
    task, truth = tasks(5, 5, 10)
    assert accuracy("batch_classifier", task, truth) > accuracy("nearest_prototype", task, truth) + 5


def test_all_classes_present_lose_nothing():
    task, truth = tasks(5, 150, 10)
    assert accuracy("batch_classifier", task, truth) > accuracy("nearest_prototype", task, truth) - 1
