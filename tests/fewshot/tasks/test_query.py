"""Query rules, and queries of unknown classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest

from handful.fewshot import (
    Dirichlet,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
    draw,
)
from handful.fewshot.tasks.query import round_to_sum

LABELS = np.repeat(np.arange(6), [10, 15, 20, 25, 30, 35])


def counts(query, n_query, n_tasks, labels=LABELS, seed=0) -> np.ndarray:
    """Queries of each class of the bank, [task, class]."""
    drawn = draw(labels, TaskSpec(ShotsPerClass(2), query, n_query), seed, range(n_tasks))
    return np.stack([np.bincount(row, minlength=labels.max() + 1) for row in drawn.query_labels])


@given(seed=st.integers(0, 1000), concentration=st.sampled_from([0.1, 1.0, 2.0, 50.0]), k_eff=st.integers(1, 6))
def test_dirichlet_counts_sum_to_the_query_and_fit_the_classes(seed, concentration, k_eff):
    found = counts(Dirichlet(k_eff, concentration), 8, 5, seed=seed)
    assert (found.sum(-1) == 8).all()
    assert ((found > 0).sum(-1) <= k_eff).all()
    assert (found <= np.bincount(LABELS) - 2).all()


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), total=st.integers(1, 200))
def test_rounding_keeps_the_sum_and_stays_within_one(seed, n, total):
    proportions = np.random.default_rng(seed).dirichlet(np.ones(n))
    found = round_to_sum(proportions, total)
    assert found.sum() == total
    assert (found >= 0).all()
    assert (np.abs(found - proportions * total) < 1 + 1e-9).all()


@pytest.mark.slow
def test_every_row_and_every_class_is_as_likely_as_any_other():
    labels = np.repeat(np.arange(8), 12)
    drawn = draw(labels, TaskSpec(ShotsPerClass(3), UniformOverPool(3), 10), 0, range(40_000))
    assert chisquare(np.bincount(drawn.support.ravel())).pvalue > 1e-4
    assert chisquare(np.bincount(drawn.query.ravel())).pvalue > 1e-4
    first = np.bincount(drawn.query_labels[:, 0])
    assert chisquare(first).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.5, 2.0, 5.0])
def test_dirichlet_counts_follow_the_concentration(concentration):
    labels = np.repeat(np.arange(5), 1002)
    found = counts(Dirichlet(5, concentration), 1000, 4000, labels)
    shares = found[:, 0] / 1000 + np.random.default_rng(0).uniform(-5e-4, 5e-4, 4000)  # undo the rounding
    assert kstest(shares, beta(concentration, 4 * concentration).cdf).pvalue > 1e-4


def test_tasks_at_another_share_of_unknown_items_have_the_same_classes_and_support():
    drawn = [
        draw(LABELS, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 10, unknown=UnknownClasses(2, share)), 3, range(50))
        for share in (0.0, 0.25, 1.0)
    ]
    assert [(one.query_labels == -1).sum(-1).tolist() for one in drawn] == [[n] * 50 for n in (0, 3, 10)]
    for one in drawn[1:]:
        np.testing.assert_array_equal(one.classes, drawn[0].classes)
        np.testing.assert_array_equal(one.support, drawn[0].support)
    assert set(LABELS[drawn[2].query].ravel()) == set(range(6))
