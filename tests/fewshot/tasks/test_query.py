"""Query rules, and queries of unknown classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest

from handful.errors import TaskError
from handful.fewshot import (
    Arrivals,
    Balanced,
    Dirichlet,
    FixedSupport,
    RangeOverPool,
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


@pytest.mark.parametrize(
    ("query", "n_query", "sentence"),
    [
        (
            UniformOverPool(1),
            34,
            r"task \d: without the support, the pool of its query's 1 classes .* fewer than the 34 queries",
        ),
        (Balanced(6), 54, "a class of its query has 8 rows left, fewer than the 9"),
        (Dirichlet(6), 124, "has 123 rows left, fewer than the 124"),
        (Dirichlet(6, 0.01), 100, "1000 draws of Dirichlet proportions"),
    ],
)
def test_queries_that_do_not_fit_are_refused(query, n_query, sentence):
    with pytest.raises(TaskError, match=sentence):
        counts(query, n_query, 1)


@pytest.mark.parametrize("concentration", [0.0, -1.0, np.inf, np.nan])
def test_impossible_concentrations_are_refused(concentration):
    with pytest.raises(TaskError, match="positive number"):
        Dirichlet(3, concentration)


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


def test_a_range_draws_every_number_of_classes_and_every_class_equally_often():
    labels = np.repeat(np.arange(8), 100)
    found = counts(RangeOverPool(k_eff=5, least=2), 60, 4000, labels) > 0
    numbers = np.bincount(found.sum(-1), minlength=6)
    assert numbers[:2].tolist() == [0, 0]
    assert chisquare(numbers[2:]).pvalue > 1e-4
    assert chisquare(found.sum(0)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("least", "most", "n_query"),
    [(1, 4, 64), (2, 10, 64), (5, 25, 64), (7, 25, 1000), (25, 50, 1000), (50, 100, 1000), (150, 150, 1000)],
)
def test_ranges_of_the_published_protocol_are_drawn_by_address(least, most, n_query):
    labels = np.repeat(np.arange(150), 150)  # five classes have too few rows for a batch of 1,000; seven have enough
    spec = TaskSpec(FixedSupport.whole(range(150)), RangeOverPool(k_eff=most, least=least), n_query)
    drawn = draw(labels, spec, 3, range(70))  # more than one chunk
    for i in (0, 69):
        alone = draw(labels, spec, 3, [i])
        assert alone.query[0].tolist() == drawn.query[i].tolist()
        assert alone.query_labels[0].tolist() == drawn.query_labels[i].tolist()
    assert drawn.query.shape == (70, n_query)
    assert (labels[drawn.query] == drawn.query_labels).all()
    assert all(len(set(rows)) == n_query for rows in drawn.query.tolist())
    found = np.array([len(set(row)) for row in drawn.query_labels.tolist()])
    assert (found <= most).all()
    if n_query >= 16 * most or most <= 4:  # a class that was drawn has a row, almost surely
        assert (found >= least).all()
    assert draw(labels, spec, 4, [0]).query[0].tolist() != drawn.query[0].tolist()


def arrivals(concentration=0.1, n_query=10, indices=range(12), seed=0, support=None):
    spec = TaskSpec(support or FixedSupport.whole(range(6)), Arrivals(6, concentration), n_query)
    return draw(LABELS, spec, seed, indices)


def test_in_one_round_every_row_arrives_at_most_once():
    rows = arrivals(indices=range(13)).query.ravel()  # 135 rows: 13 batches of 10
    assert len(set(rows.tolist())) == 130
    again = arrivals(indices=range(13, 26)).query.ravel()
    assert len(set(again.tolist())) == 130
    assert rows.tolist() != again.tolist()


def test_rows_that_arrive_have_their_labels_and_are_not_in_the_support():
    drawn = arrivals(support=ShotsPerClass(3), indices=range(8))
    assert (LABELS[drawn.query] == drawn.query_labels).all()
    for t in range(8):
        assert not set(drawn.query[t].tolist()) & set(drawn.support[t].tolist())


def test_a_small_concentration_brings_few_classes_at_a_time_and_keeps_them():
    found = []
    for concentration in (1e-3, 1.0, 1e4):
        labels = arrivals(concentration, indices=range(13)).query_labels
        found.append(np.mean([len(set(row)) for row in labels.tolist()]))
    assert found[0] < 2.5
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize(
    "spec",
    [
        TaskSpec(ShotsPerClass(2), Arrivals(5), 10),
        TaskSpec(ShotsPerClass(2), Arrivals(4), 10, n_classes=4),
        TaskSpec(ShotsPerClass(2), Arrivals(5), 10, unknown=UnknownClasses(1, 0.2)),
    ],
)
def test_arrivals_are_from_all_classes(spec):
    with pytest.raises(TaskError, match="items arrive from all 6 classes"):
        draw(LABELS, spec, 0, [0])


SIZES = [14, 9, 12, 20, 11, 16, 10, 13]
MIXED = np.repeat(np.arange(8), SIZES)[np.argsort(7919 * np.arange(sum(SIZES)) % 10_007)]
FIXED = FixedSupport([row for k in range(8) for row in np.flatnonzero(k == MIXED)[: 1 + k % 3]])
SUPPORTS = [ShotsPerClass(3), FIXED, FixedSupport.whole(MIXED)]
RULES = [UniformOverPool(2), Balanced(2), Dirichlet(2, 1.0)]


def row(value: np.ndarray, t: int) -> np.ndarray:
    return value[t if len(value) > 1 else 0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("support", SUPPORTS, ids=["shots", "fixed", "elsewhere"])
@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_what_a_draw_with_unknown_classes_promises(rule, support, n_classes, share):
    spec = TaskSpec(support, rule, n_query=10, n_classes=n_classes, unknown=UnknownClasses(2, share))
    drawn = draw(MIXED, spec, seed=3, indices=range(150))
    assert drawn.n_classes == (n_classes or 6)
    seen = set()
    for t in range(150):
        classes = row(drawn.classes, t)
        real = slice(None) if drawn.support_mask is None else drawn.support_mask[t]
        rows, support_labels = drawn.support[t][real], row(drawn.support_labels, t)[real]
        query, truth = drawn.query[t], drawn.query_labels[t]
        assert sorted(set(classes)) == classes.tolist()
        assert (MIXED[rows] == classes[support_labels]).all()
        assert set(support_labels) == set(range(drawn.n_classes))
        assert len(set(query)) == 10
        assert (truth == -1).sum() == round(10 * share)
        assert (MIXED[query[truth >= 0]] == classes[truth[truth >= 0]]).all()
        strangers = set(MIXED[query[truth == -1]])
        assert not strangers & set(classes)
        assert len(strangers) <= 2
        assert len(set(truth[truth >= 0])) <= 2
        if not drawn.support_elsewhere:
            assert not set(rows) & set(query)
        seen |= strangers
    assert seen == (set(range(8)) if share else set())


@pytest.mark.parametrize("support", SUPPORTS, ids=["shots", "fixed", "elsewhere"])
def test_a_task_with_unknown_classes_is_the_same_alone_in_a_range_and_in_any_order(support):
    spec = TaskSpec(support, UniformOverPool(2), n_query=10, unknown=UnknownClasses(2, 0.3))
    for index in (0, 63, 64, 150):
        alone = draw(MIXED, spec, 7, [index])
        for others, t in ((range(151), index), ([3, index, 2], 1)):
            among = draw(MIXED, spec, 7, others)
            assert (among.query[t] == alone.query[0]).all()
            assert (among.query_labels[t] == alone.query_labels[0]).all()
            assert (among.classes[t] == alone.classes[0]).all()
            width = alone.support.shape[1]
            assert (among.support[t][:width] == alone.support[0]).all()


def test_a_spec_without_unknown_classes_draws_what_it_always_drew():
    """Numbers of the version before unknown classes existed."""
    drawn = draw(MIXED, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 4, n_classes=3), 0, [5])
    assert drawn.classes.tolist() == [[2, 3, 6]]
    assert drawn.query.tolist() == [[16, 48, 66, 88]]


def test_impossible_numbers_of_unknown_classes_are_refused():
    with pytest.raises(TaskError, match="count of unknown classes must be a whole number of at least 1"):
        UnknownClasses(0, 0.5)
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), 10, n_classes=6, unknown=UnknownClasses(3, 0.5))
    with pytest.raises(TaskError, match="asks for 9 classes, 3 of them unknown, but the labels have 8"):
        draw(MIXED, spec, 0, [0])
    with pytest.raises(TaskError, match="known items of the query=7 cannot be shared equally by k_eff=2 classes"):
        TaskSpec(ShotsPerClass(2), Balanced(2), 10, unknown=UnknownClasses(1, 0.3))
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), 60, unknown=UnknownClasses(1, 0.8))
    with pytest.raises(TaskError, match=r"the pool of its 1 unknown classes has .* fewer than the 48 queries"):
        draw(MIXED, spec, 0, range(20))
