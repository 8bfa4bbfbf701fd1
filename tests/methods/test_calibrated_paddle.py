"""Calibrated PADDLE: scale-free, its evidence rises, it follows what the batch says about the number of classes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import handful
from handful.datasets import load_clinc150
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from handful.inference.stack import label
from handful.methods import calibrated_paddle
from tests.tasks_at_hand import random_task

seeds = st.integers(0, 10_000)


@given(seed=seeds, exponent=st.integers(-3, 3), spread=st.sampled_from([1.0, 2.0]))
def test_the_scale_of_the_features_changes_no_prediction(seed, exponent, spread):
    task, factor = random_task(seed, shots=2, n_classes=12, spread=spread), 10.0**exponent
    scaled = task.with_features(factor * task.support, factor * task.query)
    a, b = handful.solve("calibrated_paddle", task), handful.solve("calibrated_paddle", scaled)
    assert torch.equal(a.predictions, b.predictions)
    torch.testing.assert_close(a.log_assignments.exp(), b.log_assignments.exp(), atol=1e-6, rtol=0)


def clinc_tasks(query_rule, n_query: int, n_tasks: int, shots: int = 5):
    bank = load_clinc150()
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), query_rule, n_query=n_query)
    task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=1, indices=range(n_tasks)))
    return handful.transform("l2", task), truth


def accuracy(method: str, task, truth) -> float:
    return (handful.solve(method, task).predictions == truth).double().mean().item()


def test_few_classes_present():
    task, truth = clinc_tasks(handful.UniformOverPool(k_eff=5), 75, 20)
    assert accuracy("calibrated_paddle", task, truth) > accuracy("nearest_prototype", task, truth) + 0.05
    # As published, on the same unit-norm features, most of the batch goes to one class.
    assert accuracy("paddle", task, truth) < 0.5


def test_all_classes_present():
    task, truth = clinc_tasks(handful.Balanced(k_eff=150), 300, 3)
    assert accuracy("calibrated_paddle", task, truth) > accuracy("nearest_prototype", task, truth) - 0.01


def test_many_classes_of_one_example_each():
    """Prototypes of one example make counts uneven by themselves, which must not pass for few classes."""
    task, truth = clinc_tasks(handful.UniformOverPool(k_eff=100), 300, 6, shots=1)
    found = label(calibrated_paddle.batches(Frame(task)), max_iter=1000, tol=1e-3)
    assert found.of_tasks("spread_out").sum() >= 4
    assert accuracy("calibrated_paddle", task, truth) > accuracy("nearest_prototype", task, truth) + 0.01


def test_padding_and_batches_do_not_touch_the_scale():
    task = random_task(4)
    together = squared_scale(Frame(task))
    alone = torch.cat([squared_scale(Frame(task.select(slice(t, t + 1)))) for t in range(3)])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_query_that_repeats_the_examples(dtype):
    """One shot, no spread at all: each item is its own class."""
    points = torch.eye(4, dtype=dtype)
    found = handful.solve("calibrated_paddle", handful.TaskBatch.single(points, torch.arange(4), points, 4))
    assert found.predictions[0].tolist() == [0, 1, 2, 3]
    alone = handful.solve("calibrated_paddle", handful.TaskBatch.single(points[:1], torch.tensor([0]), points[:1], 1))
    assert alone.log_assignments.exp().tolist() == [[[1.0]]]


def test_points_still_in_their_bank_give_the_same_answer():
    bank = load_clinc150()
    spec = handful.TaskSpec(handful.ShotsPerClass(5), handful.UniformOverPool(k_eff=5), n_query=75)
    task, _ = handful.gather(bank, handful.draw(bank.labels, spec, seed=2, indices=range(6)))
    read = task.with_features(task.support.clone(), task.query.clone())
    a, b = handful.solve("calibrated_paddle", task), handful.solve("calibrated_paddle", read)
    torch.testing.assert_close(a.log_assignments.exp(), b.log_assignments.exp(), atol=1e-5, rtol=0)
