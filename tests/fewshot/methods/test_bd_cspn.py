"""BD-CSPN: labels by cosine of the moved query; the public code's by distance of the query where it was."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful_fewshot import TaskBatch
from handful_fewshot.methods.bd_cspn import rectify
from tests.tasks_at_hand import random_task


def test_the_moved_query_is_labelled_by_cosine():
    task = random_task(0, spread=2.0)
    solution = fewshot.solve("bd_cspn", task)
    prototypes, moved = rectify(task, 10.0, public_code=False)
    torch.testing.assert_close(solution.prototypes, prototypes)
    cosines = torch.nn.functional.cosine_similarity(moved.unsqueeze(2), prototypes.unsqueeze(1), dim=-1)
    torch.testing.assert_close(solution.log_assignments, (10 * cosines).log_softmax(-1))


def test_in_public_code_the_query_is_labelled_by_distance_where_it_was():
    task = random_task(1, spread=2.0)
    solution = fewshot.solve("bd_cspn", task, sharpness=50.0, public_code=True)
    prototypes, _ = rectify(task, 50.0, public_code=True)
    torch.testing.assert_close(solution.prototypes, prototypes)
    assert torch.equal(solution.predictions, torch.cdist(task.query, prototypes).argmin(-1))


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
    prototypes, _ = rectify(task, sharpness, public_code=public_code)
    for t in range(task.n_tasks):
        expected = torch.from_numpy(by_hand(task, t, sharpness, public_code))
        torch.testing.assert_close(prototypes[t], expected)
