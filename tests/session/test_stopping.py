"""The rule when a person may stop: the arithmetic of two numbers, against simulation and by what it must do."""

import numpy as np
import pytest

from handful.session import Calibration, stopping
from handful.session.stopping import Look, Mistakes, Posterior, Unseen, chance_of_slip, n_overlooked


def labels(risk, group, found_right=0.0, rejected=False):
    n = len(risk)
    return Unseen(risk, np.broadcast_to(group, n), np.full(n, float(found_right)), np.full(n, rejected))


ALONE = labels(np.full(60, 0.02), 0, found_right=1_000)
ONE_GROUP = labels(np.full(12, 0.003), 0)
RIGHT = [Look((0.05,) * 8, (False,) * 8)]


def test_the_number_of_wrong_labels_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    n = 40_000
    found_right = np.repeat([1_000.0, 0.0, 2.0], [20, 12, 8])
    unseen = Unseen(np.linspace(0.01, 0.3, 40), np.repeat([0, 1, 2], [20, 12, 8]), found_right, np.zeros(40, bool))
    posterior = Posterior(Calibration(), RIGHT)
    factor, share = np.unravel_index(
        rng.choice(posterior.weights.size, n, p=posterior.weights.ravel()), posterior.weights.shape
    )
    chance = np.minimum(stopping.RISK_FACTORS[factor][:, None] * unseen.risk, stopping.MOST_RISK)
    mean, deviation = chance.sum(1), np.sqrt(stopping.MISTAKES_TOGETHER * (chance * (1 - chance)).sum(1))
    alone = mean + deviation * rng.normal(size=n)
    mixes = np.zeros(n, int)
    e = stopping.MIXED_LABELS[share]
    for size, k in ((12, 0), (8, 2)):
        # A mix whose k items were all right is less likely, and has fewer wrong items.
        wrong_share = rng.random(n)
        mixed = rng.random(n) < e
        survives = ~mixed | (rng.random((k, n)) > wrong_share).all(0)
        while not survives.all():
            again = np.flatnonzero(~survives)
            wrong_share[again] = rng.random(len(again))
            mixed[again] = rng.random(len(again)) < e[again]
            survives[again] = ~mixed[again] | (rng.random((k, len(again))) > wrong_share[again]).all(0)
        mixes += mixed * rng.binomial(size, wrong_share)
    total = np.floor(alone + 0.5).clip(0) + mixes + rng.poisson(0.7, n) + 2
    counts = np.arange(43)
    simulated = (total[:, None] <= counts).mean(0)
    np.testing.assert_allclose(posterior.at_most(unseen, counts, Mistakes(2, 0.7)), simulated, atol=0.08)


def test_a_mix_is_as_wrong_on_the_mean_as_its_share():
    posterior = Posterior(Calibration())
    first, later = (posterior.wrong(labels(np.zeros(3), 0, k)) for k in (0, 3))
    e = posterior.weights.sum(0)
    by_risk = posterior.alone(labels(np.zeros(3), 0))
    expected = 1 - (1 - by_risk) * (1 - e @ stopping.MIXED_LABELS / 2)
    np.testing.assert_allclose(first, expected, rtol=0.01)
    assert (by_risk < later).all()
    assert (later < first).all()


def test_labels_that_were_right_make_the_others_surer():
    before, after = Posterior(Calibration()), Posterior(Calibration(), RIGHT * 6)
    assert after.wrong(ALONE).sum() < before.wrong(ALONE).sum()
    assert after.right(ALONE, 80).low > before.right(ALONE, 80).low


def test_labels_that_were_wrong_at_a_small_risk_make_the_others_doubtful():
    wrong = [Look((0.02,), (True,), 50.0)] * 3
    assert Posterior(Calibration(), wrong).wrong(ALONE).mean() > 2 * Posterior(Calibration()).wrong(ALONE).mean()


