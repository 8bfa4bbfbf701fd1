"""alternate: what it wraps agrees with what the loop did."""

import torch

from handful import fewshot
from tests.tasks_at_hand import random_task


def test_the_solution_belongs_to_the_last_assignments():
    task = random_task(0)
    solution = fewshot.solve("paddle", task, max_iter=6, tol=0.0)
    u = solution.log_assignments.exp()
    torch.testing.assert_close(solution.proportions, u.mean(1))
    one_hot = torch.nn.functional.one_hot(task.support_labels, 6).double()
    weights, points = torch.cat([one_hot, u], 1), torch.cat([task.support, task.query], 1)
    expected = weights.mT @ points / weights.sum(1).unsqueeze(-1)
    torch.testing.assert_close(solution.prototypes, expected)


def test_recording_changes_no_answer():
    task = random_task(1)
    a, b = (fewshot.solve("paddle", task, record=record) for record in (True, False))
    torch.testing.assert_close(a.log_assignments.exp(), b.log_assignments.exp(), atol=1e-9, rtol=0)
    assert b.trace is None
