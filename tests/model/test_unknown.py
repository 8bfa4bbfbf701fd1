"""Unknown items: what a catalogue tells, and two populations in one batch as evidence."""

import numpy as np
import pytest

from handful.model.head import fit_head
from handful.model.knowledge import ToldShare
from handful.model.linear import logistic_line
from handful.model.settings import DEFAULT
from handful.model.unknown_in_batch import UnknownCounts, UnknownEvidence, UnknownPosterior, rejection_limit
from handful.model.unknown_of_catalogue import UnknownModel, fit_unknown_model, unknown_reason


def model(level, unknown=1.5):
    return UnknownModel((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), 1.0, (level, 0.0), (unknown, 0.0), 1.0)


class Posterior:
    """What single items say."""

    def __init__(self, t, of=None, **others):
        others = {name: values[None] for name, values in others.items()}
        evidence = UnknownEvidence.of(np.asarray(t, float)[None])._replace(**others)
        self.grid = UnknownPosterior.of(of or model(5.0), evidence)
        self.chances, self.interval = self.grid.of_items(evidence)[0], self.grid.interval[0]
        self.nothing = self.grid.grid[0, 0].sum()
        self.rejected = self.chances > DEFAULT.rejected


@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize(("shift", "width"), [(0, 1), (3, 1), (6, 1.4), (2, 1.4)])
def test_nothing_unknown_in_a_batch_from_elsewhere(n, shift, width):
    rng = np.random.default_rng(0)
    found = Posterior(shift + width * rng.normal(size=n))
    assert found.rejected.mean() <= 0.02
    assert found.interval[0] <= 0.05


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_two_populations_are_told_apart_wherever_they_lie(shift, share):
    covered, errors, rejected = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        strange = np.arange(60) < 60 * share
        found = Posterior(shift + np.where(strange, rng.normal(5, 1.2, 60), rng.normal(0, 1, 60)))
        errors.append(abs(found.chances.mean() - strange.mean()))
        covered.append(found.interval[0] <= strange.mean() <= found.interval[1])
        rejected.append(found.rejected[~strange].mean())
    assert np.mean(rejected) <= 0.05
    assert np.mean(errors) < 0.08
    assert np.mean(covered) >= 0.8


def test_what_cannot_be_told_apart_has_a_wide_interval_and_rejects_nothing():
    found = Posterior(np.random.default_rng(0).normal(size=60), model(0.3, 1.0))
    assert found.interval[1] - found.interval[0] > 0.5
    assert not found.rejected.any()


def test_an_item_farther_out_is_never_less_likely_unknown():
    t = np.concatenate([np.random.default_rng(0).normal(size=40), np.linspace(3, 30, 20)])
    found = Posterior(t, model(5.0))
    assert (np.diff(found.chances[40:]) >= -1e-9).all()


def test_copies_are_one_piece_of_evidence():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(size=30), [5.0]])
    weights = np.concatenate([np.ones(30), np.full(50, 1 / 50)])
    copied = Posterior(np.concatenate([t, np.full(49, 5.0)]), weights=weights)
    assert copied.nothing == pytest.approx(Posterior(t).nothing)


def test_labels_of_known_items_tell_the_shift_and_nothing_about_the_share():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(0, 1, size=30), rng.normal(6, 1, size=30)])
    labelled = np.zeros(60, bool)
    labelled[:10] = True
    alone = Posterior(t)
    helped = Posterior(t, labelled=labelled)
    others = np.arange(60) >= 30
    assert helped.chances[others].mean() >= alone.chances[others].mean() - 1e-3
    shifted = Posterior(t[:30] + 3, labelled=labelled[:30])
    assert not shifted.rejected[10:].any()  # the labelled ones are as far as all others


def with_share(t, a, b, of=None):
    """UnknownPosterior, chances and rejected items if the share is Beta(a, b)."""
    evidence, share = UnknownEvidence.of(t[None]), ToldShare.of(np.array([a, b]))
    posterior = UnknownPosterior.of(of or model(5.0), evidence, share)
    chances = posterior.of_items(evidence)
    return posterior, chances[0], chances[0] > rejection_limit(UnknownCounts.of(chances), share)[0]


def test_where_nothing_can_be_told_apart_the_share_is_the_one_told():
    t = np.random.default_rng(0).normal(size=60)
    for share in (0.1, 0.3, 0.7):
        _, chances, rejected = with_share(t, 100 * share, 100 * (1 - share), model(0.1, 1.0))
        assert chances.mean() == pytest.approx(share, abs=0.05)
        # No more than so that 15% of the known items are expected among them.
        assert rejected.sum() <= min(round(chances.sum()), 0.15 * 60 + 1)
        assert rejected.sum() >= 5
        assert chances[rejected].min() > chances[~rejected].max()


def test_two_populations_overcome_the_share_told():
    rng = np.random.default_rng(0)
    strange = np.arange(60) < 18
    for share in (0.15, 0.3, 0.6):
        _, _, rejected = with_share(
            np.where(strange, rng.normal(6, 1, 60), rng.normal(0, 1, 60)), 10 * share, 10 - 10 * share
        )
        assert (rejected == strange).mean() > 0.95


def test_told_that_nothing_is_unknown():
    rng = np.random.default_rng(0)
    posterior, chances, rejected = with_share(np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 20)]), 0.0, 1.0)
    assert not rejected.any()
    assert (chances == 0).all()
    assert posterior.interval.tolist() == [[0, 0]]