def test_a_label_that_nobody_looked_at_can_be_a_mix():
    posterior = Posterior(Calibration(), RIGHT * 2)
    looked_at = ONE_GROUP._replace(found_right=np.full(12, 2.0))
    assert posterior.may_stop(looked_at, 80)
    assert posterior.wrong(ONE_GROUP).min() > posterior.wrong(looked_at).max()
    doubtful = Posterior(Calibration(), [Look((0.01, 0.01), (True, True))] * 3)
    assert not doubtful.may_stop(ONE_GROUP, 80)
    # One item that was right does not vouch for the others.
    once = ONE_GROUP._replace(found_right=np.ones(12))
    assert doubtful.wrong(once).sum() > 2 * doubtful.alone(once).sum()


def test_rejected_items_that_nobody_looked_at_are_doubtful():
    sure = Posterior(Calibration(), RIGHT * 20)
    rejected = ONE_GROUP._replace(rejected=np.ones(12, bool))
    assert sure.may_stop(ONE_GROUP, 80)
    assert not sure.may_stop(rejected, 80)
    assert sure.may_stop(rejected._replace(found_right=np.full(12, 2.0)), 80)


def test_slips_of_a_person_count():
    posterior = Posterior(Calibration(), RIGHT * 6)
    nothing = labels(np.empty(0), 0)
    assert posterior.may_stop(nothing, 80)
    assert posterior.may_stop(nothing, 80, mistakes=Mistakes(0, 1.0))
    assert not posterior.may_stop(nothing, 80, mistakes=Mistakes(0, 4.0))
    assert not posterior.may_stop(nothing, 80, mistakes=Mistakes(5, 0.0))
    assert posterior.right(nothing, 80, Mistakes(2, 2.0)).value == pytest.approx(0.95)
    # Against a sure label, an answer is more likely a slip than against a doubtful one.
    assert chance_of_slip(0.01) > 0.5 > chance_of_slip(0.2) > chance_of_slip(0.9)
    assert n_overlooked(9) == pytest.approx(1)


def test_more_proof_needs_more_evidence():
    posterior = Posterior(Calibration(), RIGHT * 2)
    chance = posterior.at_most(ALONE, np.arange(5))[-1]
    assert posterior.may_stop(ALONE, 80, sure=chance - 0.01)
    assert not posterior.may_stop(ALONE, 80, sure=chance + 0.01)


@pytest.mark.parametrize("n_items", [1, 19, 80, 5_000])
def test_estimates_are_shares_in_order(n_items):
    unseen = labels(np.linspace(0, 1, n_items), np.arange(n_items) % 7)
    found = Posterior(Calibration(), RIGHT).right(unseen, n_items + 3)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_few_labels_left_are_never_too_many():
    few = labels(np.ones(4), 0)
    assert Posterior(Calibration()).may_stop(few, 80)
    assert not Posterior(Calibration()).may_stop(few, 79)


def test_the_next_batch_starts_where_this_one_ended():
    calibration = Calibration().after(RIGHT * 20)
    assert Posterior(calibration).wrong(ALONE).sum() < Posterior(Calibration()).wrong(ALONE).sum()
    assert Posterior(calibration).wrong(ONE_GROUP).sum() < Posterior(Calibration()).wrong(ONE_GROUP).sum()


def test_a_label_that_was_a_mix_says_little_about_risks():
    (of_labels, of_risks) = Calibration().after([Look((0.02,) * 12, (True,) * 12)]).rows
    assert of_labels[2] > 0.95
    assert of_risks[2] < 0.05
    (of_risks,) = Calibration().after([Look((0.3,), (True,), found_right=50.0)]).rows
    assert of_risks[2] > 0.95


def test_old_batches_cannot_make_it_blind():
    calibration = Calibration()
    for _ in range(500):
        calibration = calibration.after(RIGHT * 6)
    counted = sum(n for risk, n, _ in calibration.rows if risk > 0)
    assert counted == pytest.approx(stopping.MOST_KEPT)
    assert len(calibration.rows) <= len(stopping.RISK_BINS) + 1
    wrong = [Look((0.02,), (True,), 50.0)] * 6
    assert Posterior(calibration, wrong).wrong(ALONE).mean() > 3 * Posterior(calibration).wrong(ALONE).mean()
