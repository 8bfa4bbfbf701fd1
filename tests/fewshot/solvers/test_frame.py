"""Frame: the data's description length, and what an iteration ends with."""

import torch

from handful import fewshot
from handful.fewshot import TaskBatch
from handful.fewshot.solvers.frame import Frame, data_fit
from tests.tasks_at_hand import ragged_tasks, random_task


def test_data_fit_is_its_definition_with_masks():
    tasks = ragged_tasks(1)
    padded = TaskBatch.pad(tasks)
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(4, padded.query.shape[1], 5, generator=generator, dtype=torch.float64).softmax(-1)
    w = torch.randn(4, 5, 6, generator=generator, dtype=torch.float64)
    fits = data_fit(Frame(padded), u, w)
    for t, task in enumerate(tasks):
        q = task.query.shape[1]
        of_query = (u[t, :q] * 0.5 * torch.cdist(task.query[0], w[t]).square()).sum()
        of_support = 0.5 * (task.support[0] - w[t][task.support_labels[0]]).square().sum()
        torch.testing.assert_close(fits[t], of_query + of_support)


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
