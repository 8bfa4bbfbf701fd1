"""Linear head: that of scikit-learn, order of rows, unequal numbers, odd catalogues, near classes."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from handful.model import head as module
from handful.model.head import LinearHead, fit_head
from handful.model.left_out import assign_folds
from handful.model.settings import DEFAULT
from tests.model.catalogues_at_hand import accuracy, doubtful, drawn, means_of, with_names


def test_a_head_is_the_logistic_regression_of_scikit_learn_at_its_temperature():
    points, codes, items, _ = drawn(20, 6, 24, 1.2)
    head = fit_head(points, codes, 20, 1.0)
    expected = LogisticRegression(C=DEFAULT.inverse_ridge, tol=1e-8, max_iter=5000).fit(points, codes)
    scores, plain = head.scores(items) * head.temperature, expected.decision_function(items)
    scores, plain = (table - table.mean(1, keepdims=True) for table in (scores, plain))
    np.testing.assert_allclose(scores, plain, atol=0.02 * np.abs(plain).max())


@pytest.mark.parametrize("way", ["doubtful", "names"])
def test_doubtful_examples_count_less_and_names_help(way):
    if way == "doubtful":
        points, codes, items, truth = drawn(20, 6, 24, 0.8)
        points, given, wrong = doubtful(points, codes)
        head = fit_head(points, given, 20, 1.0)
        right = np.ones(len(codes))
        right[head.left_out.rows] = head.left_out.right
        assert right[wrong].mean() < 0.3 < 0.9 < np.delete(right, wrong).mean()
        assert head.wrong_share == pytest.approx(len(wrong) / len(codes), abs=0.06)
    else:
        points, codes, items, truth, names = with_names(2)
        assert accuracy(fit_head(points, codes, 40, 1.0, names), items, truth) > accuracy(
            fit_head(points, codes, 40, 1.0), items, truth
        )


def test_the_order_of_rows_and_of_classes_does_not_matter():
    points, codes, items, _ = drawn(20, 5, 24, 1.2, dtype=np.float64)
    rng = np.random.default_rng(0)
    rows, classes = rng.permutation(100), rng.permutation(20)
    one, other = fit_head(points, codes, 20), fit_head(points[rows], classes[codes[rows]], 20)
    nobody = np.zeros(20, dtype=bool)
    assert (assign_folds(points, codes, nobody)[rows] == assign_folds(points[rows], classes[codes[rows]], nobody)).all()
    assert other.temperature == one.temperature
    np.testing.assert_allclose(other.scores(items)[:, classes], one.scores(items), atol=0.05)


def test_a_class_of_wrong_labels_alone_wins_next_to_nothing():
    """In most draws its examples are found to be wrong; where they are not, they still win no items of others."""
    least_mass = []
    for seed in range(12):
        points, codes, items, truth = drawn(12, 6, noise=0.3, seed=seed)
        given = codes.copy()
        given[codes == 0] = np.arange(1, 7)  # class 0 gets one example of each of six others
        given[np.arange(6, 42, 6)] = 0
        head = fit_head(points, given, 12)
        least_mass.append(head.mass.min())
        others = truth > 0
        labels = head.scores(items[others]).argmax(1)
        assert (labels == truth[others]).mean() > 0.98
        assert (labels == 0).mean() < 0.02
    assert np.isclose(least_mass, 1).mean() >= 0.6


def test_numbers_of_examples_do_not_favour_a_class():
    """Where classes have one example or twenty, only the latter can be left out."""
    shots = np.tile([1, 20], 20)
    points, codes, items, _ = drawn(40, shots, noise=1.0)
    for head in (fit_head(points, codes, 40), LinearHead.of_means(*means_of(points, codes), points, codes)):
        scores = head.scores(items)
        expected = np.exp(scores - scores.max(1, keepdims=True))
        expected = (expected / expected.sum(1, keepdims=True)).mean(0)
        assert 0.4 < expected[::2].mean() / expected[1::2].mean() < 2.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_inputs_have_finite_answers(dtype):
    ones, unit = np.ones((30, 4), dtype), np.eye(30, dtype=dtype)
    thirds = np.arange(30) % 3
    for points, codes in (
        (ones[:1], np.zeros(1, int)),
        (unit, np.zeros(30, int)),
        (ones, thirds),
        (0 * ones, thirds),
        (unit, np.arange(30)),
        (unit, thirds),
    ):
        for head in (
            fit_head(points, codes, codes.max() + 1),
            LinearHead.of_means(*means_of(points, codes), points, codes),
        ):
            assert head.weights.dtype == head.offsets.dtype == head.means.dtype == dtype
            assert all(np.isfinite(a).all() for a in (head.weights, head.offsets, head.means, head.mass))


def test_near_classes_and_one_fold_where_training_is_dear():
    points, codes, items, truth = drawn(40, 5, 24, 1.2)
    whole = fit_head(points, codes, 40)
    near = fit_head(points, codes, 40, settings=replace(DEFAULT, full_work=0, folded_work=0, near_classes=8))
    assert len(near.left_out.rows) == 40
    assert not np.allclose(near.weights, whole.weights, atol=0.1)
    assert accuracy(near, items, truth) > accuracy(whole, items, truth) - 0.05


def test_fitting_runs_on_one_thread(monkeypatch):
    seen, train = [], module.logistic

    def recorded(*given):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return train(*given)

    monkeypatch.setattr(module, "logistic", recorded)
    rng, codes = np.random.default_rng(0), np.repeat(np.arange(6), 5)
    with threadpool_limits(2, "blas"):
        fit_head(rng.normal(size=(6, 8))[codes] + 0.3 * rng.normal(size=(30, 8)), codes, 6)
    assert set(seen) == {1}
