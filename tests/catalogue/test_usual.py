import pytest
import torch

from handful.catalogue.usual import Usual, left_out_half_distances, mean_margin
from handful.inference.frame import Frame
from tests.tasks_at_hand import random_task


def test_a_left_out_example_lies_where_an_item_would():
    task = random_task(0, n_tasks=1, shots=4, n_query=4000, n_classes=30, n_present=30, dim=64)
    frame = Frame(task)
    nearest = 0.5 * torch.cdist(frame.query, frame.support.mean())[0].square().amin(-1)
    usual = Usual.of(frame)
    assert usual.half_distance == pytest.approx(float(nearest.median()), rel=0.05)
    assert usual.n_left_out == 120
    assert usual.margin == mean_margin(frame) > 0


def test_the_mean_of_the_others_is_that_far():
    frame = Frame(random_task(1, n_tasks=1, shots=3, n_classes=5))
    points, labels = frame.task.support[0], frame.task.support_labels[0]
    others = torch.stack([points[(labels == labels[i]) & (torch.arange(15) != i)].mean(0) for i in range(15)])
    expected = 0.5 * (points - others).square().sum(-1) * (1 - 1 / 3**2)
    torch.testing.assert_close(left_out_half_distances(frame, torch.arange(15)), expected)


def test_lone_examples_say_nothing():
    assert Usual.of(Frame(random_task(2, n_tasks=1, shots=1, n_classes=5))) == Usual(0, 0.0, 0.0)
