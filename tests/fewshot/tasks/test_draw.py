"""draw: what every task promises, and specs that are refused."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.errors import TaskError
from handful_fewshot import (
    Balanced,
    CorrelatedStream,
    Dirichlet,
    Draw,
    FixedSupport,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
    draw,
)

RULES = {
    "uniform": UniformOverPool,
    "balanced": Balanced,
    "dirichlet": Dirichlet,
    "stream": partial(CorrelatedStream, slots=3, concentration=0.5, batches=2),
}


@st.composite
def problems(draw_from) -> dict:
    """Sizes and rules for `pose`; the checker of annotations draws random numbers, so specs are made in the tests."""
    sizes = draw_from(st.lists(st.integers(8, 14), min_size=3, max_size=8))
    query = draw_from(st.sampled_from(list(RULES)))
    n_unknown = draw_from(st.integers(0, 0 if query == "stream" else 2))
    left = len(sizes) - n_unknown
    ways = draw_from(st.one_of(st.none(), st.integers(1, left)))
    most = draw_from(st.integers(1, ways or left))
    return {
        "sizes": sizes,
        "ways": ways,
        "k_eff": (most if query == "balanced" else draw_from(st.integers(1, most)), most),
        "support": draw_from(st.sampled_from(["shots", "fixed", "elsewhere"])),
        "shots": draw_from(st.integers(1, 3)),
        "query": query,
        "each": draw_from(st.integers(1, 2)),
        "unknown": (n_unknown, draw_from(st.integers(0, 4)) if n_unknown else 0),
    }


def pose(problem: dict) -> tuple[np.ndarray, TaskSpec]:
    """Labels of unequal classes, well mixed, and a spec that they can serve."""
    sizes, k_eff, (n_unknown, strangers) = problem["sizes"], problem["k_eff"], problem["unknown"]
    labels = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(7919 * np.arange(sum(sizes)) % 10_007)]
    support = {
        "shots": ShotsPerClass(problem["shots"]),
        "fixed": FixedSupport([r for k in range(len(sizes)) for r in np.flatnonzero(labels == k)[: 1 + k % 3]]),
        "elsewhere": FixedSupport.whole(labels),
    }[problem["support"]]
    n_query = k_eff[0] * problem["each"] + strangers
    unknown = UnknownClasses(n_unknown, strangers / n_query) if n_unknown else None
    return labels, TaskSpec(support, RULES[problem["query"]](k_eff), n_query, problem["ways"], unknown)


def task(drawn: Draw, t: int) -> tuple[list[int], ...]:
    """Everything about the t-th task, padding removed."""

    def row(value):
        return value[t if len(value) > 1 else 0]

    real = slice(None) if drawn.support_mask is None else row(drawn.support_mask)
    return (
        row(drawn.classes).tolist(),
        row(drawn.support)[real].tolist(),
        row(drawn.support_labels)[real].tolist(),
        drawn.query[t].tolist(),
        drawn.query_labels[t].tolist(),
    )


@given(problem=problems(), seed=st.integers(0, 2**64 - 1))
def test_what_every_draw_promises(problem, seed):
    labels, spec = pose(problem)
    drawn = draw(labels, spec, seed, range(5, 12))
    n_unknown, n_strangers = problem["unknown"]
    n_classes = spec.n_classes or labels.max() + 1 - n_unknown
    assert drawn.indices.tolist() == list(range(5, 12))
    for t in range(7):
        classes, support, support_labels, query, query_labels = task(drawn, t)
        assert len(classes) == n_classes
        assert classes == sorted(set(classes))
        assert len(query) == len(set(query)) == spec.n_query
        assert len(support) == len(set(support))
        if not drawn.support_elsewhere:
            assert not set(support) & set(query)
        assert labels[support].tolist() == [classes[k] for k in support_labels]
        assert set(support_labels) == set(range(n_classes))
        known = [(row, k) for row, k in zip(query, query_labels, strict=True) if k >= 0]
        assert all(labels[row] == classes[k] for row, k in known)
        assert len({k for _, k in known}) <= problem["k_eff"][1]
        strangers = {labels[row] for row, k in zip(query, query_labels, strict=True) if k == -1}
        assert len(known) == spec.n_query - n_strangers
        assert len(strangers) <= n_unknown
        assert not strangers & set(classes)


@given(problem=problems(), seed=st.integers(0, 100), index=st.integers(0, 150))
def test_a_task_is_the_same_alone_in_a_range_and_in_any_order(problem, seed, index):
    labels, spec = pose(problem)
    alone = task(draw(labels, spec, seed, [index]), 0)
    assert task(draw(labels, spec, seed, range(151)), index) == alone
    assert task(draw(labels, spec, seed, [3, index, 2]), 1) == alone


def test_a_published_task_never_changes():
    labels = np.repeat(np.arange(4), 10)
    _, support, _, query, _ = task(draw(labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 6), 2020, [3]), 0)
    assert support == [8, 3, 11, 15, 28, 26, 35, 32]
    assert query == [2, 1, 36, 6, 34, 37]
    for rule in (Balanced(2), Dirichlet(2)):
        assert draw(labels, TaskSpec(ShotsPerClass(2), rule, 6), 2020, [3]).query.tolist() == [[1, 7, 9, 33, 37, 38]]
    some = draw(labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 4, n_classes=3), 0, [5])
    assert some.classes.tolist() == [[1, 2, 3]]


def test_specs_are_values():
    one, two = (TaskSpec(FixedSupport([1, 2]), Dirichlet(2, 1.0), 6) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert Balanced(2) != UniformOverPool(2)


LABELS = np.repeat(np.arange(6), [10, 15, 20, 25, 30, 35])


def drawn_with(support=None, query=None, *sizes, labels=LABELS, seed=0, indices=range(20), **more):
    spec = TaskSpec(support or ShotsPerClass(2), query or UniformOverPool(2), *sizes, **more)
    return draw(labels, spec, seed, indices)


REFUSED = {
    r"one axis": lambda: drawn_with(labels=[[0, 1]]),
    r"got float64": lambda: drawn_with(labels=[0.0, 1.0]),
    r"class numbers": lambda: drawn_with(labels=[-1, 0]),
    r"class numbers 0, 1": lambda: drawn_with(labels=[]),
    r"one or more task numbers": lambda: drawn_with(indices=[]),
    r"each at least 0": lambda: drawn_with(indices=[-3]),
    r"2\^64-1, got -1": lambda: drawn_with(seed=-1),
    r"asks for 7 classes but the labels have 6": lambda: drawn_with(n_classes=7),
    r"asks for 8 classes but the labels": lambda: drawn_with(None, UniformOverPool(8)),
    r"asks for 9 classes, 3 of them unknown, but": lambda: drawn_with(n_classes=6, unknown=UnknownClasses(3, 0.5)),
    r"n_query must be a whole number of at least 1": lambda: drawn_with(n_query=0),
    r"k_eff=5 .* n_classes=4": lambda: drawn_with(None, UniformOverPool(5), n_classes=4),
    r"ask for 72 or 76 queries": lambda: drawn_with(None, Balanced(4), 75),
    r"ask for 4 or 4 queries": lambda: drawn_with(None, Balanced(4), 3),
    r"k_eff=2-4 classes; ask for 12 or 24 queries": lambda: drawn_with(None, Balanced((2, 4)), 20),
    r"k_eff=2-5 .* n_classes=4": lambda: drawn_with(None, UniformOverPool((2, 5)), n_classes=4),
    r"a pair \(low, high\) with low <= high, got \(3, 2\)": lambda: UniformOverPool((3, 2)),
    r"a pair \(low, high\) with low <= high, got \(1, 2, 3\)": lambda: UniformOverPool((1, 2, 3)),
    r"a stream has no unknown classes": lambda: drawn_with(
        None, CorrelatedStream(2), 4, unknown=UnknownClasses(1, 0.5)
    ),
    r"slots must be a whole number of at least 1": lambda: CorrelatedStream(2, slots=0),
    r"batches must be a whole number of at least 1": lambda: CorrelatedStream(2, batches=0),
    r"positive number, got -0.5": lambda: CorrelatedStream(2, concentration=-0.5),
    r"task 3: without the support, the pool of its query's 6 .* 123 rows left, fewer than the 160": lambda: drawn_with(
        None, CorrelatedStream(6), 8, indices=[3]
    ),
    r"known items of the query=7 cannot be shared": lambda: drawn_with(
        None, Balanced(2), 10, unknown=UnknownClasses(1, 0.3)
    ),
    **{f"k_eff must be .* got {k}": lambda k=k: UniformOverPool(k) for k in (0, -1, True)},
    **{f"positive number, got {a}": lambda a=a: Dirichlet(3, a) for a in (0.0, -1.0, np.inf, np.nan)},
    r"count of unknown classes must be": lambda: UnknownClasses(0, 0.5),
    r"share of unknown items must lie in 0": lambda: UnknownClasses(1, 1.5),
    r"task 0: without the support, the pool of its query's 1 .* fewer than the 34": lambda: drawn_with(
        None, UniformOverPool(1), 34
    ),
    r"a class of its query has 8 rows left, fewer than the 9": lambda: drawn_with(None, Balanced(6), 54),
    r"has 123 rows left, fewer than the 124": lambda: drawn_with(None, Dirichlet(6), 124),
    r"1000 draws of Dirichlet proportions": lambda: drawn_with(None, Dirichlet(6, 0.01), 100),
    r"pool of its 1 unknown classes has .* fewer than the 48": lambda: drawn_with(
        n_query=60, unknown=UnknownClasses(1, 0.8)
    ),
    r"shots must be a whole number of at least 1": lambda: ShotsPerClass(0),
    r"class 0 has 10 rows, fewer than the 11 shots .*\(1 such classes\)": lambda: drawn_with(ShotsPerClass(11)),
    r"distinct row numbers, at least one": lambda: FixedSupport([]),
    r"must be distinct": lambda: FixedSupport([1, 1]),
    r"distinct row numbers": lambda: FixedSupport([-1]),
    r"each of its 2 rows, got 1": lambda: FixedSupport([1, 2], [0]),
    r"no row of class 2 \(4 such classes\)": lambda: drawn_with(FixedSupport([0, 10])),
    r"contains row 135, but there are 135 rows": lambda: drawn_with(FixedSupport([135])),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(sentence):
    with pytest.raises(TaskError, match=sentence):
        REFUSED[sentence]()
