"""Differences, their unit, what is not listed, batches of scores, several classes per item, and names alone."""

import math

import numpy as np
import pytest

from handful.model.knowledge import FixedLabels, Knowledge, Prior
from handful.model.labelling import label_by_names, label_scores
from handful.model.scores import KINDS, differences, factor_of_labelled, in_nats, unit_of
from handful.model.settings import DEFAULT
from handful.model.several import raised_presence, several_probabilities


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


def labelled(logits, knowledge=None):
    return label_scores(in_nats(logits, unit_of(logits)), knowledge)


def only(allowed):
    """Only some classes can occur, with equal shares."""
    return Knowledge(Prior.of(allowed.astype(float)[None], np.array([DEFAULT.prior_concentration])))


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
    excluded = np.zeros((40, 60), bool)
    excluded[::2, 30:], excluded[1::2, :30] = True, True
    assert unit_of(logits, excluded) == unit_of(np.concatenate([logits[::2, :30], logits[1::2, 30:]]))
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
    last = DEFAULT.nats_per_unit * np.nanmin(cut, 1)
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
    found = label_scores(nats, only(allowed))
    assert (found.probabilities[:, allowed].sum(1) > 0.999).all()


def test_joint_labels_beat_the_best_scores_and_find_the_classes():
    logits, truth = made_up()
    found = labelled(logits)
    own = (logits.argmax(1) == truth).mean()
    assert own < 0.7
    assert (found.probabilities.argmax(1) == truth).mean() > own + 0.2
    assert np.flatnonzero(found.presence >= 0.9).tolist() == [3, 7]
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
    np.testing.assert_allclose(found.probabilities, softmax(DEFAULT.nats_per_unit * logits[:1]), rtol=1e-5)


def test_a_banned_class_is_as_if_it_were_not_there():
    logits, _ = made_up((3, 7, 9), 60)
    excluded = label_scores(in_nats(logits, 1.0), only(np.arange(60) < 40))
    without = label_scores(in_nats(logits[:, :40], 1.0))
    np.testing.assert_allclose(excluded.probabilities[:, :40], without.probabilities, atol=1e-6)
    assert (excluded.probabilities[:, 40:] == 0).all()
    assert (excluded.presence[40:] == 0).all()


def test_given_items_keep_their_class():
    logits, _ = made_up()
    given = np.full(40, -1)
    given[:6] = 20
    found = labelled(logits, Knowledge(labels=FixedLabels.of(given)))
    assert (found.probabilities[:6].argmax(1) == 20).all()
    assert found.expected_counts[20] > 5.9
    assert found.presence[20] == 1
    assert found.expected_counts.sum() == pytest.approx(40)


def test_labelled_items_find_the_temperature_and_few_of_them_hardly_move_it():
    rng = np.random.default_rng(0)
    nats = DEFAULT.nats_per_unit * rng.normal(size=(3000, 30))
    for factor in (0.6, 1.0, 1.9):
        chances = softmax(factor * nats).cumsum(1)
        truth = (rng.random((3000, 1)) > chances).sum(1).clip(max=29)
        assert factor_of_labelled(nats, truth) == pytest.approx(factor, rel=0.06)
        few = factor_of_labelled(nats[:3], truth[:3])
        assert abs(math.log(few)) < 0.8 * abs(math.log(factor)) + 0.1
    assert factor_of_labelled(np.full((2, 3), -np.inf), np.array([0, 1])) == pytest.approx(1, abs=1e-4)


