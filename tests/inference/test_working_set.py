"""The working set: who leaves, who is checked, and that answers come back in full width."""

from functools import partial

import pytest
import torch

from handful import TaskBatch
from handful.inference import working_set
from handful.inference.frame import Frame
from handful.inference.working_set import WorkingSetProblem, WorkingSetState, iterate, narrow, restrict, would_return
from handful.methods import paddle
from tests.tasks_at_hand import random_task

step = partial(paddle.step, floor=0.0)


def posed(frame: Frame) -> tuple[WorkingSetProblem, WorkingSetState]:
    problem = WorkingSetProblem(frame.space("gram", 9), frame.query_mask, frame.n_query, torch.ones_like(frame.n_query))
    return problem, paddle.init(problem)


def run(task: TaskBatch, size: int, **settings):
    """Iterate with blocks of that many tasks."""
    frame = Frame(task)
    blocks = [frame.select(slice(start, start + size)) for start in range(0, task.n_tasks, size)]
    return iterate(step, posed, frame, blocks, **{"max_iter": 100, "tol": 1e-6, **settings})


def test_absent_classes_leave_the_computation_and_the_others_go_on_alike():
    problem, state = whole, of_whole = posed(Frame(random_task(5, n_tasks=2, n_classes=40, n_query=30, spread=0.5)))
    for _ in range(8):
        before = state
        of_whole, u_whole = step(whole, of_whole)
        state, u = step(problem, state)
        if problem.classes is not None:
            kept = problem.classes.unsqueeze(1).expand_as(u.weights)
            torch.testing.assert_close(u.weights, u_whole.weights.gather(-1, kept), atol=1e-4, rtol=0)
        problem, state = narrow(problem, state, before)
    assert problem.classes.shape[-1] <= 16
    assert state.dual.shape == problem.classes.shape


def test_nothing_is_narrowed_while_most_classes_hold_mass():
    task = random_task(0, n_classes=12)
    problem, start = posed(Frame(task.with_features(0.1 * task.support, 0.1 * task.query)))
    state, _ = step(problem, start)
    same, after = narrow(problem, state, start)
    assert same is problem
    assert torch.equal(after.dual, state.dual)


@pytest.mark.parametrize(("share", "before", "leaves"), [(1e-2, 1e-1, False), (1e-4, 1e-1, True), (1e-6, 2e-6, False)])
def test_a_class_leaves_when_it_is_bound_for_nothing(share, before, leaves):
    """1e-4 after 1e-1 heads for 1e-16 in four iterations; 1e-6 after 2e-6 for no less than 6e-8."""
    problem, state = posed(Frame(random_task(0, n_tasks=1, n_classes=20)))
    now, then = torch.full((1, 20), 0.05).double(), torch.full((1, 20), 0.05).double()
    now[0, 3], then[0, 3] = share, before
    _, after = narrow(
        problem, WorkingSetState(state.prototypes, 1 + now.log()), WorkingSetState(state.prototypes, 1 + then.log())
    )
    assert bool(after.dual[0, 3].isneginf()) is leaves
    assert after.dual[0, [0, 1, 2, 4]].isfinite().all()


def test_the_columns_kept_are_those_of_the_largest_classes():
    problem, state = posed(Frame(random_task(0, n_tasks=2, n_classes=6)))
    state = WorkingSetState(
        state.prototypes, torch.tensor([[0.0, -1, -9, -2, -9, -9], [-9.0, -9, 0, -1, -2, -9]]).double()
    )
    narrowed, kept = restrict(problem, state, 3)
    assert narrowed.classes.tolist() == [[0, 1, 3], [2, 3, 4]]
    assert kept.dual.tolist() == [[0, -1, -2], [0, -1, -2]]
    assert restrict(narrowed, kept, 2)[0].classes.tolist() == [[0, 1], [2, 3]]


def test_blocks_change_no_answer():
    task = random_task(7, n_tasks=7, n_classes=70, n_query=20, spread=0.8)
    (one, _), (many, _) = run(task, 7), run(task, 2)
    torch.testing.assert_close(one.answer.log_assignments.exp(), many.answer.log_assignments.exp())
    torch.testing.assert_close(one.answer.proportions, many.answer.proportions)
    torch.testing.assert_close(one.answer.log_normaliser, many.answer.log_normaliser)
    assert torch.equal(one.n_iter, many.n_iter)
    assert torch.equal(one.converged, many.converged)


@pytest.mark.parametrize("max_iter", [1, 2, 5, 6])
def test_few_iterations_are_those_of_all_classes(max_iter):
    task = random_task(8, n_tasks=3, n_classes=30, spread=1.0)
    outcome, _ = run(task, 2, max_iter=max_iter, tol=0.0)
    problem, state = posed(Frame(task))
    for _ in range(max_iter):
        state, u = step(problem, state)
    torch.testing.assert_close(outcome.answer.log_assignments.exp(), u.weights, atol=1e-4, rtol=0)
    assert outcome.n_iter.tolist() == [max_iter] * 3


def test_growth_is_what_an_iteration_would_multiply_a_tiny_share_by():
    """Give a class a share of 1e-9 and take one step: it must grow exactly where the check says so."""
    task = random_task(3, n_tasks=6, n_classes=5, n_query=20, n_present=4, spread=2.0)
    frame = Frame(task)
    problem, state = posed(frame)
    _, first = step(problem, state)
    dual = state.dual.clone()
    dual[:, 0] = 1 + torch.log(torch.tensor(1e-9).double())
    dual[:, 1:] = 1 + torch.log(torch.tensor(0.25).double())
    tiny, _ = step(problem, WorkingSetState(state.prototypes, dual))
    grows = tiny.dual[:, 0] > dual[:, 0]
    without = dual.clone()
    without[:, 0] = -torch.inf
    _, u = step(problem, WorkingSetState(state.prototypes, without))
    said = working_set.First(first.weights, first.log_normaliser(), problem.tilt)
    assert torch.equal(would_return(frame, [said], frame.labels(u)), grows)
    assert grows.any()
    assert not grows.all()


def test_a_fall_beyond_what_the_first_weights_can_tell_is_not_vouched_for():
    frame = Frame(random_task(3, n_tasks=2, n_classes=5))
    problem, state = posed(frame)
    _, u = step(problem, state)
    labels = frame.labels(u)
    labels.log_normaliser[1, 4] -= working_set.LARGEST_FALL + 1
    said = working_set.First(u.weights, u.log_normaliser(), problem.tilt)
    assert would_return(frame, [said], labels).tolist() == [False, True]
