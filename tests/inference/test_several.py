"""Chances that items hold several classes: the level of the scores comes from absent classes."""

import pytest
import torch

from handful.inference.several import held, together

# One standard deviation of N(0, 4) is worth √4 nats.
NATS = torch.tensor([2.0], dtype=torch.float64)


def made_up(rates=(0.5, 0.3, 0.1), n_items=300, n_classes=40, lead=4.0, level=-6.0, seed=0):
    """Scores whose log-likelihood ratio is known: N(lead, lead) against N(0, lead), and a level on top."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.rand(n_items, n_classes, generator=generator) < torch.tensor(
        [*rates, *[0.0] * (n_classes - len(rates))]
    )
    noise = torch.randn(n_items, n_classes, generator=generator, dtype=torch.float64)
    return (lead**0.5 * noise + lead * truth + level).unsqueeze(0), truth


def test_shares_and_chances_are_right_whatever_the_level():
    scores, truth = made_up()
    presence = torch.zeros(1, 40, dtype=torch.float64)
    presence[0, :3] = 1
    there = torch.ones(1, 300, dtype=torch.bool)
    chances = held(scores, NATS, presence, there, None)[0]
    assert (chances.sum(0)[:3] / truth.sum(0)[:3]).tolist() == pytest.approx([1, 1, 1], abs=0.25)
    assert chances[:, 3:].eq(0).all()
    sure = (chances > 0.8) & (chances < 0.95)
    assert float(truth[sure].double().mean()) == pytest.approx(float(chances[sure].mean()), abs=0.12)
    torch.testing.assert_close(held(3 * scores + 9, NATS, presence, there, None)[0], chances)


def test_padding_and_banned_classes_do_not_count():
    scores, _ = made_up(n_items=60)
    presence = torch.zeros(1, 40, dtype=torch.float64)
    presence[0, :3] = 1
    alone = held(scores, NATS, presence, torch.ones(1, 60, dtype=torch.bool), None)
    padded = torch.cat([scores, torch.full((1, 7, 40), 50.0, dtype=torch.float64)], 1)
    there = torch.arange(67).unsqueeze(0) < 60
    found = held(padded, NATS, presence, there, None)
    torch.testing.assert_close(found[:, :60], alone)
    assert found[:, 60:].eq(0).all()
    wider = torch.cat([scores, torch.full((1, 60, 2), 50.0, dtype=torch.float64)], 2)
    banned = torch.arange(42).unsqueeze(0) >= 40
    found = held(wider, NATS, torch.cat([presence, torch.ones(1, 2).double()], 1), there[:, :60], banned)
    torch.testing.assert_close(found[..., :40], alone)
    assert found[..., 40:].eq(0).all()


def test_where_all_classes_are_present_all_give_the_level():
    scores, _ = made_up((0.5, 0.5), n_classes=2, n_items=50)
    chances = held(scores, NATS, torch.ones(1, 2, dtype=torch.float64), torch.ones(1, 50, dtype=torch.bool), None)
    assert chances.isfinite().all()
    assert ((chances >= 0) & (chances <= 1)).all()


def test_classes_that_always_occur_with_others_are_found_too():
    presence = torch.tensor([[0.9, 0.8, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1]]).double()
    alone = torch.tensor([[10.0, 12.0, 9.0, 1.2, 3.0], [10.0, 12.0, 9.0, 1.0, 3.0]]).double()
    found = together(presence, alone)
    assert (found[0] >= 0.5).tolist() == [True, True, True, False, False]
    assert torch.equal(found[1], presence[1])
