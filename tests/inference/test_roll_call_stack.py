"""Stacks answer as each batch alone does."""

import pytest
import torch

from handful.inference import roll_call_stack
from handful.inference.head import fit_head
from handful.inference.roll_call_stack import AgainstHead, label

OPTIONS = {"max_iter": 200, "tol": 1e-3}


def problem(n_classes: int = 60, shots: int = 5, dim: int = 24, seed: int = 0):
    """A head, and a function that draws a batch from some classes."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.nn.functional.normalize(torch.randn(n_classes, dim, generator=generator), dim=-1)

    def around(codes: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(
            means[codes] + 0.25 * torch.randn(len(codes), dim, generator=generator), dim=-1
        )

    codes = torch.arange(n_classes).repeat_interleave(shots)
    points = around(codes)
    origin = points.mean(0)
    head = fit_head(points - origin, codes, n_classes, 1.0)

    def batch(present: int, n_items: int):
        truth = torch.randperm(n_classes, generator=generator)[torch.randint(present, (n_items,), generator=generator)]
        return around(truth) - origin, truth

    return head, batch


def test_a_stack_of_unequal_batches_equals_a_loop():
    head, batch = problem()
    batches = [batch(present, n)[0] for present, n in ((3, 40), (20, 75), (1, 1), (8, 12), (60, 75), (2, 5))]
    slots = max(map(len, batches))
    points, mask = torch.zeros(len(batches), slots, 24), torch.zeros(len(batches), slots, dtype=torch.bool)
    for row, items in enumerate(batches):
        points[row, : len(items)], mask[row, : len(items)] = items, True
    together = label(AgainstHead(points, mask, head), **OPTIONS)
    for row, items in enumerate(batches):
        one = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
        n = len(items)
        torch.testing.assert_close(
            together.log_probabilities[row, :n].exp(), one.log_probabilities[0].exp(), atol=1e-5, rtol=0
        )
        assert together.log_probabilities[row, n:].isneginf().all()
        for name in ("expected_counts", "presence", "joint_weight"):
            torch.testing.assert_close(getattr(together, name)[row], getattr(one, name)[0], atol=1e-4, rtol=1e-4)
        assert together.n_iter[row] == one.n_iter[0]
        assert torch.equal(together.alone[row, :n], one.alone[0])


def test_probabilities_sum_to_one_and_counts_to_the_items():
    head, batch = problem()
    items, _ = batch(4, 50)
    found = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
    sums = found.log_probabilities.exp().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert float(found.expected_counts.sum()) == pytest.approx(50, abs=1e-3)


def test_columns_change_nothing(monkeypatch):
    """With all classes kept as columns the answer is the same as with those that could be present."""
    head, batch = problem(n_classes=200)
    items, _ = batch(3, 30)
    few = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
    monkeypatch.setattr(roll_call_stack, "WORTH_GATHERING", 0.0)
    every = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
    torch.testing.assert_close(few.log_probabilities.exp(), every.log_probabilities.exp(), atol=1e-6, rtol=0)


def test_the_spread_of_a_batch_stands_in_for_that_of_single_examples():
    head, batch = problem(shots=1)
    assert head.spread is None
    items, _ = batch(5, 60)
    measured = float(AgainstHead(items.unsqueeze(0), None, head).spread)
    nearest = torch.cdist(items, head.means).square().amin(-1).mean()
    assert measured == pytest.approx(0.5 * float(nearest), rel=1e-4)
    masked = torch.cat([items, torch.zeros(10, 24)]).unsqueeze(0)
    mask = (torch.arange(70) < 60).unsqueeze(0)
    assert float(AgainstHead(masked, mask, head).spread) == pytest.approx(measured, rel=1e-5)


def test_few_present_classes_are_found():
    head, batch = problem()
    items, truth = batch(4, 60)
    found = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
    there = torch.zeros(60, dtype=torch.bool).index_fill_(0, truth, True)
    assert (found.presence[0][there] > 0.5).all()
    assert int((found.presence[0][~there] > 0.5).sum()) <= 1
    assert (found.log_probabilities[0].argmax(-1) == truth).double().mean() > (found.alone[0] == truth).double().mean()


def test_a_limit_of_one_iteration_is_kept_and_said():
    head, batch = problem()
    items, _ = batch(20, 75)
    found = label(AgainstHead(items.unsqueeze(0), None, head), max_iter=1, tol=1e-9)
    assert int(found.n_iter) == 7  # one for each stage
    assert not bool(found.converged)


def test_items_of_half_weight_count_half():
    """Every item twice at half the weight is every item once; an item of no weight changes nothing."""
    head, batch = problem()
    items, _ = batch(4, 40)
    stranger = torch.nn.functional.normalize(torch.ones(1, 24), dim=-1)
    once = label(AgainstHead(items.unsqueeze(0), None, head), **OPTIONS)
    twice = torch.cat([items, items, stranger]).unsqueeze(0)
    weights = torch.cat([torch.full((80,), 0.5), torch.zeros(1)]).unsqueeze(0)
    found = label(AgainstHead(twice, None, head, weights), **OPTIONS)
    assert not torch.equal(label(AgainstHead(twice, None, head), **OPTIONS).expected_counts, once.expected_counts)
    for name in ("expected_counts", "joint_weight", "offset", "tilts"):
        torch.testing.assert_close(getattr(found, name), getattr(once, name), atol=1e-4, rtol=1e-4)
    again = label(AgainstHead(twice, None, head, weights * 2), **OPTIONS)
    for half in (found.log_probabilities[0, :40], found.log_probabilities[0, 40:80]):
        torch.testing.assert_close(half.exp(), once.log_probabilities[0].exp(), atol=1e-5, rtol=0)
    assert float(found.log_probabilities[0, 80].exp().sum()) == pytest.approx(1, abs=1e-5)
    assert float(again.expected_counts.sum()) == pytest.approx(80, abs=1e-3)


def test_the_joint_answer_can_be_made_of_scores_and_tilts():
    head, batch = problem()
    items, _ = batch(4, 50)
    batches = AgainstHead(items.unsqueeze(0), None, head)
    found = label(batches, **OPTIONS)
    u = (batches.scores() + found.tilts.float().unsqueeze(1)).softmax(-1)
    p = found.log_probabilities.exp()
    weight = float(found.joint_weight)
    alone = (p - weight * u) / (1 - weight)
    torch.testing.assert_close(alone.amax(-1), found.confidence, atol=1e-4, rtol=0)
