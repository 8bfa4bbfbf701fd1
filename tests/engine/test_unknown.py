"""Unknown items: two populations in one batch are evidence, a batch that is far as a whole is not."""

import numpy as np
import pytest

from handful.engine.levels import Levels
from handful.engine.unknown import REJECTED, Looks, Verdict


def levels(level, known, unknown):
    return Levels((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (level, 0.0), (known, 0.0), (unknown, 0.0), 1.0)


class Said:
    """What single items say; `far` is what a batch from elsewhere is seen by."""

    def __init__(self, t, of=None, far=1.0, weights=None):
        ones = np.ones(len(t))
        looks = Looks(np.asarray(t), ones, ones if weights is None else weights)
        self.verdict = Verdict.of(of or levels(5.0, 1.0, 1.5), looks, far)
        self.chances, self.interval = self.verdict.chances(looks.t, ones), self.verdict.interval
        self.rejected = (self.chances > REJECTED) & self.verdict.is_open


@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize(("shift", "width"), [(0, 1), (3, 1), (6, 1.4), (2, 1.4)])
def test_nothing_unknown_in_a_batch_from_elsewhere(n, shift, width):
    rng = np.random.default_rng(0)
    found = Said(shift + width * rng.normal(size=n), far=1 + shift / 4)
    assert found.rejected.mean() <= 0.02
    assert found.interval[0] <= 0.05


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_two_populations_are_told_apart_wherever_they_lie(shift, share):
    covered, errors, rejected = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        strange = np.arange(60) < 60 * share
        found = Said(shift + np.where(strange, rng.normal(5, 1.2, 60), rng.normal(0, 1, 60)), far=1 + shift / 4)
        errors.append(abs(found.chances.mean() - strange.mean()))
        covered.append(found.interval[0] <= strange.mean() <= found.interval[1])
        rejected.append(found.rejected[~strange].mean())
    assert np.mean(rejected) <= 0.05
    assert np.mean(errors) < 0.08
    assert np.mean(covered) >= 0.8


def test_what_cannot_be_told_apart_has_a_wide_interval_and_rejects_nothing():
    found = Said(np.random.default_rng(0).normal(size=60), levels(0.3, 1.0, 1.0))
    assert found.interval[1] - found.interval[0] > 0.5
    assert not found.rejected.any()


def test_an_item_farther_out_is_never_less_likely_unknown():
    t = np.concatenate([np.random.default_rng(0).normal(size=40), np.linspace(3, 30, 20)])
    found = Said(t, levels(5.0, 2.0, 1.0))
    assert (np.diff(found.chances[40:]) >= -1e-9).all()


def test_copies_are_one_piece_of_evidence():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(size=30), [5.0]])
    once = Said(t).verdict.evidence
    copied = Said(np.concatenate([t, np.full(49, 5.0)]), weights=np.concatenate([np.ones(30), np.full(50, 1 / 50)]))
    assert copied.verdict.evidence == pytest.approx(once)


def test_a_batch_from_elsewhere_needs_more_evidence():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(size=30), rng.normal(3.0, 1.0, size=10)])
    at_home, away = (Said(t, levels(3.0, 1.0, 1.0), far=far).verdict.evidence for far in (1.0, 2.0))
    assert at_home > 2
    assert away < at_home
