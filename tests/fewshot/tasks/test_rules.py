"""Rules: streams of random numbers, support rules, query rules, and queries of unknown classes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest

from handful_fewshot import Dirichlet, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses, draw
from handful_fewshot.tasks.rules import ClassRows, Stream, distinct, generator, round_to_sum

LABELS = np.repeat(np.arange(6), [10, 15, 20, 25, 30, 35])
FIVE = np.repeat(np.arange(5), [8, 9, 10, 11, 12])


def test_streams_of_tasks_seeds_and_purposes_differ():
    starts = {generator(s, i, k).random() for s in range(3) for i in range(5) for k in Stream}
    assert len(starts) == 3 * 5 * len(Stream)


def test_the_largest_seeds_differ_too():
    assert len({generator(2**64 - s, 5, Stream.QUERY).random() for s in range(1, 10)}) == 9


def test_the_stream_is_the_one_it_always_was():
    # Published results are addressed by seed and number, so the numbers behind an address are part of the interface.
    assert generator(2020, 7, Stream.SUPPORT).integers(0, 1000, 4).tolist() == [672, 950, 289, 12]


@given(seed=st.integers(0, 1000), population=st.integers(1, 30), share=st.floats(0, 1))
def test_distinct_numbers_of_the_population(seed, population, share):
    count = round(share * population)
    uniform = np.random.default_rng(seed).random((6, population))
    drawn = distinct(uniform, np.full(6, population), np.full(6, count))
    assert (drawn[:, count:] == -1).all()
    for row in drawn[:, :count]:
        assert len(set(row)) == count
        assert ((row >= 0) & (row < population)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("population", "count"), [(6, 1), (6, 3), (6, 5), (5, 4)])
def test_all_subsets_are_equally_likely(population, count):
    uniform = np.random.default_rng(0).random((60_000, count))
    drawn = np.sort(distinct(uniform, np.full(60_000, population), count), -1)
    subsets = list(combinations(range(population), count))
    _, seen = np.unique(drawn, axis=0, return_counts=True)
    assert len(seen) == len(subsets)
    assert chisquare(seen).pvalue > 1e-4


def spec(support, **sizes) -> TaskSpec:
    return TaskSpec(support, UniformOverPool(2), **{"n_query": 6, **sizes})


def test_every_class_gets_its_shots():
    drawn = draw(FIVE, spec(ShotsPerClass(3)), 0, range(20))
    assert (FIVE[drawn.support] == np.repeat(np.arange(5), 3)).all()
    assert all(len(set(rows)) == 15 for rows in drawn.support)


def test_a_fixed_support_is_given_once_and_never_queried():
    rows = [0, 1, 9, 20, 30, 31, 32, 45]
    drawn = draw(FIVE, spec(FixedSupport(rows)), 0, range(200))
    assert drawn.support.shape == (1, 8)
    assert sorted(drawn.support[0]) == rows
    assert (FIVE[drawn.support] == drawn.support_labels).all()
    assert not np.isin(drawn.query, rows).any()
    assert set(drawn.query.ravel()) == set(range(50)) - set(rows)
    assert not drawn.support_elsewhere


def test_a_support_from_another_bank_leaves_all_rows_to_the_query():
    other = [4, 4, 3, 2, 1, 0, 0]
    drawn = draw(FIVE, spec(FixedSupport.whole(other)), 0, range(200))
    assert drawn.support_elsewhere
    assert drawn.support.tolist() == [[5, 6, 4, 3, 2, 0, 1]]
    assert drawn.support_labels.tolist() == [[0, 0, 1, 2, 3, 4, 4]]
    assert set(drawn.query.ravel()) == set(range(50))


def test_a_fixed_support_of_some_classes_is_padded():
    other = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    drawn = draw(FIVE, spec(FixedSupport.whole(other), n_classes=2), 0, range(100))
    for t in range(100):
        real = drawn.support_mask[t]
        rows, labels = drawn.support[t, real], drawn.support_labels[t, real]
        assert (other[rows] == drawn.classes[t, labels]).all()
        assert sorted(rows) == np.flatnonzero(np.isin(other, drawn.classes[t])).tolist()
    alone = draw(FIVE, spec(FixedSupport.whole(other), n_classes=2), 0, [70])
    np.testing.assert_array_equal(alone.support[alone.support_mask], drawn.support[70][drawn.support_mask[70]])


@pytest.mark.parametrize("n_classes", [5, 70_000])  # both ways of sorting
def test_rows_are_found_by_class_and_offset(n_classes):
    labels = np.random.default_rng(0).integers(0, 5, 40)
    found = ClassRows.of(labels, n_classes)
    assert found.sizes[:5].tolist() == [(labels == k).sum() for k in range(5)]
    for k in range(5):
        offsets = np.arange(found.sizes[k])
        np.testing.assert_array_equal(found.rows_at(np.full(len(offsets), k), offsets), np.flatnonzero(labels == k))


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
