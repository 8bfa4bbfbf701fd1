import numpy as np
import pytest

from handful.fewshot.tasks.class_rows import ClassRows


@pytest.mark.parametrize("n_classes", [5, 70_000])  # both ways of sorting
def test_rows_are_found_by_class_and_offset(n_classes):
    labels = np.random.default_rng(0).integers(0, 5, 40)
    found = ClassRows.of(labels, n_classes)
    assert found.sizes[:5].tolist() == [(labels == k).sum() for k in range(5)]
    for k in range(5):
        offsets = np.arange(found.sizes[k])
        np.testing.assert_array_equal(found.rows_at(np.full(len(offsets), k), offsets), np.flatnonzero(labels == k))


def test_rows_may_have_numbers_of_their_own():
    found = ClassRows.of(np.array([1, 0, 1]), 2, np.array([10, 20, 30]))
    assert found.rows_at(np.array([0, 1, 1]), np.array([0, 0, 1])).tolist() == [20, 10, 30]
