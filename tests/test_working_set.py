"""The working set: who leaves, who is checked, and that answers come back in full width."""

import torch

from handful.frame import Frame
from handful.methods import paddle
from handful.numerics.simplex import softmax
from handful.working_set import Problem, narrow, widen, would_return
from tests.tasks_at_hand import random_task


def posed(task) -> Problem:
    frame = Frame(task)
    return Problem(frame.space("gram", 9), None, frame.n_query, torch.ones(task.n_tasks).double())


def test_absent_classes_leave_the_computation_and_the_others_go_on_alike():
    problem = whole = posed(random_task(5, n_tasks=2, n_classes=40, n_query=30, spread=0.5))
    state = of_whole = paddle.init(problem)
    for _ in range(8):
        of_whole, u_whole = paddle.step(whole, of_whole, floor=0.0)
        state, u = paddle.step(problem, state, floor=0.0)
        torch.testing.assert_close(widen(problem, u).weights, u_whole.weights, atol=1e-5, rtol=0)
        problem, state = narrow(problem, state)
    assert problem.classes is not None
    assert problem.classes.shape[-1] <= 20
    assert state.dual.shape == problem.classes.shape


def test_nothing_is_narrowed_while_most_classes_hold_mass():
    problem = posed(random_task(0, n_classes=4, n_present=4, spread=3.0))
    state, _ = paddle.step(problem, paddle.init(problem), floor=0.0)
    same, after = narrow(problem, state)
    assert same is problem
    assert torch.equal(after.dual, state.dual)


def test_widening_gives_no_weight_to_the_classes_left_out():
    problem = posed(random_task(0, n_tasks=1))
    problem = Problem(problem.space, None, problem.n_query, problem.tilt, classes=torch.tensor([[1, 4]]))
    u = softmax(torch.randn(1, 15, 2, generator=torch.Generator().manual_seed(0)).double())
    wide = widen(problem, u)
    assert torch.equal(wide.weights[..., [1, 4]], u.weights)
    assert (wide.weights[..., [0, 2, 3, 5]] == 0).all()
    assert wide.log()[..., [0, 2, 3, 5]].isneginf().all()


def test_growth_is_what_an_iteration_would_multiply_a_tiny_share_by():
    """Give a class a share of 1e-9 and take one step: it must grow exactly where the check says so."""
    task = random_task(3, n_tasks=6, n_classes=5, n_query=20, n_present=4, spread=2.0)
    problem = posed(task)
    state = paddle.init(problem)
    dual = state.dual.clone()
    dual[:, 0] = 1 + torch.log(torch.tensor(1e-9).double())
    dual[:, 1:] = 1 + torch.log(torch.tensor(0.25).double())
    tiny, u = paddle.step(problem, type(state)(state.prototypes, dual), floor=0.0)
    grows = tiny.dual[:, 0] > dual[:, 0]
    without = dual.clone()
    without[:, 0] = -torch.inf
    _, u = paddle.step(problem, type(state)(state.prototypes, without), floor=0.0)
    assert torch.equal(would_return(problem, u, u.weights.mean(1)), grows)
    assert grows.any()
    assert not grows.all()
