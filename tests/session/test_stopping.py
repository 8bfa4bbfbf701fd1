"""The rule when a person may stop: the arithmetic of two numbers, against simulation and by what it must do."""

import numpy as np
import pytest

from handful.session import Calibration, stopping
from handful.session.stopping import Look, Posterior, Unseen

ALONE = Unseen(np.full(60, 0.02), np.full(60, -1))
ONE_GROUP = Unseen(np.full(12, 0.003), np.zeros(12, int))
RIGHT = [Look((0.05,) * 8, (False,) * 8, is_first=True)]


def test_the_number_of_wrong_labels_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    unseen = Unseen(np.linspace(0.01, 0.3, 40), np.repeat([-1, 0, 1], [20, 12, 8]))
    posterior = Posterior(Calibration(), RIGHT)
    factor, share = np.unravel_index(
        rng.choice(posterior.weights.size, 20_000, p=posterior.weights.ravel()), posterior.weights.shape
    )
    chance = np.minimum(stopping.RISK_FACTORS[factor][:, None] * unseen.risk, stopping.MOST_RISK)
    mean, deviation = chance.sum(1), np.sqrt(stopping.MISTAKES_TOGETHER * (chance * (1 - chance)).sum(1))
    alone = mean + deviation * rng.normal(size=20_000)
    groups = rng.random((20_000, 2)) < stopping.WRONG_GROUPS[share][:, None]
    together = groups @ np.array([12, 8])
    counts = np.arange(41)
    # A sum of whole groups and of others, which are rounded to whole numbers first.
    total = np.floor(alone + 0.5).clip(0) + together
    simulated = (total[:, None] <= counts).mean(0)
    np.testing.assert_allclose(posterior.at_most(unseen, counts), simulated, atol=0.08)


def test_labels_that_were_right_make_the_others_surer():
    before, after = Posterior(Calibration()), Posterior(Calibration(), RIGHT * 6)
    assert after.wrong(ALONE).sum() < before.wrong(ALONE).sum()
    assert after.right(ALONE, 80).low > before.right(ALONE, 80).low


def test_labels_that_were_wrong_at_a_small_risk_make_the_others_doubtful():
    wrong = [Look((0.02,), (True,), is_first=False)] * 3
    assert Posterior(Calibration(), wrong).wrong(ALONE).mean() > 2 * Posterior(Calibration()).wrong(ALONE).mean()


def test_a_label_that_nobody_looked_at_can_be_wrong_as_a_whole():
    posterior = Posterior(Calibration(), [Look((0.9,), (True,), is_first=True)] * 2)
    looked_at = ONE_GROUP._replace(group=np.full(12, -1))
    assert posterior.may_stop(looked_at, 80)
    assert posterior.wrong(ONE_GROUP).min() > posterior.wrong(looked_at).max()
    doubtful = Posterior(Calibration(), [Look((0.01, 0.01), (True, True), is_first=True)] * 3)
    assert not doubtful.may_stop(ONE_GROUP, 80)


def test_more_proof_needs_more_evidence():
    posterior = Posterior(Calibration(), RIGHT * 2)
    chance = posterior.at_most(ALONE, np.arange(5))[-1]
    assert posterior.may_stop(ALONE, 80, sure=chance - 0.01)
    assert not posterior.may_stop(ALONE, 80, sure=chance + 0.01)


@pytest.mark.parametrize("n_items", [1, 19, 80, 5_000])
def test_estimates_are_shares_in_order(n_items):
    unseen = Unseen(np.linspace(0, 1, n_items), np.arange(n_items) % 7 - 1)
    found = Posterior(Calibration(), RIGHT).right(unseen, n_items + 3)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_few_labels_left_are_never_too_many():
    few = Unseen(np.ones(4), np.zeros(4, int))
    assert Posterior(Calibration()).may_stop(few, 80)
    assert not Posterior(Calibration()).may_stop(few, 79)


def test_the_next_batch_starts_where_this_one_ended():
    calibration = Calibration().after(RIGHT * 20)
    assert Posterior(calibration).wrong(ALONE).sum() < Posterior(Calibration()).wrong(ALONE).sum()
    assert Posterior(calibration).wrong(ONE_GROUP).sum() < Posterior(Calibration()).wrong(ONE_GROUP).sum()


def test_old_batches_cannot_make_it_blind():
    calibration = Calibration()
    for _ in range(500):
        calibration = calibration.after(RIGHT * 6)
    counted = sum(n for risk, n, _ in calibration.rows if risk > 0)
    assert counted == pytest.approx(stopping.MOST_KEPT)
    assert len(calibration.rows) <= len(stopping.RISK_BINS) + 1
    wrong = [Look((0.02,), (True,), is_first=False)] * 6
    assert Posterior(calibration, wrong).wrong(ALONE).mean() > 3 * Posterior(calibration).wrong(ALONE).mean()
