"""Frame: centring, proportions, the data's description length."""

import torch

from handful import TaskBatch
from handful.inference.frame import Frame, Labels, data_fit
from handful.numerics.simplex import softmax
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


def test_labels_written_block_by_block_are_those_of_all_tasks():
    frame = Frame(TaskBatch.pad(ragged_tasks(2)))
    shape = (4, frame.task.query_slots, 5)
    u = softmax(torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    expected = frame.labels(u)
    labels = Labels(*(torch.empty_like(x) for x in vars(expected).values()))
    for rows in (slice(0, 3), slice(3, 4)):
        frame.write(labels, rows, softmax(u.logits[rows]))
    for name, values in vars(expected).items():
        assert torch.equal(getattr(labels, name), values), name
