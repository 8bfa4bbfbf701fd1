"""Tasks one by one: each reaches the solver without its padding, and its answer comes back to its place."""

import torch

from handful.fewshot import TaskBatch
from handful.fewshot.solvers.one_by_one import first_of_each_class, solve_each
from tests.tasks_at_hand import ragged_tasks


def test_a_task_is_solved_without_its_padding_and_put_back():
    tasks, seen = ragged_tasks(0), []

    def solve_one(support, labels, query):
        seen.append((support, labels, query))
        return (query[:, :5] ** 2).log_softmax(-1), len(seen), len(seen) != 2

    solution = solve_each(TaskBatch.pad(tasks), solve_one)
    for t, (task, arrays) in enumerate(zip(tasks, seen, strict=True)):
        n = task.query_slots
        for found, expected in zip(arrays, (task.support, task.support_labels, task.query), strict=True):
            torch.testing.assert_close(found, expected[0])
        expected = (task.query[0, :, :5] ** 2).softmax(-1)
        torch.testing.assert_close(solution.log_assignments[t, :n].exp(), expected)
        torch.testing.assert_close(solution.proportions[t], expected.mean(0))
        assert solution.log_assignments[t, n:].isneginf().all()
    assert solution.n_iter.tolist() == [1, 2, 3, 4]
    assert solution.converged.tolist() == [True, False, True, True]


def test_the_first_of_each_class_are_those_of_sorting_each_class():
    generator = torch.Generator().manual_seed(0)
    labels, coarse = (torch.randint(4, (40,), generator=generator) for _ in range(2))
    fine = torch.rand(40, generator=generator)
    found = first_of_each_class(labels, (coarse, fine), 3).tolist()
    for k in range(4):
        own = sorted((n for n in range(40) if labels[n] == k), key=lambda n: (coarse[n], fine[n]))
        assert [n for n in found if labels[n] == k] == own[:3]
    assert first_of_each_class(labels[:0], (fine[:0],), 3).tolist() == []
