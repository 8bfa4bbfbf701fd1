import dataclasses

import numpy as np
import pytest

from handful.errors import TaskError
from handful.fewshot import (
    Balanced,
    Dirichlet,
    FixedSupport,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
    draw,
    gather,
)
from tests.banks_at_hand import random_bank

SIZES = [14, 9, 12, 20, 11, 16, 10, 13]
LABELS = np.repeat(np.arange(8), SIZES)[np.argsort(7919 * np.arange(sum(SIZES)) % 10_007)]
FIXED = FixedSupport([row for k in range(8) for row in np.flatnonzero(k == LABELS)[: 1 + k % 3]])
SUPPORTS = [ShotsPerClass(3), FIXED, FixedSupport.whole(LABELS)]
RULES = [UniformOverPool(2), Balanced(2), Dirichlet(2, 1.0)]


def row(value: np.ndarray, t: int) -> np.ndarray:
    return value[t if len(value) > 1 else 0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("support", SUPPORTS, ids=["shots", "fixed", "elsewhere"])
@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_what_a_draw_with_unknown_classes_promises(rule, support, n_classes, share):
    spec = TaskSpec(support, rule, n_query=10, n_classes=n_classes, unknown=UnknownClasses(2, share))
    drawn = draw(LABELS, spec, seed=3, indices=range(150))
    assert drawn.n_classes == (n_classes or 6)
    seen = set()
    for t in range(150):
        classes = row(drawn.classes, t)
        real = slice(None) if drawn.support_mask is None else drawn.support_mask[t]
        rows, support_labels = drawn.support[t][real], row(drawn.support_labels, t)[real]
        query, truth = drawn.query[t], drawn.query_labels[t]
        assert sorted(set(classes)) == classes.tolist()
        assert (LABELS[rows] == classes[support_labels]).all()
        assert set(support_labels) == set(range(drawn.n_classes))
        assert len(set(query)) == 10
        assert (truth == -1).sum() == round(10 * share)
        assert (LABELS[query[truth >= 0]] == classes[truth[truth >= 0]]).all()
        strangers = set(LABELS[query[truth == -1]])
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
        alone = draw(LABELS, spec, 7, [index])
        for others, t in ((range(151), index), ([3, index, 2], 1)):
            among = draw(LABELS, spec, 7, others)
            assert (among.query[t] == alone.query[0]).all()
            assert (among.query_labels[t] == alone.query_labels[0]).all()
            assert (among.classes[t] == alone.classes[0]).all()
            width = alone.support.shape[1]
            assert (among.support[t][:width] == alone.support[0]).all()


def test_a_spec_without_unknown_classes_draws_what_it_always_drew():
    """Numbers of the version before unknown classes existed."""
    drawn = draw(LABELS, TaskSpec(ShotsPerClass(2), UniformOverPool(2), 4, n_classes=3), 0, [5])
    assert drawn.classes.tolist() == [[2, 3, 6]]
    assert drawn.query.tolist() == [[16, 48, 66, 88]]


def test_a_task_does_not_tell_which_items_are_unknown():
    """Features and support are those of the rows; only the truth beside them has -1."""
    bank = random_bank(n_classes=5, least=10, most=10)
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), n_query=8, unknown=UnknownClasses(1, 0.5))
    drawn = draw(bank.labels, spec, 0, range(3))
    task, truth = gather(bank, drawn)
    assert (truth == -1).sum(-1).tolist() == [4, 4, 4]
    assert task.n_classes == 4
    assert (task.query.numpy() == bank.take(drawn.query)).all()
    other = dataclasses.replace(drawn, query_labels=np.zeros_like(drawn.query_labels))
    assert (gather(bank, other)[0].query == task.query).all()


@pytest.mark.parametrize(("share", "n_query", "n_items"), [(0.5, 75, 38), (0.1, 75, 8), (0.3, 60, 18), (1 / 3, 75, 25)])
def test_a_half_is_rounded_up(share, n_query, n_items):
    assert UnknownClasses(1, share).n_items(n_query) == n_items


def test_impossible_numbers_of_unknown_classes_are_refused():
    with pytest.raises(TaskError, match="count of unknown classes must be a whole number of at least 1"):
        UnknownClasses(0, 0.5)
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), 10, n_classes=6, unknown=UnknownClasses(3, 0.5))
    with pytest.raises(TaskError, match="asks for 9 classes, 3 of them unknown, but the labels have 8"):
        draw(LABELS, spec, 0, [0])
    with pytest.raises(TaskError, match="known items of the query=7 cannot be shared equally by k_eff=2 classes"):
        TaskSpec(ShotsPerClass(2), Balanced(2), 10, unknown=UnknownClasses(1, 0.3))
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), 60, unknown=UnknownClasses(1, 0.8))
    with pytest.raises(TaskError, match=r"the pool of its 1 unknown classes has .* fewer than the 48 queries"):
        draw(LABELS, spec, 0, range(20))
