import pytest
import torch

from handful.inference.batches import AgainstOne, EachItsOwn
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from tests.tasks_at_hand import random_task


def filled(batches) -> torch.Tensor:
    scores, blocks = batches.scored()
    for _ in blocks:
        pass
    return scores


def test_scores_are_products_less_half_the_lengths():
    task = random_task(0, n_tasks=3, n_classes=7, n_query=9)
    frame = Frame(task)
    batches = EachItsOwn(frame)
    means = frame.support.mean()
    expected = torch.bmm(frame.query, means.mT) - 0.5 * means.square().sum(-1).unsqueeze(1)
    torch.testing.assert_close(filled(batches), expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(batches.squared_scale, squared_scale(frame).double())
    part = batches.select(torch.tensor([2]))
    torch.testing.assert_close(filled(part), expected[2:], atol=1e-6, rtol=1e-5)


def test_nearest_is_the_mean_with_the_smallest_distance():
    task = random_task(1, n_tasks=1, n_classes=7, n_query=9)
    frame = Frame(task)
    batch = AgainstOne(frame.query, None, frame.support.mean()[0], frame.support.mass[0], torch.ones(1).double())
    scores, places = batch.nearest()
    distances = 0.5 * torch.cdist(frame.query, frame.support.mean()).square()
    assert torch.equal(places, distances.argmin(-1))
    halves = 0.5 * frame.query.square().sum(-1) - scores
    torch.testing.assert_close(halves, distances.amin(-1), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("masked", [False, True])
def test_where_no_class_has_two_examples_the_batch_gives_the_scale(masked):
    task = random_task(2, n_tasks=2, shots=1, n_classes=7, n_query=9)
    mask = None
    if masked:
        mask = torch.ones(2, 9, dtype=torch.bool)
        mask[1, 6:] = False
    shared = type(task)(task.support[:1], task.support_labels[:1], task.query, 7, None, mask)
    frame = Frame(shared)
    unknown = torch.full((2,), torch.nan, dtype=torch.float64)
    batch = AgainstOne(frame.query, mask, frame.support.mean()[0], frame.support.mass[0], unknown)
    filled(batch)
    torch.testing.assert_close(batch.squared_scale, squared_scale(frame).double(), atol=0, rtol=1e-4)
