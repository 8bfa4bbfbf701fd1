"""Transforms: formulas, masks, purity."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import handful
from handful import TaskBatch
from handful.errors import UnknownNameError
from tests.tasks_at_hand import ragged_tasks, random_task


@pytest.mark.parametrize("name", list(handful.TRANSFORMS))
def test_inputs_are_left_alone_and_padding_is_inert(name):
    tasks = ragged_tasks(3)
    padded = TaskBatch.pad(tasks)
    before = padded.query.clone(), padded.support.clone()
    result = handful.transform(name, padded)
    assert torch.equal(padded.query, before[0])
    assert torch.equal(padded.support, before[1])
    for t, task in enumerate(tasks):
        alone = handful.transform(name, task)
        torch.testing.assert_close(result.support[t, : alone.support.shape[1]], alone.support[0])
        torch.testing.assert_close(result.query[t, : alone.query.shape[1]], alone.query[0])


def test_l2_gives_unit_vectors_and_keeps_zero():
    task = random_task(0)
    task = task.with_features(1e-20 * task.support, task.query * (torch.arange(15) > 0)[:, None])
    unit = handful.transform("l2", task)
    torch.testing.assert_close(unit.support.norm(dim=-1), torch.ones_like(unit.support[..., 0]))
    assert (unit.query[:, 0] == 0).all()


@given(seed=st.integers(0, 1000))
def test_range_scaling_puts_the_query_into_the_unit_cube(seed):
    scaled = handful.transform("range_scale", random_task(seed)).query
    torch.testing.assert_close(scaled.amin(1), torch.zeros(3, 8, dtype=torch.float64))
    torch.testing.assert_close(scaled.amax(1), torch.ones(3, 8, dtype=torch.float64))


def test_a_constant_dimension_is_not_divided_by_zero():
    task = random_task(1)
    query = task.query.clone()
    query[..., 0] = 2.0
    task = task.with_features(task.support, query)
    for name in ("range_scale", "range_scale_public_code"):
        assert handful.transform(name, task).support.isfinite().all()


def test_a_shared_support_is_scaled_for_each_task():
    task = random_task(2)
    shared = TaskBatch(task.support[:1], task.support_labels[:1], task.query, task.n_classes)
    scaled = handful.transform("range_scale", shared)
    assert len(scaled.support) == 3
    alone = handful.transform("range_scale", shared.select(slice(2, 3)))
    torch.testing.assert_close(scaled.support[2], alone.support[0])


def test_an_unknown_transform_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="no transform is called 'sphere'; there are raw, l2"):
        handful.transform("sphere", random_task(0))
