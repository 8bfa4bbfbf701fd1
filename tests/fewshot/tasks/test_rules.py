"""Rules: streams of random numbers, support rules, query rules, and queries of unknown classes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest

from handful_fewshot import (
    Balanced,
    CorrelatedStream,
    Dirichlet,
    FixedSupport,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
    draw,
)
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


@pytest.mark.parametrize("rule", [UniformOverPool, Balanced, Dirichlet, CorrelatedStream])
def test_a_range_of_one_number_is_that_number(rule):
    assert rule((3, 3)) == rule([3, 3]) == rule(3)
    assert (rule(3).k_eff_text, rule((2, 5)).k_eff_text) == ("3", "2-5")


@pytest.mark.parametrize("rule", [UniformOverPool, Dirichlet])
def test_a_task_of_a_range_is_the_task_of_its_own_number_of_classes(rule):
    """The range draws a number from a stream of its own, so everything else is as with this number."""
    ranged = rule((1, 4))
    numbers = ranged.class_counts(3, np.arange(40))
    assert set(numbers) == {1, 2, 3, 4}
    of_range = draw(LABELS, TaskSpec(ShotsPerClass(2), ranged, 8), 3, range(40))
    for number in range(1, 5):
        fixed = draw(LABELS, TaskSpec(ShotsPerClass(2), rule(number), 8), 3, range(40))
        assert (of_range.query[numbers == number] == fixed.query[numbers == number]).all()
        np.testing.assert_array_equal(of_range.support, fixed.support)


def test_numbers_of_a_range_are_equally_likely():
    _, seen = np.unique(UniformOverPool((2, 10)).class_counts(0, np.arange(20_000)), return_counts=True)
    assert len(seen) == 9
    assert chisquare(seen).pvalue > 1e-4


def test_a_balanced_query_of_a_range_has_the_same_number_of_each_class():
    found = counts(Balanced((2, 4)), 12, 60)
    assert {(int((row > 0).sum()), int(row.max())) for row in found} == {(2, 6), (3, 4), (4, 3)}
    assert (found.sum(-1) == 12).all()


def stream(rule, n_query, n_streams=1, labels=LABELS, seed=0):
    return draw(labels, TaskSpec(ShotsPerClass(2), rule, n_query), seed, range(n_streams * rule.batches))


def test_the_batches_of_a_stream_share_a_catalogue_and_no_row():
    drawn = stream(CorrelatedStream((2, 5), slots=4, batches=6), 4, n_streams=3)
    for k in range(3):
        own = slice(6 * k, 6 * k + 6)
        assert (drawn.support[own] == drawn.support[6 * k]).all()
        assert len(np.unique(drawn.query[own])) == 24
        assert len(np.unique(drawn.query_labels[own])) <= 5
        assert not np.isin(drawn.query[own], drawn.support[own]).any()
    assert (drawn.support[0] != drawn.support[6]).any()
    other = draw(LABELS, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 4), 0, range(3))
    np.testing.assert_array_equal(drawn.support[::6], other.support)  # stream k has the support of task k elsewhere


def test_a_stream_as_long_as_the_pool_has_every_row_once():
    drawn = stream(CorrelatedStream(6, slots=5, batches=41), 3)
    rows = np.sort(np.concatenate([drawn.query.ravel(), drawn.support[0]]))
    np.testing.assert_array_equal(rows, np.arange(135))


def test_with_one_slot_all_items_of_a_class_come_at_once():
    drawn = stream(CorrelatedStream(6, slots=1, batches=41), 3)
    assert (np.diff(drawn.query_labels.ravel()) != 0).sum() == 5


def test_at_a_large_concentration_every_slot_has_its_part_of_every_class():
    labels = np.repeat(np.arange(3), 42)  # 40 of each are left: 8 in each of five slots
    drawn = stream(CorrelatedStream(3, slots=5, concentration=1e9, batches=5), 24, labels=labels)
    for batch in drawn.query_labels:
        assert np.bincount(batch).tolist() == [8, 8, 8]
        assert (np.diff(batch) != 0).sum() == 2


def test_the_smaller_the_concentration_the_fewer_classes_a_batch_has():
    labels = np.repeat(np.arange(20), 60)
    present = [
        np.mean([len(set(batch)) for batch in stream(CorrelatedStream(20, 20, c, 16), 32, 3, labels).query_labels])
        for c in (1e-3, 1e-2, 1e-1, 10.0)
    ]
    assert present == sorted(present)
    assert present[0] < 0.4 * present[-1]


def test_the_rows_of_a_class_are_spread_over_a_stream_in_random_order():
    """Rows of one class in one slot: the first half of the rows is as often before the second half as after it."""
    labels = np.zeros(102, np.int64)
    drawn = stream(CorrelatedStream(1, slots=1, batches=1), 100, 400, labels)
    place = np.argsort(drawn.query, axis=-1).astype(float)
    assert abs(place[:, :50].mean() - place[:, 50:].mean()) < 4 * np.sqrt(100**2 / 12 * 4 / 100 / 400)
