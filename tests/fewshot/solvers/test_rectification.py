"""Rectification against loops over points and classes, in both weightings."""

import numpy as np
import pytest
import torch

from handful.fewshot import TaskBatch
from handful.fewshot.solvers.rectification import rectify
from tests.tasks_at_hand import random_task


def by_hand(task: TaskBatch, t: int, sharpness: float, public_code: bool) -> np.ndarray:
    support, labels = task.support[t].numpy(), task.support_labels[t].numpy()
    query = task.query[t].numpy() + support.mean(0) - task.query[t].numpy().mean(0)
    means = np.stack([support[labels == k].mean(0) for k in range(task.n_classes)])
    points = np.concatenate([support, query])
    cosine = (points @ means.T) / np.linalg.norm(points, axis=1)[:, None] / np.linalg.norm(means, axis=1)
    nearest = cosine.argmax(1)
    if public_code:
        weights = np.exp(sharpness * cosine) / np.exp(sharpness * cosine).sum(1, keepdims=True)
        if len(set(nearest)) < task.n_classes:
            return means
        return np.stack([(weights[nearest == k, k][:, None] * points[nearest == k]).mean(0) for k in range(len(means))])
    nearest[: len(labels)] = labels
    weights = np.exp(sharpness * cosine)
    return np.stack(
        [np.average(points[nearest == k], axis=0, weights=weights[nearest == k, k]) for k in range(len(means))]
    )


@pytest.mark.parametrize("public_code", [True, False])
@pytest.mark.parametrize("sharpness", [0.0, 10.0])
def test_prototypes_are_those_of_a_loop(sharpness, public_code):
    task = random_task(0, spread=2.0)
    rectified = rectify(task, sharpness, public_code=public_code)
    for t in range(task.n_tasks):
        expected = torch.from_numpy(by_hand(task, t, sharpness, public_code))
        torch.testing.assert_close(rectified.prototypes[t], expected)
