"""The rules, on problems whose answer is known."""

import math
from dataclasses import replace

import pytest
import torch

from handful.inference import roll_call
from handful.inference.head import Head, LeftOut
from handful.inference.roll_call import (
    DONE,
    FLOOR,
    Rules,
    State,
    advance,
    alone,
    joint_weight,
    opening,
    presence,
    shape,
)


def head_of(means: torch.Tensor, mass: torch.Tensor | None = None, sharpness: float = 8.0) -> Head:
    """Distances to given means, in nats."""
    shots = torch.full((len(means),), 5.0, dtype=torch.float64) if mass is None else mass
    none = torch.zeros(0, dtype=torch.int64)
    found = LeftOut(none, none.double(), none.double(), none, *[none.double()] * 3)
    offsets = -0.5 * sharpness * means.square().sum(-1)
    return Head(sharpness * means, offsets, means, shots, 0.5, 1.0, 0.0, 0.9, found)


def counted(scores: torch.Tensor):
    """Counts of one batch under given tilts."""
    return lambda tilts: (scores + tilts).softmax(-1).sum(0, keepdim=True)


def settled(p: torch.Tensor, n_classes: int | None = None, max_iter: int = 500, tol: float = 1e-6) -> State:
    """Run one batch to its end."""
    rules = Rules.of(
        p.sum(0, keepdim=True),
        torch.tensor([float(len(p))]).double(),
        torch.tensor([float(n_classes or p.shape[1])]).double(),
        max_iter,
        tol,
    )
    state = opening(rules)
    while int(state.stage) < DONE:
        state = advance(state, rules, lambda kept: (p * kept / (p * kept).sum(-1, keepdim=True)).sum(0, keepdim=True))
    return state


