"""Differences, their unit, what is not listed, and batches of scores."""

import math

import numpy as np
import pytest

from handful.engine.model import NO_CLASS, Context
from handful.engine.scores import (
    KINDS,
    NATS,
    differences,
    factor_of_labelled,
    in_nats,
    label_scores,
    unit_of,
)


def made_up(present=(3, 7), n_items=40, n_classes=60, lead=2.5, seed=0):
    """Logits of a model that is right about half of the time, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(present, n_items // len(present))
    logits = rng.normal(size=(len(truth), n_classes))
    logits[np.arange(len(truth)), truth] += lead
    return logits, truth


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def labelled(logits, context=None):
    return label_scores(in_nats(logits, unit_of(logits)), context)


def best(logits, m):
    return np.where(logits < np.sort(logits, 1)[:, -m, None], np.nan, logits)


def test_every_kind_has_the_same_differences():
    logits, _ = made_up()
    expected, highest = differences(logits, "logits")
    np.testing.assert_allclose(expected, logits - logits.max(1, keepdims=True))
    np.testing.assert_array_equal(highest, logits.max(1))
    for kind, values in (
        ("probabilities", softmax(logits)),
        ("sigmoid", 1 / (1 + np.exp(-logits))),
        ("similarities", logits + np.arange(len(logits))[:, None]),
    ):
        np.testing.assert_allclose(differences(values, kind)[0], expected, atol=1e-9)
    assert set(KINDS) == {"logits", "probabilities", "sigmoid", "similarities"}


def test_what_a_model_prefers_is_taken_back():
    logits, _ = made_up()
    weights = np.linspace(1, 5, 60)
    found, _ = differences(softmax(logits + np.log(weights)), "probabilities", weights)
    np.testing.assert_allclose(found, differences(logits, "logits")[0], atol=1e-9)


def test_the_unit_follows_the_scale_and_forgets_offsets():
    logits, _ = made_up()
    unit = unit_of(logits)
    ranked = -np.sort(-logits, 1)
    assert unit == pytest.approx(min(j * (ranked[:, j - 1] - ranked[:, j]).mean() for j in (2, 3, 4)))
    assert unit_of(5 * logits + 100 * np.arange(40)[:, None]) == pytest.approx(5 * unit)
    assert unit_of(np.ones((4, 5))) == 1
    assert unit_of(np.zeros((3, 1))) == 1


def test_the_unit_ignores_banned_classes_as_if_they_were_not_there():
    logits, _ = made_up()
    banned = np.zeros((40, 60), bool)
    banned[::2, 30:], banned[1::2, :30] = True, True
    assert unit_of(logits, banned) == unit_of(np.concatenate([logits[::2, :30], logits[1::2, 30:]]))
    assert unit_of(logits, np.arange(60) >= 40) == unit_of(logits[:, :40])


def test_a_list_of_the_best_has_the_unit_of_all():
    logits, _ = made_up()
    for m in (5, 20):
        assert unit_of(best(logits, m)) == unit_of(logits)
    ranked, nan = -np.sort(-logits, 1), math.nan
    assert unit_of(best(logits, 3)) == pytest.approx(2 * (ranked[:, 1] - ranked[:, 2]).mean())
    one_longer = np.where(np.arange(40)[:, None] == 0, logits, best(logits, 3))
    assert unit_of(one_longer) == unit_of(best(logits, 3))
    assert unit_of(np.array([[0.0, -2.0, nan, nan], [-4.0, 0.0, nan, nan]])) == pytest.approx(3)
    assert unit_of(np.array([[0.0, nan, nan], [nan, 0.0, nan]])) == 1
    assert unit_of(np.full((2, 3), nan)) == 1


def test_a_probability_rounded_to_zero_is_not_listed():
    p = np.array([[0.9, 0.1, 0.0, 0.0], [0.5, 0.5 - 1e-6, 1e-6, 0.0], [1.0, 0.0, 0.0, 0.0]])
    found, _ = differences(p, "probabilities")
    np.testing.assert_array_equal(np.isnan(found), p == 0)
    counted, _ = differences(p, "probabilities", unlisted=True)
    assert counted[p == 0].tolist() == pytest.approx([math.log(1e-6 / p[row].max()) for row in (0, 0, 1, 2, 2, 2)])


def test_what_is_not_listed_is_no_label_unless_the_user_says_so():
    logits, _ = made_up(lead=1.0)
    cut = best(logits, 5)
    assert np.isneginf(in_nats(cut, 1.0)).sum() == 40 * 55
    found = labelled(cut).probabilities
    assert (found[np.isnan(cut)] == 0).all()
    np.testing.assert_allclose(found.sum(1), 1)
    cut, _ = differences(cut, "logits")
    filled = in_nats(cut, 1.0, unlisted=True)
    last = NATS * np.nanmin(cut, 1)
    np.testing.assert_allclose(np.where(np.isnan(cut), filled, np.inf).min(1), last - math.log(60 / 5), atol=1e-9)


def test_an_item_that_lists_nothing_may_have_any_class():
    found = label_scores(np.full((2, 4), -np.inf))
    np.testing.assert_allclose(found.probabilities, 0.25)
    logits, _ = made_up()
    nats = in_nats(best(logits, 1), 1.0)
    nats[5] = -np.inf
    found = label_scores(nats)
    assert (found.probabilities[5] > 0).all()
    # Nothing that the item lists is among the candidates.
    allowed = np.arange(60) < 2
    found = label_scores(nats, Context(np.where(allowed, math.log(0.5), -np.inf)))
    assert (found.probabilities[:, allowed].sum(1) > 0.999).all()


def test_joint_labels_beat_the_best_scores_and_find_the_classes():
    logits, truth = made_up()
    found = labelled(logits)
    own = (logits.argmax(1) == truth).mean()
    assert own < 0.7
    assert (found.probabilities.argmax(1) == truth).mean() > own + 0.2
    assert np.flatnonzero(found.presence >= 0.5).tolist() == [3, 7]
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    assert np.isnan(found.unknown).all()
    assert not found.rejected.any()


def test_neither_the_order_of_items_nor_of_classes_matters():
    logits, _ = made_up((3, 7, 11, 20), 60, lead=1.5)
    expected, rng = labelled(logits), np.random.default_rng(1)
    rows, columns = rng.permutation(60), rng.permutation(60)
    found = labelled(logits[rows][:, columns])
    np.testing.assert_allclose(found.probabilities, expected.probabilities[rows][:, columns], atol=1e-3)
    np.testing.assert_allclose(found.presence, expected.presence[columns], atol=1e-3)
    np.testing.assert_array_equal(labelled(logits).probabilities, expected.probabilities)


def test_a_large_batch_is_decided_by_a_part_of_it():
    logits, truth = made_up((3, 7), 3000)
    found, order = labelled(logits), np.random.default_rng(0).permutation(3000)
    assert (found.probabilities.argmax(1) == truth).mean() > (logits.argmax(1) == truth).mean() + 0.2
    np.testing.assert_allclose(labelled(logits[order]).probabilities, found.probabilities[order], atol=0.1)


def test_where_all_classes_occur_every_item_keeps_its_best_score():
    few, _ = made_up(tuple(range(6)), n_items=180)
    most, _ = made_up(tuple(range(60)), n_items=60)
    assert labelled(few).joint_weight > 0.5
    found = labelled(most)
    assert found.joint_weight < 0.3
    assert (found.probabilities.argmax(1) == most.argmax(1)).mean() > 0.98


def test_a_single_item_is_labelled_alone():
    logits, _ = made_up()
    found = label_scores(in_nats(logits[:1], 1.0))
    assert found.joint_weight == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(found.probabilities, softmax(NATS * logits[:1]), rtol=1e-5)


def test_a_banned_class_is_as_if_it_were_not_there():
    logits, _ = made_up((3, 7, 9), 60)
    log_shares = np.where(np.arange(60) < 40, -math.log(40), -np.inf)
    banned = label_scores(in_nats(logits, 1.0), Context(log_shares))
    without = label_scores(in_nats(logits[:, :40], 1.0))
    np.testing.assert_allclose(banned.probabilities[:, :40], without.probabilities, atol=1e-6)
    assert (banned.probabilities[:, 40:] == 0).all()
    assert (banned.presence[40:] == 0).all()


def test_given_items_keep_their_class_and_items_of_none_do_not_count():
    logits, _ = made_up()
    given = np.full(40, -1)
    given[:6], given[30:] = 20, NO_CLASS
    found = labelled(logits, Context(given=given))
    assert (found.probabilities[:6].argmax(1) == 20).all()
    assert found.expected_counts[20] > 5.9
    assert found.presence[20] == 1
    assert found.expected_counts.sum() == pytest.approx(30)
    assert found.rejected.tolist() == (given == NO_CLASS).tolist()


def test_labelled_items_find_the_temperature_and_few_of_them_hardly_move_it():
    rng = np.random.default_rng(0)
    nats = NATS * rng.normal(size=(3000, 30))
    for factor in (0.6, 1.0, 1.9):
        chances = softmax(factor * nats).cumsum(1)
        truth = (rng.random((3000, 1)) > chances).sum(1).clip(max=29)
        assert factor_of_labelled(nats, truth) == pytest.approx(factor, rel=0.06)
        few = factor_of_labelled(nats[:3], truth[:3])
        assert abs(math.log(few)) < 0.8 * abs(math.log(factor)) + 0.1
    assert factor_of_labelled(np.full((2, 3), -np.inf), np.array([0, 1])) == pytest.approx(1, abs=1e-4)
