"""TaskBatch: what it accepts, and the sentences with which it refuses."""

import numpy as np
import pytest
import torch

from handful.errors import TaskError
from handful_fewshot import TaskBatch
from tests.tasks_at_hand import ragged_tasks, random_task


def pieces(**changes):
    """Arguments of a good batch of two tasks, with changes."""
    arguments = {
        "support": torch.arange(24.0).reshape(2, 4, 3),
        "support_labels": torch.tensor([[0, 1, 0, 1], [1, 1, 0, 0]]),
        "query": torch.ones(2, 5, 3),
        "n_classes": 2,
    }
    return arguments | changes


def with_value(tensor: torch.Tensor, index, value) -> torch.Tensor:
    changed = tensor.clone()
    changed[index] = value
    return changed


def test_numpy_is_accepted_without_a_copy():
    support = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    task = TaskBatch(support, np.array([[0, 1, 0, 1]] * 2, dtype=np.int32), np.ones((2, 5, 3), np.float32), 2)
    assert task.support_labels.dtype == torch.int64
    assert task.support.data_ptr() == support.ctypes.data


def named_task(seed: int, n_named: int = 3, **shape) -> TaskBatch:
    """A random task whose classes have names."""
    task = random_task(seed, **shape)
    generator = torch.Generator().manual_seed(seed)
    names = torch.randn(n_named, task.n_classes, task.dim, dtype=task.dtype, generator=generator)
    return TaskBatch(task.support, task.support_labels, task.query, task.n_classes, names=names)


NO_TASK = {"query": torch.ones(0, 5, 3), "support": torch.ones(1, 4, 3), "support_labels": torch.tensor([[0, 1, 0, 1]])}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"support": with_value(pieces()["support"], (1, 2, 0), float("nan"))},
            r"support has 1 row.* 1, row 2; drop",
        ),
        ({"query": with_value(pieces()["query"], (0, 4, 1), float("inf"))}, r"query has 1 row.*at task 0, row 4"),
        ({"support_labels": torch.tensor([[0, 1, 0, 1], [1, 1, 1, 1]])}, r"class 0 has none in task 1; add an example"),
        ({"support_labels": torch.tensor([[0, 1, 0, 5], [1, 1, 0, 0]])}, r"in 0 … 1 .*, got 5 at task 0, row 3"),
        ({"support_labels": torch.tensor([[0, 1, 0, -1], [1, 1, 0, 0]])}, r"got -1 at task 0, row 3"),
        ({"support_labels": torch.ones(2, 4)}, r"must be integers 0 … n_classes-1, got torch.float32; encode them"),
        ({"query": torch.ones(2, 5, 3).half()}, r"query must be float32 or float64, got torch.float16; convert"),
        ({"query": torch.ones(2, 5, 3).double()}, r"support is torch.float32 but query is torch.float64"),
        ({"query": torch.ones(2, 5, 4)}, r"axis 'dim' has length 4 in query but 3 in support: make them equal"),
        ({"support_labels": torch.zeros(2, 3).long()}, r"axis 'support' has length 4 in support but 3 in"),
        (
            {"support": torch.ones(3, 4, 3)},
            r"length 2 in query but 3 in support: .* all tasks share",
        ),
        ({"query": torch.ones(5, 3)}, r"query must have the axes \(task, query, dim\), got shape \(5, 3\)"),
        ({"query": torch.ones(2, 0, 3)}, r"axis 'query' of query is empty"),
        ({"query_mask": torch.ones(2, 5)}, r"query_mask must be boolean, True where a row is real, got torch.float32"),
        ({"query_mask": torch.ones(2, 6).bool()}, r"axis 'query' has length 5 in query but 6 in query_mask"),
        ({"query_mask": torch.tensor([[True] * 5, [False] * 5])}, r"query_mask leaves task 1 without any query"),
        (NO_TASK, r"axis 'task' of query is empty \(shape \(0, 5, 3\)\)"),
        ({"n_classes": True}, r"n_classes must be a whole number of at least 1, got True"),
        ({"names": torch.ones(1, 3, 3)}, r"axis 'class' has length 2 in n_classes but 3 in names: make them equal"),
        ({"names": torch.ones(3, 2, 3)}, r"axis 'task' has length 2 in query but 3 in names"),
        ({"names": torch.ones(2, 2, 4)}, r"axis 'dim' has length 3 in query but 4 in names"),
        ({"names": torch.ones(2, 2, 3).double()}, r"names is torch.float64 but query is torch.float32"),
        ({"names": torch.full((1, 2, 3), float("nan"))}, r"names has 2 row.*at task 0, row 0"),
        ({"support": np.array([["a"]])}, r"support must be a tensor or a NumPy array of numbers, got ndarray"),
    ],
)
def test_mistakes_are_refused_with_a_sentence(changes, sentence):
    with pytest.raises(TaskError, match=sentence):
        TaskBatch(**pieces(**changes))


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ([], "give at least one"),
        ([random_task(0), random_task(0, dim=3)], r"and dim \[3, 8\]; solve them"),
        ([random_task(0), named_task(0)], r"1 of 2 tasks have names of their classes; give names to all"),
    ],
)
def test_tasks_that_cannot_be_one_batch_are_refused(tasks, sentence):
    with pytest.raises(TaskError, match=sentence):
        TaskBatch.pad(tasks)


def test_padding_keeps_every_task():
    tasks = ragged_tasks(0)
    padded = TaskBatch.pad(tasks)
    for t, task in enumerate(tasks):
        s, q = task.support.shape[1], task.query.shape[1]
        assert torch.equal(padded.support[t, :s], task.support[0])
        assert torch.equal(padded.query[t, :q], task.query[0])
        assert padded.support_mask[t].sum() == s
        assert padded.n_query[t] == q


def test_selecting_tasks_keeps_a_shared_support_shared():
    task = random_task(0)
    shared = TaskBatch(task.support[:1], task.support_labels[:1], task.query, task.n_classes)
    chosen = shared.select(torch.tensor([2, 0]))
    assert len(chosen.support) == 1
    assert torch.equal(chosen.query, task.query[[2, 0]])


def test_blocks_are_all_tasks_in_order_and_fit_the_cache():
    task = random_task(0, n_tasks=5)
    assert len(list(task.blocks(100))) == 1
    parts = list(task.blocks(100, 250))
    assert [part.n_tasks for part in parts] == [2, 2, 1]
    assert torch.equal(torch.cat([part.query for part in parts]), task.query)


def test_names_go_with_their_tasks():
    task = named_task(0)
    assert torch.equal(task.select(torch.tensor([2, 0])).names, task.names[[2, 0]])
    shared = named_task(1, n_named=1)
    assert len(shared.select(slice(0, 2)).names) == 1
    padded = TaskBatch.pad([task, shared])
    assert torch.equal(padded.names, torch.cat([task.names, shared.names.expand(3, -1, -1)]))
    parts = list(task.blocks(100, 100))
    assert torch.equal(torch.cat([part.names for part in parts]), task.names)
    single = TaskBatch.single([[0.0], [1.0]], [0, 1], [[0.5]], 2, names=[[2.0], [3.0]])
    assert single.names.tolist() == [[[2.0], [3.0]]]
    assert TaskBatch.pad([random_task(0)]).names is None
