"""Columns that differ from batch to batch of a stack."""

import numpy as np

from handful.engine.columns import pick, put, where


def stack():
    rng = np.random.default_rng(0)
    chosen = rng.random((4, 9)) < 0.4
    chosen[1] = False
    return rng.normal(size=(4, 3, 9)), chosen


def test_chosen_classes_come_first_and_no_class_twice():
    _, chosen = stack()
    columns = where(chosen)
    assert columns.shape == (4, chosen.sum(1).max())
    for own, found in zip(chosen, columns, strict=True):
        assert found[: own.sum()].tolist() == np.flatnonzero(own).tolist()
        assert len(set(found.tolist())) == len(found)


def test_a_stack_is_picked_and_put_like_each_of_its_batches():
    table, chosen = stack()
    columns, again = where(chosen), table.copy()
    put(again, columns, 2 * pick(table, columns))
    for one, own, found in zip(table, columns, again, strict=True):
        expected = one.copy()
        put(expected, own, 2 * pick(one, own))
        assert np.array_equal(found, expected)
        assert np.array_equal(pick(one, own), one[:, own])


def test_of_vectors_too():
    table, chosen = stack()
    assert np.array_equal(pick(table[:, 0], where(chosen)), pick(table, where(chosen))[:, 0])
