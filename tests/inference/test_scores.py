"""Differences, their unit and what is not given; batches of scores are labelled by the same rules as all others."""

import math

import pytest
import torch

from handful.inference.prior import Prior
from handful.inference.scores import (
    FIRST,
    KINDS,
    Differences,
    GivenScores,
    differences,
    factor_of_labelled,
    label_scores,
    spread,
)

OPTIONS = {"max_iter": 200, "tol": 1e-3}


def made_up(present=(3, 7), n_items=40, n_classes=60, lead=2.5, seed=0):
    """Logits of a model that is right about half of the time, and the truth."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.tensor(present).repeat_interleave(n_items // len(present))
    logits = torch.randn(len(truth), n_classes, generator=generator, dtype=torch.float64)
    logits[torch.arange(len(truth)), truth] += lead
    return logits, truth


def batch(found: Differences, unit=None, prior=None, codes=None):
    unit = spread(found.given) if unit is None else unit
    nats = torch.full((1,), FIRST, dtype=torch.float64)
    one = Differences(*(part.unsqueeze(0) for part in found))
    return GivenScores(one, None, unit, nats, codes, prior)


def test_every_kind_has_the_same_differences():
    logits, _ = made_up()
    found = differences(logits, "logits").given
    assert found.amax(1).eq(0).all()
    torch.testing.assert_close(found, logits - logits.amax(1, keepdim=True))
    for kind, values in (
        ("probabilities", logits.softmax(1)),
        ("sigmoid", logits.sigmoid()),
        ("similarities", logits + torch.arange(len(logits)).unsqueeze(1)),
    ):
        torch.testing.assert_close(differences(values, kind).given, found, atol=1e-9, rtol=0)
    assert set(KINDS) == {"logits", "probabilities", "sigmoid", "similarities"}


def test_what_a_model_prefers_is_taken_back():
    logits, _ = made_up()
    weights = torch.linspace(1, 5, 60, dtype=torch.float64)
    preferring = (logits + weights.log()).softmax(1)
    found = differences(preferring, "probabilities", weights).given
    torch.testing.assert_close(found, differences(logits, "logits").given, atol=1e-9, rtol=0)


def test_the_unit_follows_the_scale_and_forgets_offsets():
    logits, _ = made_up()
    unit = spread(logits)
    assert unit == pytest.approx(float((logits - logits.mean(1, keepdim=True)).square().mean().sqrt()))
    assert spread(5 * logits + 100 * torch.arange(40).unsqueeze(1)) == pytest.approx(5 * unit)
    assert spread(torch.ones(4, 5)) == 1
    assert spread(torch.zeros(3, 1)) == 1


def test_the_unit_ignores_banned_classes_as_if_they_were_not_there(monkeypatch):
    logits, _ = made_up()
    banned = torch.zeros(2, 60, dtype=torch.bool)
    banned[0, 30:], banned[1, :30] = True, True
    group_of = torch.arange(40) % 2
    squares = [
        (part - part.mean(1, keepdim=True)).square().mean(1)
        for part in (logits[group_of == 0, :30], logits[group_of == 1, 30:])
    ]
    expected = float(torch.cat(squares).mean().sqrt())
    assert spread(logits, banned, group_of) == pytest.approx(expected)
    monkeypatch.setattr("handful.inference.scores.BLOCK_SCORES", 300)
    assert spread(logits, banned, group_of) == pytest.approx(expected)


@pytest.mark.parametrize("m", [3, 5, 10, 20])
def test_the_best_few_say_how_far_all_are_spread(m):
    """Of an exponential sample, whose standard deviation is its scale."""
    generator = torch.Generator().manual_seed(0)
    scores = -torch.rand(4000, 100, generator=generator, dtype=torch.float64).log()
    low = scores.sort(1, descending=True).values[:, m - 1 : m]
    assert spread(scores.masked_fill(scores < low, torch.nan)) == pytest.approx(1, abs=0.03)
    assert spread(3 * scores.masked_fill(scores < low, torch.nan)) == pytest.approx(3, abs=0.09)


def test_lists_of_one_and_two_have_a_unit():
    nan = math.nan
    pairs = torch.tensor([[0.0, -2.0, nan, nan], [-4.0, 0.0, nan, nan]])
    assert spread(pairs) == pytest.approx(3)
    assert spread(torch.tensor([[0.0, nan, nan], [nan, 0.0, nan]])) == 1
    assert spread(torch.full((2, 3), nan)) == 1


def test_what_is_not_given_lies_below_all_that_is():
    logits, _ = made_up()
    cut = logits.masked_fill(logits < logits.topk(5).values[:, -1:], torch.nan)
    found = batch(differences(cut, "logits")).scores()[0]
    given = ~cut.isnan()
    assert (found.masked_fill(given, -torch.inf).amax(1) < found.masked_fill(~given, torch.inf).amin(1)).all()
    assert torch.equal(found.argmax(1), logits.argmax(1))


def test_a_probability_rounded_to_zero_is_lower_than_every_other():
    p = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.5, 0.5 - 1e-6, 1e-6, 0.0], [1.0, 0.0, 0.0, 0.0]])
    found = differences(p, "probabilities")
    assert found.given.isnan().tolist() == (p == 0).tolist()
    assert found.ceiling.tolist() == pytest.approx([math.log(1e-6 / 0.9), math.log(1e-6 / 0.5), math.log(1e-6)])
    scores = batch(found).scores()[0]
    assert (scores[p == 0] < scores[p > 0].min()).all()


def test_an_item_without_scores_has_equal_ones():
    found = differences(torch.zeros(2, 4), "probabilities")
    assert batch(found).scores().unique().numel() == 1
    called = label_scores(batch(found), **OPTIONS)
    torch.testing.assert_close(called.log_probabilities.exp(), torch.full((1, 2, 4), 0.25))


def test_joint_labels_beat_the_best_scores_and_find_the_classes():
    logits, truth = made_up()
    called = label_scores(batch(differences(logits, "logits")), **OPTIONS)
    labels = called.log_probabilities[0].argmax(1)
    own = float((logits.argmax(1) == truth).double().mean())
    assert own < 0.7
    assert float((labels == truth).double().mean()) > own + 0.2
    assert (called.presence[0] >= 0.5).nonzero()[:, 0].tolist() == [3, 7]
    assert called.found.tolist() == [2]
    torch.testing.assert_close(called.log_probabilities.exp().sum(-1), torch.ones(1, 40, dtype=torch.float64))


def test_a_stack_equals_a_loop():
    units, parts = 1.3, []
    for seed, present in enumerate([(3, 7), (1, 2, 3, 4, 5), (9,)]):
        parts.append(made_up(present, 40 if seed < 2 else 20, seed=seed)[0])
    given, mask = torch.zeros(3, 40, 60, dtype=torch.float64), torch.zeros(3, 40, dtype=torch.bool)
    for row, part in enumerate(parts):
        given[row, : len(part)], mask[row, : len(part)] = part, True
    nats = torch.full((3,), FIRST, dtype=torch.float64)
    stack = GivenScores(Differences(given, *torch.zeros(2, 3, 40).double()), mask, units, nats)
    together = label_scores(stack, **OPTIONS)
    for row, part in enumerate(parts):
        one = label_scores(batch(Differences(part, *torch.zeros(2, len(part)).double()), units), **OPTIONS)
        torch.testing.assert_close(
            together.log_probabilities[row, : len(part)].exp(), one.log_probabilities[0].exp(), atol=1e-6, rtol=0
        )
        torch.testing.assert_close(together.presence[row], one.presence[0], atol=1e-6, rtol=0)


def test_uneven_counts_leave_every_item_its_best_score():
    """One class holds most items, the others are scattered: joint labels would not help."""
    logits, _truth = made_up((1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13), 60, lead=9.0)
    called = label_scores(batch(differences(logits, "logits")), **OPTIONS)
    assert called.joint_weight.tolist() == [0]
    assert torch.equal(called.log_probabilities[0].argmax(1), logits.argmax(1))


def test_where_most_classes_are_found_every_item_keeps_its_best_score():
    few, _ = made_up(tuple(range(6)), n_items=180)
    most, truth = made_up(tuple(range(54)), n_items=54 * 30)
    for logits, weight in ((few, 1.0), (most, 0.0)):
        found = label_scores(batch(differences(logits, "logits")), **OPTIONS)
        assert found.joint_weight[0] == pytest.approx(weight, abs=0.01)
    torch.testing.assert_close(found.log_probabilities[0].argmax(1), most.argmax(1))
    # Two candidates, one of them present: the only other class is not found.
    weights = torch.zeros(1, 60, dtype=torch.float64)
    weights[0, :2] = 1
    prior = Prior.of(weights, torch.tensor([300.0]).double())
    found = label_scores(batch(differences(most[truth == 0], "logits"), prior=prior), **OPTIONS)
    assert found.joint_weight[0] > 0.9


def test_a_banned_class_is_as_if_it_were_not_there():
    logits, _ = made_up((3, 7, 9), 60)
    weights = torch.ones(1, 60, dtype=torch.float64)
    weights[0, 40:] = 0
    prior = Prior.of(weights, torch.tensor([300.0]).double())
    banned = label_scores(batch(differences(logits, "logits"), 1.0, prior), **OPTIONS)
    without = label_scores(batch(differences(logits[:, :40], "logits"), 1.0), **OPTIONS)
    torch.testing.assert_close(
        banned.log_probabilities[..., :40].exp(), without.log_probabilities.exp(), atol=1e-6, rtol=0
    )
    assert banned.log_probabilities[..., 40:].exp().eq(0).all()
    assert banned.presence[0, 40:].eq(0).all()


def test_labelled_items_keep_their_label_and_count():
    logits, _ = made_up()
    codes = torch.full((1, 40), -1)
    codes[0, :6] = 20
    called = label_scores(batch(differences(logits, "logits"), codes=codes), **OPTIONS)
    assert called.log_probabilities[0, :6].argmax(1).eq(20).all()
    assert called.expected_counts[0, 20] > 5.9
    assert called.presence[0, 20] > 0.5


def test_labelled_items_find_the_temperature_and_few_of_them_hardly_move_it():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3000, 30, generator=generator, dtype=torch.float64)
    unit = spread(logits)
    for nats in (1.2, 2.1, 4.0):
        truth = torch.multinomial((logits / unit * nats).softmax(1), 1, generator=generator)[:, 0]
        found = differences(logits, "logits")
        assert factor_of_labelled(found, truth, unit, None) == pytest.approx(nats / FIRST, rel=0.06)
        few = factor_of_labelled(Differences(*(part[:3] for part in found)), truth[:3], unit, None)
        assert abs(math.log(few)) < 0.8 * abs(math.log(nats / FIRST)) + 0.1
