import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, kstest, multivariate_hypergeom

from handful import Balanced, Dirichlet, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful.errors import TaskError
from handful.tasks.query import round_to_sum

LABELS = np.repeat(np.arange(6), [10, 15, 20, 25, 30, 35])


def counts(query, n_query, n_tasks, labels=LABELS, seed=0) -> np.ndarray:
    """Queries of each class of the bank, [task, class]."""
    drawn = draw(labels, TaskSpec(ShotsPerClass(2), query, n_query), seed, range(n_tasks))
    return np.stack([np.bincount(row, minlength=labels.max() + 1) for row in drawn.query_labels])


def test_balanced_queries_are_shared_equally():
    found = counts(Balanced(3), 12, 50)
    assert (np.sort(found, -1)[:, -3:] == 4).all()
    assert (found.sum(-1) == 12).all()


@given(seed=st.integers(0, 1000), concentration=st.sampled_from([0.1, 1.0, 2.0, 50.0]), k_eff=st.integers(1, 6))
def test_dirichlet_counts_sum_to_the_query_and_fit_the_classes(seed, concentration, k_eff):
    found = counts(Dirichlet(k_eff, concentration), 8, 5, seed=seed)
    assert (found.sum(-1) == 8).all()
    assert ((found > 0).sum(-1) <= k_eff).all()
    assert (found <= np.bincount(LABELS) - 2).all()


def test_concentration_governs_the_imbalance():
    labels = np.repeat(np.arange(5), 200)
    spread = [counts(Dirichlet(5, a), 75, 200, labels).std(-1).mean() for a in (0.5, 2.0, 1000.0)]
    assert spread[0] > 1.5 * spread[1] > 4 * spread[2]


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), total=st.integers(1, 200))
def test_rounding_keeps_the_sum_and_stays_within_one(seed, n, total):
    proportions = np.random.default_rng(seed).dirichlet(np.ones(n))
    found = round_to_sum(proportions, total)
    assert found.sum() == total
    assert (found >= 0).all()
    assert (np.abs(found - proportions * total) < 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        ([1.6, 1.7, 1.7], [1, 2, 2]),  # 6 is one too many: the one nearest ½ goes down
        ([1.4, 1.3, 1.3], [2, 1, 1]),  # 3 is one too few: the one nearest ½ goes up
        ([2.6, 1.6, 0.4, 0.4], [3, 2, 0, 0]),  # the sum is right already
    ],
)
def test_rounding_moves_what_is_nearest_one_half(exact, expected):
    total = round(sum(exact))
    assert round_to_sum(np.array(exact) / total, total).tolist() == expected


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
def test_uniform_draws_follow_class_sizes():
    found = counts(UniformOverPool(6), 30, 40_000)
    free = np.bincount(LABELS) - 2
    assert chisquare(found.sum(0), 30 * 40_000 * free / free.sum()).pvalue > 1e-4
    # Not only the means: the count of each class is hypergeometric.
    for k, m in enumerate(free):
        values = np.arange(m + 1)
        law = np.exp(multivariate_hypergeom.logpmf(np.stack([values, 30 - values], -1), [m, free.sum() - m], 30))
        law = np.where(np.isfinite(law), law, 0) * 40_000
        seen = np.bincount(found[:, k], minlength=m + 1)
        often = law > 5
        rest = [seen[~often].sum()], [law[~often].sum()]
        if rest[1][0] < 1:
            continue
        pooled = np.concatenate([seen[often], rest[0]]), np.concatenate([law[often], rest[1]])
        assert chisquare(pooled[0], pooled[1] * pooled[0].sum() / pooled[1].sum()).pvalue > 1e-4


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
