"""The story of camera traps: worlds are as described, rules do what their names say, and the page is the kept one."""

import json

import numpy as np
import pytest

import camera_traps as story
from handful.datasets import load_clinc150


def test_a_world_is_as_described(tmp_path):
    bank = load_clinc150().classes(range(24))
    truth, sequences, scores = story.world(bank, 2, 0, tmp_path)
    predictions = json.loads((tmp_path / "predictions.json").read_text())["predictions"]
    images = json.loads((tmp_path / "cct.json").read_text())["images"]
    assert len(truth) == len(predictions) == len(images) == bank.n_rows - 48
    assert all(len(image["classifications"]["classes"]) == 5 for image in predictions)
    sites = np.array([image["location"] for image in images])
    assert [len(set(np.array(truth)[sites == site])) for site in range(6)] == [4] * 6
    sizes = np.unique(sequences, return_counts=True)[1]
    assert (sizes.min(), sizes.max()) == (1, 5)
    assert all(len(set(np.array(truth)[sequences == one])) == 1 for one in np.unique(sequences))
    np.testing.assert_allclose(scores.sum(1), 1)


def test_majority_and_mean_score():
    scores = np.array([[0.6, 0.4, 0.0], [0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.0, 0.4, 0.6], [0.7, 0.3, 0.0]])
    sequences = np.array([1, 1, 1, 2, 2])
    first = scores.argmax(1)
    assert story.smoothed(first, scores, sequences, majority=True).tolist() == [0, 0, 0, 0, 0]
    assert story.smoothed(first, scores, sequences, majority=False).tolist() == [1, 1, 1, 0, 0]


def test_told_the_kinds_of_a_site():
    scores = np.array([[0.5, 0.2, 0.1, 0.09, 0.08, 0.03], [0.03, 0.08, 0.09, 0.1, 0.2, 0.5]])
    # The site has the kinds 1 and 5; of the second photograph kind 0 is not among the best five.
    assert story.told(scores, np.array([1, 5]), np.array([0, 0])).tolist() == [1, 5]
    assert story.told(scores, np.array([0, 0]), np.array([0, 1])).tolist() == [0, 5]


def test_the_page_is_that_of_the_kept_results():
    if not story.RESULTS.exists():
        pytest.skip("no results are kept")
    kept = json.loads(story.RESULTS.read_text())
    assert story.page().table == story.table(kept)
    for found in kept.values():
        for rule in ("first", "majority"):
            ahead = story.MeanEstimate.of(np.array([one["site and sequence"] - one[rule] for one in found]))
            assert ahead.mean > ahead.half_width


def test_the_control_finds_the_kinds_of_a_site():
    # Kinds 0 and 1 are alike; the site has many of kind 0, and the last photograph could be either.
    scores = np.array([[0.9, 0.05, 0.02, 0.01, 0.01, 0.01]] * 6 + [[0.45, 0.5, 0.02, 0.01, 0.01, 0.01]])
    sites = np.zeros(7, int)
    assert story.by_control(scores, sites, np.arange(7)).tolist() == [0] * 7
    alone = story.by_control(scores[-1:], sites[-1:], np.arange(1))
    assert alone.tolist() == [1]