def test_in_a_stack_each_batch_has_its_own_share():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(3, 40))
    shares = ToldShare(np.array([1.0, 3.0, 0.0]), np.array([1.0, 7.0, 1.0]), np.array([False, True, True]))
    of = model(5.0)
    stack = UnknownPosterior.of(of, UnknownEvidence.of(t), shares)
    limits = rejection_limit(UnknownCounts.of(stack.of_items(UnknownEvidence.of(t))), shares)
    for place, share in enumerate([None, ToldShare.of(np.array([3.0, 7.0])), ToldShare.of(np.array([0.0, 1.0]))]):
        alone = UnknownEvidence.of(t[place : place + 1])
        one = UnknownPosterior.of(of, alone, share)
        np.testing.assert_allclose(stack.grid[place], one.grid[0], atol=1e-12)
        limit = rejection_limit(UnknownCounts.of(one.of_items(alone)), share)[0]
        assert limits[place] == pytest.approx(limit, abs=1e-4)


def test_parts_of_a_batch_have_one_limit_however_they_are_cut():
    rng = np.random.default_rng(0)
    unknown = rng.beta(0.4, 1.0, size=500)
    share = ToldShare.of(np.array([3.0, 7.0]))
    whole = UnknownCounts.of(unknown[None])
    limit = rejection_limit(whole, share)
    for cuts in ([250], [1, 2, 499], [100, 200, 300, 400]):
        parts = [UnknownCounts.of(part[None]) for part in np.split(rng.permutation(unknown), cuts)]
        added = UnknownCounts.added(parts)
        assert rejection_limit(added, share) == limit
        assert added.above(limit) == whole.above(limit) == (unknown > limit[0]).sum()


@pytest.mark.parametrize("share", [None, (3.0, 7.0), (0.0, 1.0)])
def test_a_single_item_has_the_chance_that_the_sum_over_the_grid_gives(share):
    t = np.linspace(-3, 15, 40)[:, None]
    evidence = UnknownEvidence.of(t)
    told = None if share is None else ToldShare(*(np.full(40, one) for one in share), np.ones(40, bool))
    posterior = UnknownPosterior.of(model(5.0), evidence, told)
    by_grid = posterior.of_items(UnknownEvidence.of(t))
    np.testing.assert_allclose(posterior.of_items(evidence), by_grid, atol=2e-6)
    assert (by_grid.max() > 0.5) == (share != (0.0, 1.0))


def catalogue(shots=5, n_classes=20, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), shots)
    return rng.normal(size=(n_classes, 16))[codes] + noise * rng.normal(size=(len(codes), 16)), codes


def test_unknown_items_lie_farther():
    points, codes = catalogue()
    found = fit_unknown_model(fit_head(points, codes, 20), points, codes)
    assert sum(found.level) > 3
    assert found.distance[1] > 0
    assert found.pair_odds[1] > 0


def test_the_fewer_classes_are_allowed_the_farther_are_unknown_items():
    points, codes = catalogue(n_classes=40)
    head, rng = fit_head(points, codes, 40), np.random.default_rng(1)
    found = fit_unknown_model(head, points, codes)
    scores = points @ head.weights.T + head.offsets
    distances = ((points[:, None] - head.means) ** 2).sum(-1) - head.spread / head.mass
    for n in (1, 6):
        others = np.array([rng.choice(np.delete(np.arange(40), k), n, replace=False) for k in codes])
        rows = np.arange(len(codes))
        best = others[rows, np.take_along_axis(scores, others, 1).argmax(1)]
        t = found.statistic(distances[rows, best], scores[rows, best]).mean()
        assert t == pytest.approx(sum(found.level) + found.farther * (1 - np.log(n) / np.log(40)), rel=0.15)


def test_order_of_examples_does_not_matter():
    points, codes = catalogue()
    order = np.random.default_rng(1).permutation(len(codes))
    found = fit_unknown_model(fit_head(points, codes, 20), points, codes)
    again = fit_unknown_model(fit_head(points[order], codes[order], 20), points[order], codes[order])
    assert np.allclose(found.level, again.level, rtol=0.02)


def test_a_catalogue_that_cannot_tell_says_why():
    points, codes = catalogue(shots=1)
    head = fit_head(points, codes, 20)
    assert fit_unknown_model(head, points, codes) is None
    assert "at least 20 different examples" in unknown_reason(head)


def test_a_logistic_line_has_the_slope_of_its_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    truth = (rng.random(20_000) < 1 / (1 + np.exp(1 - 2 * x))).astype(float)
    a, b = logistic_line(x, truth, np.ones(20_000))
    assert abs(a + 1) < 0.1
    assert abs(b - 2) < 0.1


def test_a_logistic_line_of_counts_in_bins_is_the_minimum_of_all_points():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40_000)
    truth = (rng.random(40_000) < 1 / (1 + np.exp(4 - 9 * x))).astype(float)
    a, b = logistic_line(x, truth, np.ones(40_000))
    errors = 1 / (1 + np.exp(-a - b * x)) - truth
    assert abs(errors.sum() + 1e-3 * a) < 1e-6 * len(x)
    assert abs(errors @ x + 1e-3 * b) < 1e-6 * len(x)
