"""Diagnostics: each can be triggered, and none fires on ordinary batches of real sentences."""

import numpy as np
import pytest
import torch

import handful
from handful.catalogue.usual import expected_half_distances
from handful.datasets import load_clinc150
from handful.errors import (
    CalibrationBorderWarning,
    CollapseWarning,
    NotConvergedWarning,
    UnlikeSupportWarning,
)
from handful.estimators import PaddleClassifier, TransductiveClassifier
from handful.estimators.diagnostics import COLLAPSED_SHARE, LEAST_AGREEMENT, MOST_DISTANCE
from handful.inference.frame import Frame
from tests.tasks_at_hand import random_task

# Published PADDLE converges slowly where it collapses.
PATIENT = {"max_iter": 2000}


@pytest.fixture(scope="module")
def bank():
    return load_clinc150()


def real_task(bank, index: int, *, shots: int = 5, k_eff: int = 5, n_query: int = 40):
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), handful.UniformOverPool(k_eff), n_query)
    task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=[index]))
    return task.support[0], task.support_labels[0].numpy(), task.query[0], truth[0].numpy()


@pytest.mark.parametrize("shots", [1, 5, 10])
@pytest.mark.parametrize("k_eff", [2, 5, 20])
def test_ordinary_batches_are_silent(bank, shots, k_eff):
    for index in range(4):
        X, y, batch, _ = real_task(bank, index, shots=shots, k_eff=k_eff)
        assert PaddleClassifier().fit(X, y).infer(batch).diagnostics == ()


def test_a_batch_of_one_class_is_no_collapse(bank):
    right = 0
    for index in range(6):
        X, y, batch, truth = real_task(bank, index, k_eff=1)
        inference = PaddleClassifier().fit(X, y).infer(batch)
        right += (inference.labels.numpy() == truth[0]).mean() > COLLAPSED_SHARE
        assert inference.diagnostics == ()
    assert right >= 3


def only(inference):
    (found,) = inference.diagnostics
    return found


def test_collapse(bank):
    X, y, batch, _ = real_task(bank, 0)
    published = TransductiveClassifier("paddle", feature_transform="l2", options=PATIENT).fit(X, y)
    with pytest.warns(CollapseWarning, match=r"items were labelled '\d+', but only .* Use PaddleClassifier"):
        found = only(published.infer(batch))
    assert found.name == "collapsed"
    assert found.value < found.threshold == LEAST_AGREEMENT


def test_a_few_items_are_never_called_a_collapse(bank):
    X, y, batch, _ = real_task(bank, 0)
    assert (
        TransductiveClassifier("paddle", feature_transform="l2", options=PATIENT).fit(X, y).infer(batch[:9]).diagnostics
        == ()
    )


among_others = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")


@among_others
def test_features_in_another_order_are_unlike_the_support(bank):
    X, y, batch, _ = real_task(bank, 1)
    shuffled = batch[:, torch.randperm(batch.shape[1], generator=torch.Generator().manual_seed(0))]
    with pytest.warns(UnlikeSupportWarning, match="same model and the same preprocessing"):
        inference = PaddleClassifier().fit(X, y).infer(shuffled)
    found = {d.name: d for d in inference.diagnostics}["unlike_support"]
    assert found.value > found.threshold == MOST_DISTANCE


def border(inference):
    return {d.name: d for d in inference.diagnostics}["calibration_border"]


@among_others
def test_examples_that_repeat_hit_the_sharp_border():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((6, 8)), 3, axis=0)
    with pytest.warns(CalibrationBorderWarning, match="copies of the same example"):
        found = border(PaddleClassifier().fit(X, np.repeat(np.arange(6), 3)).infer(X[::3]))
    assert found.value > found.threshold


@among_others
def test_labels_that_mean_nothing_hit_the_soft_border(bank):
    X, y, batch, _ = real_task(bank, 0)
    with pytest.warns(CalibrationBorderWarning, match="do not tell the classes apart"):
        found = border(PaddleClassifier().fit(X, np.random.default_rng(0).permutation(y)).infer(batch))
    assert found.value < found.threshold


@pytest.mark.parametrize("shots", [1, 3])
def test_a_single_class_or_a_single_example_has_no_border(shots):
    rng = np.random.default_rng(0)
    assert PaddleClassifier().fit(rng.standard_normal((shots, 4)), ["a"] * shots).infer(np.eye(4)).diagnostics == ()
    assert PaddleClassifier().fit(np.eye(4), list("abcd")).infer(np.eye(4) + 0.1).diagnostics == ()


def test_iterations_that_run_out(bank):
    X, y, batch, _ = real_task(bank, 3)
    short = TransductiveClassifier("soft_kmeans", feature_transform="l2", options={"max_iter": 3, "tol": 0.0}).fit(X, y)
    with pytest.warns(NotConvergedWarning, match="still changing after 3 iterations"):
        assert only(short.infer(batch)).value == 3


def test_expected_distances_are_those_of_new_points():
    """Far more queries than shots: their mean distance to their own prototype is what the support foretold."""
    task = random_task(0, n_tasks=1, shots=4, n_query=4000, n_classes=30, n_present=30, dim=64)
    frame = Frame(task)
    halves = 0.5 * torch.cdist(frame.query, frame.support.mean())[0].square()
    assert float(expected_half_distances(frame).mean()) == pytest.approx(float(halves.amin(-1).mean()), rel=0.05)


def test_a_warning_points_at_the_line_that_asked(bank):
    X, y, batch, _ = real_task(bank, 0)
    published = TransductiveClassifier("paddle", feature_transform="l2", options=PATIENT).fit(X, y)
    for ask in (published.predict, published.predict_proba, published.infer):
        with pytest.warns(CollapseWarning) as caught:
            ask(batch)
        assert caught[0].filename == __file__
