"""draw: what every task promises, and specs that are refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.errors import TaskError
from handful.fewshot import Balanced, Dirichlet, Draw, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, draw


@st.composite
def problems(draw_from) -> dict:
    """Sizes and rules for `pose`; the checker of annotations draws random numbers, so specs are made in the tests."""
    sizes = draw_from(st.lists(st.integers(6, 14), min_size=2, max_size=8))
    ways = draw_from(st.one_of(st.none(), st.integers(1, len(sizes))))
    return {
        "sizes": sizes,
        "ways": ways,
        "k_eff": draw_from(st.integers(1, ways or len(sizes))),
        "support": draw_from(st.sampled_from(["shots", "fixed", "elsewhere"])),
        "shots": draw_from(st.integers(1, 3)),
        "query": draw_from(st.sampled_from([UniformOverPool, Balanced, Dirichlet])),
        "each": draw_from(st.integers(1, 2)),
    }


def pose(problem: dict) -> tuple[np.ndarray, TaskSpec]:
    """Labels of unequal classes, well mixed, and a spec that they can serve."""
    sizes, k_eff = problem["sizes"], problem["k_eff"]
    labels = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(7919 * np.arange(sum(sizes)) % 10_007)]
    support = {
        "shots": ShotsPerClass(problem["shots"]),
        "fixed": FixedSupport([r for k in range(len(sizes)) for r in np.flatnonzero(labels == k)[: 1 + k % 3]]),
        "elsewhere": FixedSupport.whole(labels),
    }[problem["support"]]
    return labels, TaskSpec(support, problem["query"](k_eff), k_eff * problem["each"], problem["ways"])


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
    n_classes = spec.n_classes or labels.max() + 1
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
        assert labels[query].tolist() == [classes[k] for k in query_labels]
        assert set(support_labels) == set(range(n_classes))
        assert len(set(query_labels)) <= spec.query.k_eff


@given(problem=problems(), seed=st.integers(0, 100), index=st.integers(0, 150))
def test_a_task_is_the_same_alone_in_a_range_and_in_any_order(problem, seed, index):
    labels, spec = pose(problem)
    alone = task(draw(labels, spec, seed, [index]), 0)
    assert task(draw(labels, spec, seed, range(151)), index) == alone  # several chunks
    assert task(draw(labels, spec, seed, [3, index, 2]), 1) == alone


def test_a_published_task_never_changes():
    labels = np.repeat(np.arange(4), 10)
    drawn = draw(labels, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 6), 2020, [3])
    _, support, _, query, _ = task(drawn, 0)
    assert support == [8, 3, 11, 15, 28, 26, 35, 32]
    assert query == [2, 1, 36, 6, 34, 37]


@pytest.mark.parametrize(
    ("labels", "seed", "indices", "sentence"),
    [
        ([[0, 1]], 0, [0], "one axis"),
        ([0.0, 1.0], 0, [0], "got float64"),
        ([-1, 0], 0, [0], "class numbers"),
        ([], 0, [0], "class numbers"),
        ([0, 0, 1, 1], 0, [], "one or more task numbers"),
        ([0, 0, 1, 1], 0, [-3], "each at least 0"),
        ([0, 0, 1, 1], -1, [0], r"2\^64-1, got -1"),
    ],
)
def test_impossible_arguments_are_refused(labels, seed, indices, sentence):
    with pytest.raises(TaskError, match=sentence):
        draw(labels, TaskSpec(ShotsPerClass(1), UniformOverPool(1), 1), seed, indices)


def test_more_classes_than_there_are_is_refused():
    for sizes in ({"n_classes": 3}, {}):
        with pytest.raises(TaskError, match="asks for 3 classes but the labels have 2"):
            draw([0, 0, 1, 1], TaskSpec(ShotsPerClass(1), UniformOverPool(3), 1, **sizes), 0, [0])


def test_specs_are_values():
    one, two = (TaskSpec(FixedSupport([1, 2]), Dirichlet(2, 1.0), 6) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("query", "sizes", "sentence"),
    [
        (UniformOverPool(5), {"n_query": 0}, "at least 1"),
        (UniformOverPool(5), {"n_classes": 4}, "k_eff=5 .* n_classes=4"),
        (Balanced(4), {"n_query": 75}, "ask for 72 or 76 queries"),
        (Balanced(4), {"n_query": 3}, "ask for 4 or 4 queries"),
    ],
)
def test_impossible_specs_are_refused(query, sizes, sentence):
    with pytest.raises(TaskError, match=sentence):
        TaskSpec(ShotsPerClass(5), query, **sizes)


@pytest.mark.parametrize("rule", [UniformOverPool, Balanced, Dirichlet])
@pytest.mark.parametrize("k_eff", [0, -1, True])
def test_impossible_numbers_of_classes_are_refused(rule, k_eff):
    with pytest.raises(TaskError, match="k_eff must be a whole number of at least 1"):
        rule(k_eff)