def sigmoids(rates=(0.5, 0.3, 0.1), n_items=300, n_classes=40, lead=4.0, level=-6.0, seed=0):
    """Scores whose log-likelihood ratio is known: N(lead, lead) against N(0, lead), and a level on top."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_items, n_classes)) < np.array([*rates, *[0.0] * (n_classes - len(rates))])
    return lead**0.5 * rng.normal(size=truth.shape) + lead * truth + level, truth


def only_first(n, n_classes=40):
    return (np.arange(n_classes) < n).astype(float)


def test_shares_and_chances_are_right_whatever_the_level():
    scores, truth = sigmoids()
    everything = np.ones(scores.shape, bool)
    chances = several_probabilities(scores, only_first(3), everything)
    assert (chances.sum(0)[:3] / truth.sum(0)[:3]).tolist() == pytest.approx([1, 1, 1], abs=0.25)
    assert (chances[:, 3:] == 0).all()
    sure = (chances > 0.8) & (chances < 0.95)
    assert truth[sure].mean() == pytest.approx(chances[sure].mean(), abs=0.12)
    np.testing.assert_allclose(several_probabilities(3 * scores + 9, only_first(3), everything), chances)


def test_classes_that_are_not_allowed_do_not_count():
    scores, _ = sigmoids(n_items=60)
    alone = several_probabilities(scores, only_first(3), np.ones(scores.shape, bool))
    wider = np.column_stack([scores, np.full((60, 2), 50.0)])
    allowed = np.broadcast_to(np.arange(42) < 40, wider.shape)
    found = several_probabilities(wider, np.append(only_first(3), [1, 1]), allowed)
    np.testing.assert_allclose(found[:, :40], alone)
    assert (found[:, 40:] == 0).all()


def test_where_all_classes_are_present_all_give_the_level():
    scores, _ = sigmoids((0.5, 0.5), n_classes=2, n_items=50)
    chances = several_probabilities(scores, np.ones(2), np.ones(scores.shape, bool))
    assert ((chances >= 0) & (chances <= 1)).all()


def test_classes_that_always_occur_with_others_are_found_too():
    alone = np.array([10.0, 12.0, 9.0, 1.2, 3.0])
    found = raised_presence(np.array([0.9, 0.8, 0.1, 0.1, 0.1]), alone)
    assert (found >= 0.5).tolist() == [True, True, True, False, False]
    np.testing.assert_array_equal(raised_presence(np.full(5, 0.1), alone), np.full(5, 0.1))


def named_batch(classes, n_items=60, n_classes=80, dim=24, noise=1.3, seed=0, domain=0.0):
    """Names, and unit vectors of items of some classes, with their truth."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, dim)) + domain
    names = centres + 0.9 * rng.normal(size=centres.shape)
    truth = np.array(classes)[np.arange(n_items) % len(classes)]
    points = centres[truth] + noise * rng.normal(size=(n_items, dim))
    return *(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (names, points)), truth


def gains(batches):
    """How far joint labels are ahead of the nearest name, in each named_batch."""
    return np.array(
        [
            (label_by_names(points, names).probabilities.argmax(1) == truth).mean()
            - ((points @ names.T).argmax(1) == truth).mean()
            for names, points, truth in batches
        ]
    )


def test_few_classes_are_found_together():
    assert gains(named_batch([k, k + 9, k + 30], seed=k) for k in range(8)).mean() > 0.08


@pytest.mark.parametrize(("n_present", "noise"), [(80, 0.7), (80, 1.3), (30, 1.3), (20, 1.6)])
def test_many_classes_lose_nothing_even_if_names_are_weak(n_present, noise):
    found = gains(named_batch(list(range(n_present)), 80, noise=noise, seed=seed) for seed in range(8))
    assert found.mean() > -0.01


@pytest.mark.parametrize("domain", [1.0, 3.0])
@pytest.mark.parametrize("n_present", [2, 16])
def test_items_of_one_domain_do_not_all_join_the_largest_class(domain, n_present):
    found = gains(named_batch(list(range(n_present)), 200, n_classes=16, domain=domain, seed=seed) for seed in range(6))
    assert found.mean() > (0.05 if n_present == 2 else -0.01)


def test_a_class_whose_name_is_second_to_another_is_not_lost_for_certain():
    """All items are a little nearer to the name of another class than to their own, and far from all others."""
    rng = np.random.default_rng(0)
    names = rng.normal(size=(77, 48))
    points = names[3] + 1.05 * names[4] + 1.5 * rng.normal(size=(20, 48))
    found = label_by_names(points, names).probabilities
    assert (found.argmax(1) == 4).all()
    assert (found.max(1) < 0.98).mean() > 0.6


def test_a_factor_on_names_changes_nothing():
    names, points, _ = named_batch([3, 7, 20])
    expected = label_by_names(points, names).probabilities
    np.testing.assert_allclose(label_by_names(points, 0.2 * names).probabilities, expected, atol=1e-3)


def test_candidates_are_the_only_classes():
    names, points, truth = named_batch([3, 7, 20])
    left = np.isin(np.arange(80), [3, 7, *range(20, 30)])
    found = label_by_names(points, names, only(left)).probabilities
    assert found[:, ~left].sum() == 0
    everything = label_by_names(points, names).probabilities
    assert (found.argmax(1) == truth).mean() >= (everything.argmax(1) == truth).mean()
    allowed = np.broadcast_to(left, everything.shape)
    assert label_by_names(points, names, Knowledge(allowed=allowed[None])).probabilities[:, ~left].sum() == 0


def test_one_class_and_equal_names_are_no_trouble():
    names, points, _ = named_batch([3, 7, 20])
    assert label_by_names(points, names[:1]).probabilities.min() > 0.999
    np.testing.assert_allclose(label_by_names(points, names[[0, 0, 0, 0]]).probabilities, 0.25)
