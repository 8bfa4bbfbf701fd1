"""Columns of each batch of a stack, and rows of a large batch."""

import numpy as np

from handful.model.arrays import chosen_columns, put_columns, spread_rows, take_columns


def stack():
    rng = np.random.default_rng(0)
    chosen = rng.random((4, 9)) < 0.4
    chosen[1] = False
    return rng.normal(size=(4, 3, 9)), chosen


def test_chosen_classes_are_there_in_order_and_no_class_twice():
    _, chosen = stack()
    for kept in (chosen, chosen[1:2], np.eye(4, 9) > 0, np.arange(9) >= 9 - np.arange(1, 5)[:, None]):
        columns = chosen_columns(kept)
        assert columns.shape == (len(kept), kept.sum(1).max())
        for own, found in zip(kept, columns, strict=True):
            assert np.isin(np.flatnonzero(own), found).all()
            assert (np.diff(found) > 0).all()


def test_a_stack_is_picked_and_put_like_each_of_its_batches():
    table, chosen = stack()
    columns, again = chosen_columns(chosen), table.copy()
    put_columns(again, columns, 2 * take_columns(table, columns))
    for one, own, found in zip(table, columns, again, strict=True):
        expected = one.copy()
        expected[:, own] *= 2
        assert np.array_equal(found, expected)
        assert np.array_equal(take_columns(one[None], own[None])[0], one[:, own])


def test_of_vectors_too():
    table, chosen = stack()
    assert np.array_equal(
        take_columns(table[:, 0], chosen_columns(chosen)), take_columns(table, chosen_columns(chosen))[:, 0]
    )


def test_rows_lie_in_equal_parts_of_the_batch():
    rows = spread_rows(100_000, 1000)
    np.testing.assert_array_equal(rows // 100, np.arange(1000))
    assert np.unique(rows % 100).size > 90  # a batch may have a period


def test_rows_of_a_batch_that_is_little_larger_are_chosen_once():
    for n_rows in (513, 700, 1023, 1025):
        rows = spread_rows(n_rows, 512)
        assert len(rows) == len(np.unique(rows)) == 512
        assert rows.max() < n_rows
