"""Stacks: leaving classes out, stacking and padding change no answer; what returns is noticed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.inference import stack
from handful.inference.batches import AgainstOne, EachItsOwn
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from handful.inference.joint import SHARPEST, tilts
from handful.inference.stack import Columns, compare, label, largest, rounded_width, settle
from handful.numerics.simplex import softmax
from tests.tasks_at_hand import random_task

seeds = st.integers(0, 10_000)
UNTIL = {"max_iter": 1000, "tol": 1e-3}


def own(task) -> EachItsOwn:
    return EachItsOwn(Frame(task))


def one_by_one(task) -> torch.Tensor:
    return torch.cat([label(own(task.select(slice(t, t + 1))), **UNTIL).log_assignments for t in range(task.n_tasks)])


def test_two_thin_products_count_as_a_softmax_does():
    task = random_task(0, n_tasks=2, n_classes=12, n_query=20, spread=2.0)
    batches = own(task)
    first = compare(batches)
    columns = Columns(batches, first, largest(first.counts, 12))
    tilt = tilts(first.counts.double(), torch.full((2,), 0.3).double())
    nats = SHARPEST * batches.squared_scale.reshape(-1, 1, 1)
    u = softmax(nats * first.scores.double() + tilt.unsqueeze(1))
    found = columns.count(tilt, True)
    torch.testing.assert_close(found.counts, u.weights.sum(-2))
    beside = (u.log_normaliser() - nats.squeeze(-1) * first.highest.double()).sum(-1)
    torch.testing.assert_close(found.log_likelihood, beside)


@given(seed=seeds)
def test_leaving_classes_out_changes_no_answer(seed):
    task = random_task(seed, n_tasks=4, n_classes=80, n_query=40, n_present=3, spread=0.7)
    narrow = label(own(task), **UNTIL)
    assert all(group.classes.shape[-1] < 80 for group in narrow.groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stack, "rounded_width", lambda need, most: most)
        patch.setattr(stack, "GROUP_WIDTHS", ())
        whole = label(own(task), **UNTIL)
    assert [group.classes.shape[-1] for group in whole.groups] == [80]
    torch.testing.assert_close(narrow.log_assignments.exp(), whole.log_assignments.exp(), atol=1e-6, rtol=0)
    torch.testing.assert_close(narrow.proportions, whole.proportions, atol=1e-6, rtol=0)


@given(seed=seeds)
def test_neighbours_in_a_stack_change_no_answer(seed):
    task = random_task(seed, n_tasks=5, n_classes=40, n_query=30, n_present=4, spread=1.5)
    together = label(own(task), **UNTIL).log_assignments
    torch.testing.assert_close(together.exp(), one_by_one(task).exp(), atol=1e-6, rtol=0)


def test_a_class_that_did_not_enter_is_noticed_and_the_batch_settled_again(monkeypatch):
    """Let no class enter that holds less than four items at first: its items lie far from all others."""
    task = random_task(3, n_tasks=5, n_classes=80, n_query=30, n_present=6, spread=0.5)
    expected = label(own(task), **UNTIL)
    seen = []

    def watched(batches, first, width, **until):
        seen.append((len(first.scores), width))
        return settle(batches, first, width, **until)

    monkeypatch.setattr(stack, "settle", watched)
    monkeypatch.setattr(stack, "rounded_width", lambda need, most: min(need, most))
    monkeypatch.setattr(stack, "LEAST_AT_FIRST", torch.inf)
    monkeypatch.setattr(stack, "largest", lambda counts, width: largest(counts, max(width, 3)))
    found = label(own(task), **UNTIL)
    assert seen[0][1] < 80
    assert seen[1] == (5, 80)
    torch.testing.assert_close(found.log_assignments.exp(), expected.log_assignments.exp(), atol=1e-6, rtol=0)
    assert sorted(torch.cat([group.rows for group in found.groups]).tolist()) == list(range(5))


def test_many_batches_against_one_catalogue_answer_as_each_against_its_own():
    task = random_task(7, n_tasks=6, n_classes=50, n_query=25, n_present=4, spread=1.0)
    shared = task.select(slice(0, 1))
    frames = [Frame(shared.with_features(shared.support, task.query[t : t + 1])) for t in range(6)]
    alone = torch.cat([label(EachItsOwn(frame), **UNTIL).log_assignments for frame in frames])
    first = frames[0]
    points = torch.cat([frame.query for frame in frames])
    scale = squared_scale(first).double().expand(6).clone()
    posed = AgainstOne(points, None, first.support.mean()[0], first.support.mass[0], scale)
    torch.testing.assert_close(label(posed, **UNTIL).log_assignments.exp(), alone.exp(), atol=1e-6, rtol=0)


def test_padding_belongs_nowhere():
    task = random_task(4, n_tasks=3, n_classes=20, n_query=24, n_present=3)
    mask = torch.ones(3, 24, dtype=torch.bool)
    mask[1, 15:] = False
    padded = type(task)(task.support, task.support_labels, task.query, 20, None, mask)
    found = label(own(padded), **UNTIL)
    assert bool((found.log_assignments[1, 15:] == -torch.inf).all())
    short = task.select(slice(1, 2))
    short = label(own(short.with_features(short.support, short.query[:, :15])), **UNTIL)
    torch.testing.assert_close(found.log_assignments[1, :15].exp(), short.log_assignments[0].exp(), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.proportions.sum(-1), torch.ones(3, dtype=found.proportions.dtype))


def test_an_item_beyond_all_exponents_is_labelled_all_the_same():
    """Further from every class than 690 nats: it goes to the nearest, and nothing overflows."""
    means = torch.eye(4, dtype=torch.float64)
    points = torch.cat([means.repeat(5, 1), torch.tensor([[1e3, 0, 0, 0]], dtype=torch.float64)]).unsqueeze(0)
    scale = torch.tensor([50.0], dtype=torch.float64)
    found = label(AgainstOne(points, None, means, torch.full((4,), 5.0).double(), scale), **UNTIL)
    assert bool(found.log_assignments.exp().isfinite().all())
    assert int(found.log_assignments[0, -1].argmax()) == 0


def test_widths():
    assert [rounded_width(need, 100) for need in (0, 1, 8, 9, 64, 65, 100)] == [8, 8, 8, 16, 64, 100, 100]
    assert rounded_width(3, 5) == 5
