"""The loop, on a problem whose path is known: halve the distance to a target at every step."""

from dataclasses import dataclass

import torch

from handful_fewshot.numerics.fixed_point import concatenated, fixed_point, take


@dataclass(frozen=True)
class Target:
    value: torch.Tensor


def halve(problem: Target, state: torch.Tensor):
    state = (state + problem.value) / 2
    return state, Target(state)


def run(starts, *, tol, max_iter=50, observe=None):
    starts = torch.tensor(starts, dtype=torch.float64)
    target, change = Target(torch.zeros(1, dtype=torch.float64)), lambda _, new, old: (new - old).abs()
    return fixed_point(halve, change, target, starts, max_iter=max_iter, tol=tol, observe=observe)


def test_every_task_stops_by_itself_and_keeps_what_it_had_then():
    # From 2^k the move at iteration n is 2^(k-n): it is at most 1 for the first time at n = k.
    outcome = run([2.0**k for k in (3, 1, 7, 5)], tol=1.0)
    assert outcome.n_iter.tolist() == [3, 1, 7, 5]
    assert outcome.answer.value.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert outcome.converged.all()


def test_tasks_that_do_not_converge_take_all_iterations():
    outcome = run([2.0**20, 2.0], tol=1.0, max_iter=4)
    assert outcome.n_iter.tolist() == [4, 1]
    assert outcome.converged.tolist() == [False, True]
    assert outcome.answer.value.tolist() == [2.0**16, 1.0]


def test_a_trace_repeats_the_last_value_of_a_task_that_stopped():
    outcome = run([4.0, 16.0], tol=1.0, observe=lambda answer, rows: answer.value + 100 * rows)
    assert outcome.trace.observed.tolist() == [[2.0, 1.0, 1.0, 1.0], [108.0, 104.0, 102.0, 101.0]]
    assert outcome.trace.change.tolist() == [[2.0, 1.0, 1.0, 1.0], [8.0, 4.0, 2.0, 1.0]]
    assert (outcome.trace.seconds.diff() >= 0).all()


def test_taking_tasks_leaves_what_is_shared():
    tree = Target(torch.arange(3))
    assert take(tree, torch.tensor([True, False, True]), 3).value.tolist() == [0, 2]
    assert take(tree, torch.tensor([2, 1]), 3).value.tolist() == [2, 1]
    assert take(Target(torch.tensor([7])), torch.tensor([True, False, True]), 3).value.tolist() == [7]


def test_matrices_that_lie_column_by_column_stay_so():
    tree = Target(torch.arange(24.0).reshape(2, 4, 3).mT)
    for taken in (take(tree, torch.tensor([1, 0]), 2), concatenated([tree, tree])):
        assert taken.value.mT.is_contiguous()
    assert torch.equal(concatenated([tree, tree]).value, torch.cat([tree.value, tree.value]))
