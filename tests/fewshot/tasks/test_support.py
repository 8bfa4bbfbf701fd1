import numpy as np
import pytest

from handful.fewshot import FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, draw
from handful.fewshot.tasks.support import ClassRows


def spec(support, **sizes) -> TaskSpec:
    return TaskSpec(support, UniformOverPool(2), **{"n_query": 6, **sizes})


LABELS = np.repeat(np.arange(5), [8, 9, 10, 11, 12])


def test_every_class_gets_its_shots():
    drawn = draw(LABELS, spec(ShotsPerClass(3)), 0, range(20))
    assert (LABELS[drawn.support] == np.repeat(np.arange(5), 3)).all()
    assert all(len(set(rows)) == 15 for rows in drawn.support)


def test_a_fixed_support_is_given_once_and_never_queried():
    rows = [0, 1, 9, 20, 30, 31, 32, 45]
    drawn = draw(LABELS, spec(FixedSupport(rows)), 0, range(200))
    assert drawn.support.shape == (1, 8)
    assert sorted(drawn.support[0]) == rows
    assert (LABELS[drawn.support] == drawn.support_labels).all()
    assert not np.isin(drawn.query, rows).any()
    assert set(drawn.query.ravel()) == set(range(50)) - set(rows)
    assert not drawn.support_elsewhere


def test_a_support_from_another_bank_leaves_all_rows_to_the_query():
    other = [4, 4, 3, 2, 1, 0, 0]
    drawn = draw(LABELS, spec(FixedSupport.whole(other)), 0, range(200))
    assert drawn.support_elsewhere
    assert drawn.support.tolist() == [[5, 6, 4, 3, 2, 0, 1]]
    assert drawn.support_labels.tolist() == [[0, 0, 1, 2, 3, 4, 4]]
    assert set(drawn.query.ravel()) == set(range(50))


def test_a_fixed_support_of_some_classes_is_padded():
    other = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    drawn = draw(LABELS, spec(FixedSupport.whole(other), n_classes=2), 0, range(100))
    for t in range(100):
        real = drawn.support_mask[t]
        rows, labels = drawn.support[t, real], drawn.support_labels[t, real]
        assert (other[rows] == drawn.classes[t, labels]).all()
        assert sorted(rows) == np.flatnonzero(np.isin(other, drawn.classes[t])).tolist()
    alone = draw(LABELS, spec(FixedSupport.whole(other), n_classes=2), 0, [70])
    np.testing.assert_array_equal(alone.support[alone.support_mask], drawn.support[70][drawn.support_mask[70]])


@pytest.mark.parametrize("n_classes", [5, 70_000])  # both ways of sorting
def test_rows_are_found_by_class_and_offset(n_classes):
    labels = np.random.default_rng(0).integers(0, 5, 40)
    found = ClassRows.of(labels, n_classes)
    assert found.sizes[:5].tolist() == [(labels == k).sum() for k in range(5)]
    for k in range(5):
        offsets = np.arange(found.sizes[k])
        np.testing.assert_array_equal(found.rows_at(np.full(len(offsets), k), offsets), np.flatnonzero(labels == k))
