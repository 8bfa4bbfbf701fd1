"""Proportions: the evidence rises, classes that hold nothing leave, and what they would hold is known."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful import proportions
from handful.calibration import squared_scale
from handful.frame import Frame
from handful.numerics.simplex import softmax
from handful.proportions import Problem, State
from tests.tasks_at_hand import random_task

seeds = st.integers(0, 10_000)


def posed(task) -> Problem:
    frame = Frame(task)
    scores = squared_scale(frame).reshape(-1, 1, 1) * frame.space("feature", 1).scores(frame.support.mean())
    return Problem(scores, None, frame.n_query, task.n_classes)


@given(seed=seeds)
def test_the_evidence_never_falls(seed):
    problem = posed(random_task(seed, n_classes=15, n_query=40, spread=2.0))
    counts = torch.full((3, 15), 40 / 15, dtype=torch.float64)
    state, values = State(counts, torch.full((3,), 1 / 15, dtype=torch.float64)), []
    for _ in range(25):
        state, answer = proportions.step(problem, state)
        values.append(proportions.evidence(problem, answer.after, proportions.assign(problem, answer.after)))
    assert torch.stack(values).diff(dim=0).min() >= -1e-8


def test_an_iteration_on_some_columns_is_that_on_all_of_them():
    """Where the others hold nothing: same counts, same prior, same evidence."""
    whole = posed(random_task(5, n_tasks=2, n_classes=80, n_query=30, spread=0.3))
    _, start = proportions.begin(whole, narrowing=False)
    kept = proportions.largest(start.state, 8)
    part, few = proportions.keep(whole, start.state, kept)
    (after, _), (expected, _) = proportions.step(part, few), proportions.step(whole, start.state)
    torch.testing.assert_close(proportions.over_all_classes(part, after.counts), expected.counts)
    torch.testing.assert_close(after.concentration, expected.concentration)
    torch.testing.assert_close(
        proportions.evidence(part, after, proportions.assign(part, after)),
        proportions.evidence(whole, expected, proportions.assign(whole, expected)),
    )


def test_absent_classes_leave_in_the_first_iterations():
    whole = posed(random_task(5, n_tasks=3, n_classes=80, n_query=30, spread=0.3))
    even, part = proportions.begin(whole)
    assert even.weights.shape[-1] == 80
    assert part.problem.classes.shape[-1] <= 16
    assert (part.needs <= part.problem.classes.shape[-1]).all()
    _, start = proportions.begin(whole, narrowing=False)
    assert start.problem is whole
    assert start.needs.tolist() == [80] * 3
    counts = proportions.over_all_classes(part.problem, part.state.counts)
    torch.testing.assert_close(counts, start.state.counts, atol=1e-8, rtol=0)


def test_nothing_leaves_where_all_classes_occur():
    task = random_task(0, n_tasks=2, n_classes=20, n_query=60, n_present=20)
    _, part = proportions.begin(posed(task))
    assert part.problem.classes is None
    assert part.needs.tolist() == [20, 20]


def test_what_a_class_would_hold_is_what_it_does_hold_without_a_count():
    """Take a column away and ask; then give it back with a count of zero, and count."""
    whole = posed(random_task(3, n_tasks=4, n_classes=6, n_query=20, n_present=5, spread=2.0))
    even = softmax(whole.scores)
    state = State(proportions.count(whole, even), torch.full((4,), 0.7, dtype=torch.float64))
    kept = torch.arange(1, 6).expand(4, -1)
    part, few = proportions.keep(whole, state, kept)
    u = proportions.assign(part, few)
    rise = (
        even.log_normaliser() - u.log_normaliser() + proportions.without_count(few.concentration, whole).unsqueeze(-1)
    )
    would_hold = proportions.held(even.weights, rise, None)[:, 0]
    without = State(torch.cat([torch.zeros(4, 1).double(), few.counts], -1), few.concentration)
    logits = whole.scores + proportions.expected_log(without, whole.n_query)
    relative = (logits[..., 0] - u.log_normaliser()).exp().sum(-1)
    torch.testing.assert_close(would_hold, relative)


def test_padded_queries_hold_nothing():
    weights, rise = torch.full((1, 3, 2), 0.5), torch.zeros(1, 3)
    mask = torch.tensor([[True, False, True]])
    torch.testing.assert_close(proportions.held(weights, rise, mask), torch.ones(1, 2))
    assert proportions.over_query(torch.ones(1, 3), mask).tolist() == [2.0]


def test_shots_that_differ_count_by_what_prototypes_lack():
    assert proportions.typical_shots(torch.tensor([5.0, 5.0])).item() == 5
    assert proportions.typical_shots(torch.tensor([[1.0, 1.0, 100.0]])).tolist() == pytest.approx([1.4925], rel=1e-3)
