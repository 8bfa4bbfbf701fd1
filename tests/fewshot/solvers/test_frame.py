"""Frame: centring, proportions, the data's description length."""

import torch

from handful.fewshot import TaskBatch
from handful.fewshot.solvers.frame import Frame, data_fit
from tests.tasks_at_hand import ragged_tasks, random_task


def test_the_support_mean_is_the_origin():
    frame = Frame(random_task(0))
    torch.testing.assert_close(frame.support.sums.sum(-2), torch.zeros(3, 8, dtype=torch.float64))


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


def test_the_geometry_is_chosen_by_cost_or_by_name():
    frame = Frame(random_task(0, dim=64))
    assert type(frame.space("auto", 100)).__name__ == "GramSpace"
    assert type(frame.space("feature", 100)).__name__ == "FeatureSpace"
    wide = Frame(random_task(0, dim=2, n_query=200))
    assert type(wide.space("auto", 100)).__name__ == "FeatureSpace"
