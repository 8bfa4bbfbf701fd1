"""The study of two levels: batches are as described, pairs are of near classes, and the page says what was measured."""

import numpy as np

import two_levels as study


def test_pairs_are_of_the_nearest_classes():
    features = np.array([[1, 0, 0], [0, 1, 0], [0.99, 0.1, 0], [0, 0.8, 0.6], [0, 0, 1.0]])
    assert study.pairs(features, np.arange(5)).tolist() in ([0, 1, 0, 1, 5], [0, 5, 0, 1, 1])


def test_figures_of_a_batch():
    rng = np.random.default_rng(0)
    centres = 6 * rng.normal(size=(8, 16))
    centres[1] = centres[0]  # cannot be told apart
    labels = np.arange(8).repeat(40)
    every = np.arange(320)
    one = study.Bank(
        centres[labels] + rng.normal(size=(320, 16)), labels, np.array([0, 0, 1, 2, 3, 4, 5, 6]), every, every
    )
    found = [study.measured(one, 8, 5, number) for number in range(3)]
    assert all(row["coarse"] == 100 and row["sure"] == 100 for row in found)
    assert all(row["fine"] < 100 for row in found)
    assert all(row["answered fine"] > 50 and row["answered coarse"] > 10 for row in found)
    assert study.measured(one, 8, 5, 0) == found[0]
    some = study.measured(one, 5, 5, 0, missing=2)
    assert some["answered unknown"] is not None
    assert found[0]["answered unknown"] is None


def test_what_the_page_says_is_so():
    found = study.kept(study.RESULTS, study.BANKS)
    assert {len(rows) for of in found.values() for rows in of.values()} == {40}
    for of in (of for of in found.values() if "5 examples" in of):
        sure = study.figure(of["5 examples"], "sure").mean
        assert sure > study.figure(of["5 examples"], "fine").mean
        assert sure > 95
        with_unknown = of["5 examples, some unknown"]
        assert study.figure(with_unknown, "sure").mean < sure
        assert study.figure(with_unknown, "answered unknown").mean < 10
