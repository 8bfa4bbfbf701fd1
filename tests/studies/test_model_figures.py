"""Figures of the page about the model: what is compared, and limits that are changed and restored."""

import importlib

import numpy as np

from handful.model import limits, links
from handful.model.settings import DEFAULT

study = importlib.import_module("model_figures")


def test_a_factor_of_two_moves_nothing():
    rng = np.random.default_rng(0)
    examples = rng.normal(size=(8, 6)).astype(np.float32)
    items = examples[np.arange(20) % 3] + 0.3 * rng.normal(size=(20, 6)).astype(np.float32)
    moved = study.moved(examples, items, DEFAULT, rng)
    assert dict(zip(study.CHANGES, moved.most, strict=True))["times 2"] == 0
    assert moved.other_labels == 0


def test_log_loss_and_labels_that_are_right():
    probabilities, truth = np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([0, 1])
    assert study.right(probabilities, truth) == 50
    np.testing.assert_allclose(study.loss(probabilities, truth), 1.5 * np.log(2))


def test_a_limit_is_changed_everywhere_and_restored():
    before = limits.NEARLY_EQUAL
    with study._set_limit("NEARLY_EQUAL", 0.9):
        assert links.NEARLY_EQUAL == limits.NEARLY_EQUAL == 0.9
    assert links.NEARLY_EQUAL == limits.NEARLY_EQUAL == before
