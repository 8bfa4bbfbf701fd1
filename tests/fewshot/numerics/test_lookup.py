"""Points named by rows: the same points, the same sums, read no sooner than asked for."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.fewshot.numerics.lookup import Lookup, moments_of, read
from handful.fewshot.numerics.moments import labelled_moments


def lookup(seed: int, n_tasks: int = 3, n_points: int = 7) -> Lookup:
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    return Lookup(table, torch.randint(20, (n_tasks, n_points), generator=generator))


def test_points_are_the_rows_of_the_table():
    points = lookup(0)
    assert points.shape == points.read().shape == (3, 7, 4)
    assert (points.dtype, points.device, len(points)) == (torch.float64, torch.device("cpu"), 3)
    assert torch.equal(points.read()[2, 5], points.table[points.rows[2, 5]])
    assert torch.equal(points[1:].read(), points.read()[1:])
    assert torch.equal(points[torch.tensor([2, 0])].read(), points.read()[[2, 0]])
    assert torch.equal(read(points), read(points.read()))


@pytest.mark.parametrize("order", ["class by class", "class by class, the same in all tasks", "mixed", "masked"])
@given(seed=st.integers(0, 1000))
def test_moments_are_those_of_the_points(order, seed):
    points = lookup(seed)
    labels = torch.randint(3, (3, 7), generator=torch.Generator().manual_seed(seed))
    labels[:, :3] = torch.arange(3)
    mask = None
    if order == "class by class":
        labels = labels.sort(-1).values
    elif order == "class by class, the same in all tasks":
        labels = labels[:1].sort(-1).values.expand(3, -1)
    elif order == "masked":
        labels, mask = labels.sort(-1).values, torch.rand(3, 7) > 0.3
    found = moments_of(points, labels, mask, 3)
    expected = labelled_moments(points.read(), labels, mask, 3)
    torch.testing.assert_close(found.mass, expected.mass)
    torch.testing.assert_close(found.sums, expected.sums)


def test_a_function_of_points_sees_each_row_that_is_named_once():
    points = Lookup(torch.arange(8.0).reshape(4, 2), torch.tensor([[3, 1], [1, 3]]))
    seen = []
    result = points.each(lambda rows: seen.append(rows) or 10 * rows)
    assert torch.equal(result.read(), 10 * points.read())
    assert [rows.tolist() for rows in seen] == [[[2.0, 3.0], [6.0, 7.0]]]


def test_it_travels_without_the_rest_of_the_table():
    points = lookup(1, n_points=2)
    again = pickle.loads(pickle.dumps(points))
    assert torch.equal(again.read(), points.read())
    assert len(again.table) == 6