def random_batch(present: int, n_items: int, n_classes: int = 40, dim: int = 16, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(n_classes, dim, dtype=torch.float64, generator=generator)
    truth = torch.randint(present, (n_items,), generator=generator)
    items = means[truth] + 0.9 * torch.randn(n_items, dim, dtype=torch.float64, generator=generator)
    return means, items, truth


def test_counts_and_factors_of_the_last_state_belong_together():
    means, items, _ = random_batch(4, 60)
    head = head_of(means, sharpness=1.0)
    p = (items @ head.weights.T + head.offsets).softmax(-1)
    state = settled(p)
    u = p * state.kept
    u = u / u.sum(-1, keepdim=True)
    torch.testing.assert_close(u.sum(0, keepdim=True), state.counts)
    assert bool(state.converged)
    # A fixed point: the factors that the counts give are those that gave the counts.
    again = (state.counts / (state.counts + state.threshold)).pow(3).clamp(min=math.exp(-FLOOR))
    torch.testing.assert_close(again, state.kept, atol=1e-4, rtol=1e-4)


def test_an_absent_class_loses_seven_nats_and_a_large_one_nothing():
    means, items, truth = random_batch(3, 120)
    head = head_of(means, sharpness=1.0)
    p = (items @ head.weights.T + head.offsets).softmax(-1)
    kept = settled(p).kept[0]
    held = torch.bincount(truth, minlength=len(means))
    assert (kept[held == 0] <= 1.001 * math.exp(-FLOOR)).sum() >= 30
    assert (kept[held >= 20] > 0.3).all()


@pytest.mark.parametrize("present", [2, 5, 10])
def test_joint_labels_are_better_than_each_alone_when_few_classes_are_present(present):
    right = torch.zeros(2)
    for seed in range(8):
        means, items, truth = random_batch(present, 75, seed=seed)
        head = head_of(means, sharpness=1.2)
        p = (items @ head.weights.T + head.offsets).softmax(-1)
        u = p * settled(p).kept
        right += torch.tensor([float((q.argmax(-1) == truth).double().mean()) for q in (p, u)])
    assert right[1] > right[0] + 0.2  # summed over eight batches


def test_uneven_batches_are_labelled_alone():
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(20, 16, dtype=torch.float64, generator=generator)
    sizes = torch.tensor([40, 12, 8, 6, 5, 4, 4, 3, 3, 3, 3, 3])  # fewer than a large batch has
    truth = torch.arange(12).repeat_interleave(sizes)
    items = means[truth] + 0.6 * torch.randn(len(truth), 16, dtype=torch.float64, generator=generator)
    head = head_of(means, sharpness=2.0)
    state = settled((items @ head.weights.T + head.offsets).softmax(-1))
    assert float(state.threshold) == pytest.approx(roll_call.ALONE)
    assert float(joint_weight(state, torch.tensor([5.0]))) == 0
    spread_out = torch.arange(12).repeat_interleave(8)
    items = means[spread_out] + 0.6 * torch.randn(96, 16, dtype=torch.float64, generator=generator)
    assert float(settled((items @ head.weights.T + head.offsets).softmax(-1)).threshold) > 1


def test_the_shape_of_counts():
    counts = torch.tensor([[10.0, 10, 10, 0, 0], [28, 1, 1, 0, 0]]).double()
    even, per_class, found = shape(counts, torch.tensor([30.0, 30.0]).double())
    assert found.tolist() == [3, 1]  # a tenth of a typical class's items is needed
    assert per_class.tolist() == [10, 30]
    assert float(even[0]) == pytest.approx(1)
    assert float(even[1]) == 1  # one class, which holds nearly everything


def test_trust_in_the_joint_answer_grows_with_items_and_with_examples():
    means, items, _ = random_batch(4, 60)
    state = settled((items @ means.T - 0.5 * means.square().sum(-1)).softmax(-1))
    few, many = (float(joint_weight(state, torch.tensor([shots]))) for shots in (1.0, 10.0))
    assert 0 < few < many < 1


def test_presence_rises_with_the_count_and_with_the_largest_probability():
    means, items, _ = random_batch(4, 60)
    state = settled((items @ means.T - 0.5 * means.square().sum(-1)).softmax(-1))
    counts = torch.tensor([[0.0, 0.5, 5.0, 5.0]]).double()
    chance = presence(state, counts, torch.tensor([[0.0, 0.5, 0.5, 0.99]]).double(), torch.tensor([4.0]))[0]
    assert (chance[1:] > chance[:-1]).all()
    assert 0 < float(chance[0]) < 0.05


def test_a_catalogue_larger_than_those_of_the_fit_is_not_held_against_a_class():
    rules = Rules.of(torch.ones(1, 1).double(), torch.tensor([30.0]).double(), torch.tensor([4.0]), 1, 1e-3)
    counts, largest = (torch.tensor([[value]], dtype=torch.float64) for value in (10.0, 0.9))

    def chance(found, n_classes):
        state = replace(opening(rules), found=torch.tensor([float(found)]).double())
        return float(presence(state, counts, largest, torch.tensor([float(n_classes)]).double()))

    constant, of_count, of_largest, of_items, of_found = roll_call.PRESENCE
    others = constant + of_count * math.log(10) + of_largest * math.log(9) + of_items * math.log(30)
    for found, n_classes in ((2, 2), (2, 150), (2, 659), (20, 659), (3, 900), (20, 6522)):
        expected = 1 / (1 + math.exp(-others - of_found * math.log(found / n_classes)))
        assert chance(found, n_classes) == pytest.approx(expected, rel=1e-12)
    assert chance(3, 6522) == chance(2, 6522) == chance(2, 659)


def test_an_offset_that_all_items_share_is_found_and_one_by_chance_is_not():
    means, items, truth = random_batch(5, 400)
    head = head_of(means, sharpness=1.0)
    push = 1.5 * torch.nn.functional.normalize(torch.ones(16, dtype=torch.float64), dim=0)
    right = {}
    for name, batch in {"here": items, "elsewhere": items + push}.items():
        scores = batch @ head.weights.T + head.offsets
        m = torch.tensor([400.0]).double()
        found = alone(head, batch.mean(0, keepdim=True), m, torch.tensor([16 * 0.81]).double(), counted(scores))
        right[name] = float(((scores + found.tilts).argmax(-1) == truth).double().mean())
        right[f"{name}, before"] = float((scores.argmax(-1) == truth).double().mean())
        torch.testing.assert_close(found.counts.sum(), torch.tensor(400.0).double())
    assert right["elsewhere"] > right["elsewhere, before"] + 0.02
    assert abs(right["here"] - right["here, before"]) < 0.02


def test_shares_follow_the_numbers_of_examples_where_the_batch_says_so():
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(12, 16, dtype=torch.float64, generator=generator)
    mass = torch.tensor([64.0, 32, 32, 16, 16, 8, 8, 4, 4, 2, 1, 1]).double()
    head = head_of(means, mass, sharpness=1.0)
    slopes = []
    for shares in (mass, mass.flip(0)):
        truth = torch.multinomial(shares.float(), 600, replacement=True, generator=generator)
        items = means[truth] + 0.5 * torch.randn(600, 16, dtype=torch.float64, generator=generator)
        scores, m = items @ head.weights.T + head.offsets, torch.tensor([600.0]).double()
        found = alone(head, items.mean(0, keepdim=True), m, torch.tensor([1e9]).double(), counted(scores))
        log_shots = mass.log() - mass.log().mean()
        slopes.append(float((found.tilts[0] * log_shots).sum() / log_shots.square().sum()))
    assert slopes[0] > 0.5  # examples were given as items come
    assert slopes[1] == pytest.approx(roll_call.ETA_LOW)  # the other way round: as far as allowed


def test_equal_shots_and_no_room_for_an_offset_change_nothing():
    means, items, _ = random_batch(5, 30)
    head = head_of(means)
    scores = items @ head.weights.T + head.offsets
    m = torch.tensor([30.0]).double()
    found = alone(head, items.mean(0, keepdim=True), m, torch.tensor([1e9]).double(), counted(scores))
    assert (found.tilts == 0).all()
