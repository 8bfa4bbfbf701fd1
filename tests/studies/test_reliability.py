"""The study of reliability: batches are as described, and bins count what they say."""

import numpy as np

import reliability as study


def test_bins_have_the_number_the_sum_and_the_right_ones():
    bins = study.binned(np.array([0.1, 0.995, 1.0, 0.95]), np.array([False, True, False, True]))
    assert bins[0].tolist() == [1, 0.1, 0]
    assert bins[study.HIGH].tolist() == [2, 1.995, 1]
    assert bins[study.SURE].tolist() == [0, 0, 0]  # 0.95 is not above 0.95
    assert bins[:, 0].sum() == 4


def test_a_batch_of_a_small_catalogue():
    rng, labels = np.random.default_rng(0), np.arange(12).repeat(30)
    features = 6 * rng.normal(size=(12, 16))[labels] + rng.normal(size=(360, 16))
    closed = study.one_batch(features, labels, 6, 5, 0, some=False)
    assert closed["certainty"][:, 0].sum() == 30
    assert closed["certainty"][study.HIGH, 0] == 0  # 30 examples support no more than 31/32
    assert closed["probability"][study.HIGH, 0] > 20
    some = study.one_batch(features, labels, 6, 5, 0, some=True)
    assert some["certainty"][:, 2].sum() <= 22  # eight are of no class


def test_the_worst_catalogue_has_enough_labels():
    cells = {
        "3 2 0": {"certainty": [[0, 0, 0]] * 10 + [[20, 19.9, 0]]},
        "6 2 0": {"certainty": [[0, 0, 0]] * 10 + [[40, 39.9, 38]]},
    }
    rows = study.rows_of({"birds": cells})
    assert study.worst_cell(study.chosen(rows, "certainty", 0, least=study.HIGH)) == (5.0, "birds, 6 classes × 2")
    assert study.share(study.chosen(rows, "certainty", 0)) == 100 * 38 / 60
    assert np.isnan(study.share([]))
