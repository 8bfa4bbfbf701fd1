"""Frame: what is recorded, and a support that tasks shared; the contract has the rest."""

import torch

import handful_fewshot as fewshot
from handful_fewshot import TaskBatch
from tests.tasks_at_hand import random_task


def test_recording_changes_no_answer():
    task = random_task(1)
    a, b = (fewshot.solve("paddle", task, record=record) for record in (True, False))
    torch.testing.assert_close(a.log_assignments.exp(), b.log_assignments.exp(), atol=1e-9, rtol=0)
    assert b.trace is None


def test_labels_that_tasks_share_are_those_of_each_support():
    """A support that tasks shared has its own features in each task after a transform by the task's range."""
    task = random_task(2)
    shared = TaskBatch(task.support[:1], task.support_labels[:1], task.query, task.n_classes)
    together = fewshot.solve("paddle", fewshot.transform("range_scale", shared))
    for t in range(task.n_tasks):
        alone = fewshot.solve("paddle", fewshot.transform("range_scale", shared.select(slice(t, t + 1))))
        torch.testing.assert_close(together.objective[t], alone.objective[0])
