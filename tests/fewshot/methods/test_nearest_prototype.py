"""Nearest prototype: what it says, and that it is where other methods start."""

import torch

import handful_fewshot as fewshot
from tests.tasks_at_hand import random_task


def class_means(task: fewshot.TaskBatch) -> torch.Tensor:
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).double()
    return one_hot.mT @ task.support / one_hot.sum(1).unsqueeze(-1)


def test_every_query_goes_to_the_nearest_support_mean():
    task = random_task(0, spread=2.0)
    solution = fewshot.solve("nearest_prototype", task)
    torch.testing.assert_close(solution.prototypes, class_means(task))
    distances = torch.cdist(task.query, class_means(task))
    assert torch.equal(solution.predictions, distances.argmin(-1))
    torch.testing.assert_close(solution.log_assignments, (-0.5 * distances.square()).log_softmax(-1))
