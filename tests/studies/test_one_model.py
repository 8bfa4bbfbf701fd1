"""The study of the engine's model: both rules label the same batches, and the figures of a cell are theirs."""

import importlib
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "studies")]
one_model = importlib.import_module("one_model")


def test_a_made_up_cell():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 12))
    unit = lambda rows: (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)  # noqa: E731
    examples = unit(centres.repeat(5, 0) + 0.8 * rng.normal(size=(100, 12)))
    catalogue = one_model.Catalogue(examples, np.arange(20).repeat(5))
    batches = []
    for _ in range(3):
        truth = rng.choice(20, 3, replace=False)[rng.integers(0, 3, 30)]
        points = unit(centres[truth] + 0.8 * rng.normal(size=(30, 12)))
        batches.append(one_model.Batch(points, truth, np.arange(30)))
    outcomes = one_model.with_model(catalogue, batches)
    figures = one_model.row(outcomes)
    assert figures["one_model"] == round(float(np.mean([one.accuracy("one_model") for one in outcomes])), 1)
    assert figures["one_model"] > figures["head"]
    error, loss, _ = figures["one_model: ECE, log loss, presence"]
    assert 0 <= error < 30
    assert loss < np.log(20)


def test_the_calibration_error_is_zero_where_what_is_said_is_so():
    said = np.full(100, 0.75)
    assert one_model._calibration_error(said, np.arange(100) < 75) < 1e-9
    assert abs(one_model._calibration_error(said, np.zeros(100, bool)) - 75) < 1e-9
