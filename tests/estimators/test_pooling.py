"""Pooling and prior weights through the classifier."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import OptionError, TaskError
from handful.estimators import BatchClassifier
from handful.estimators.pooling import siblings_of

N_CLASSES, DIM, SITES, VISITS, SIZE, NOISE = 40, 16, 6, 12, 4, 1.3


class World:
    """A fitted classifier, and visits to sites, each with three classes of its own."""

    def __init__(self):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(N_CLASSES, DIM))
        self.X, self.y = self.noisy(rng, centres.repeat(5, axis=0)), np.arange(N_CLASSES).repeat(5)
        self.classifier = BatchClassifier().fit(self.X, self.y)
        self.visit = np.arange(SITES * VISITS).repeat(SIZE)
        self.site = self.visit // VISITS
        self.classes = np.stack([rng.choice(N_CLASSES, 3, replace=False) for _ in range(SITES)])
        self.truth = self.classes[self.site, rng.integers(3, size=len(self.site))]
        self.batch = self.noisy(rng, centres[self.truth])
        lists = np.stack([rng.choice(N_CLASSES, 3, replace=False) for _ in range(SITES * VISITS)])
        self.fresh_truth = lists[self.visit, rng.integers(3, size=len(self.site))]
        self.fresh = self.noisy(rng, centres[self.fresh_truth])

    @staticmethod
    def noisy(rng, points):
        return (points + NOISE * rng.normal(size=points.shape)).astype(np.float32)

    def right(self, labels):
        return (labels == self.truth).mean()


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def alone(world):
    return world.classifier.infer(world.batch, groups=world.visit)


def test_siblings_help(world, alone):
    pooled = world.classifier.infer(world.batch, groups=world.visit, pool=world.site)
    carried = world.classifier.infer(world.batch, groups=world.visit, pool=world.site, order=world.visit)
    assert alone.pooling is None
    assert alone.prior_weight is None
    assert world.right(pooled.labels) > world.right(alone.labels) + 0.05
    assert world.right(carried.labels) > world.right(alone.labels) + 0.03
    assert pooled.pooling.pools.tolist() == list(range(SITES))
    assert pooled.pooling.used.all()
    assert (pooled.pooling.gain > 0.15).all()
    assert pooled.pooling.concentration > 0
    assert (pooled.pooling.forgetting, carried.pooling.forgetting is None) == (None, False)
    assert pooled[0].prior_weight == pytest.approx(pooled.prior_weight[0])
    np.testing.assert_array_equal(
        world.classifier.predict(world.batch, groups=world.visit, pool=world.site), pooled.labels
    )


def test_what_does_not_pay_is_off_and_changes_nothing(world):
    alone = world.classifier.infer(world.fresh, groups=world.visit)
    pooled = world.classifier.infer(world.fresh, groups=world.visit, pool=world.site)
    assert not pooled.pooling.used.any()
    assert (pooled.pooling.gain <= 0.05).all()
    assert pooled.pooling.concentration == 0
    np.testing.assert_array_equal(pooled.labels, alone.labels)
    np.testing.assert_allclose(pooled.probabilities, alone.probabilities, atol=1e-6)


def test_the_first_visit_has_nothing_to_lean_on(world, alone):
    carried = world.classifier.infer(world.batch, groups=world.visit, pool=world.site, order=world.visit)
    first = world.visit % VISITS == 0
    np.testing.assert_allclose(carried.probabilities[first], alone.probabilities[first], atol=1e-5)
    assert not np.allclose(carried.probabilities[~first], alone.probabilities[~first], atol=1e-3)


def test_groups_in_any_order(world):
    mixed = np.argsort(np.random.default_rng(1).permutation(SITES * VISITS)[world.visit], kind="stable")
    here = world.classifier.infer(world.batch, groups=world.visit, pool=world.site, order=world.visit)
    there = world.classifier.infer(
        world.batch[mixed], groups=world.visit[mixed], pool=world.site[mixed], order=world.visit[mixed]
    )
    np.testing.assert_allclose(here.probabilities[mixed], there.probabilities, atol=1e-5)


def test_true_means_that_all_groups_are_siblings(world):
    mine = world.site == 2
    batch, visit = world.batch[mine], world.visit[mine]
    found = world.classifier.infer(batch, groups=visit, pool=True)
    same = world.classifier.infer(batch, groups=visit, pool=np.zeros(mine.sum()))
    assert found.pooling.pools.tolist() == ["all"]
    np.testing.assert_array_equal(found.probabilities, same.probabilities)


def test_a_right_prior_helps_and_a_wrong_one_is_noticed(world, alone):
    own = {v: world.classes[v // VISITS].tolist() for v in range(SITES * VISITS)}
    light = dict.fromkeys(range(N_CLASSES), 0.01)
    right = world.classifier.infer(
        world.batch, groups=world.visit, prior={v: {**light, **dict.fromkeys(own[v], 1)} for v in own}
    )
    assert world.right(right.labels) > world.right(alone.labels) + 0.05
    assert np.median(right.prior_weight) > 0.9
    wrong = {k: 0.01 if k in own[0] else 1.0 for k in range(N_CLASSES)}
    mine = world.site == 0
    with warnings.catch_warnings(action="ignore"):
        contradicted = world.classifier.infer(world.batch[mine], prior=wrong)
        without = world.classifier.infer(world.batch[mine])
    assert contradicted.prior_weight == 0
    np.testing.assert_allclose(contradicted.probabilities, without.probabilities, atol=1e-6)
    assert without.prior_weight is None


def test_equal_weights_change_nothing(world, alone):
    found = world.classifier.infer(world.batch, groups=world.visit, prior=np.full(N_CLASSES, 3.0))
    np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-6)


def test_candidates_are_the_only_classes(world, alone):
    lists = {v: world.classes[v // VISITS].tolist() for v in range(SITES * VISITS)}
    found = world.classifier.infer(world.batch, groups=world.visit, candidates=lists)
    assert world.right(found.labels) > world.right(alone.labels)
    for place in (0, 30):
        others = np.setdiff1d(np.arange(N_CLASSES), lists[place])
        assert not found.probabilities[world.visit == place][:, others].any()
        assert not found.presence[place, others].any()
        assert not found.expected_counts[place, others].any()


def test_candidates_equal_a_catalogue_with_the_other_classes_left_out(world):
    """The head is the same, its other rows are gone; what a class takes from all the others stays the same, too."""
    kept = [3, 8, 11, 20, 21, 33, 39]
    catalogue = world.classifier.model_
    head = catalogue.head
    rows = {name: getattr(head, name)[kept] for name in ("weights", "offsets", "means", "mass")}
    smaller = catalogue.without(np.setdiff1d(np.arange(N_CLASSES), kept))
    model = catalogue.unknown_model
    # Unknown items are farther from the best of few classes.
    farther = model.farther * (1 - np.log(len(kept)) / np.log(N_CLASSES))
    smaller = smaller.with_fitted(
        replace(head, **rows), model._replace(level=(model.level[0] + farther, model.level[1]))
    )
    vars(smaller.reference).update(
        slopes=catalogue.reference.slopes[kept],
        centre=catalogue.reference.centre,
    )
    classifier = BatchClassifier().fit(world.X, world.y)._became(smaller)
    mine = np.isin(world.truth, kept)
    batch, visit = world.batch[mine], world.visit[mine]
    here = world.classifier.infer(batch, groups=visit, candidates=kept)
    there = classifier.infer(batch, groups=visit)
    np.testing.assert_array_equal(here.labels, there.labels)
    np.testing.assert_allclose(here.probabilities[:, kept], there.probabilities, atol=1e-4)
    np.testing.assert_allclose(here.presence[:, kept], there.presence, atol=1e-3)
    np.testing.assert_allclose(here.joint_weight, there.joint_weight, atol=1e-4)


def test_a_single_candidate(world):
    with warnings.catch_warnings(action="ignore"):
        found = world.classifier.infer(world.batch[:5], candidates=[7])
    assert found.labels.tolist() == [7] * 5
    np.testing.assert_allclose(found.probabilities[:, 7], 1)


def test_prior_and_pooling_together(world):
    lists = {v: [*world.classes[v // VISITS].tolist(), 1, 2, 3, 4] for v in range(SITES * VISITS)}
    found = world.classifier.infer(world.batch, groups=world.visit, candidates=lists, pool=world.site)
    listed = world.classifier.infer(world.batch, groups=world.visit, candidates=lists)
    assert world.right(found.labels) >= world.right(listed.labels) - 0.01
    others = np.setdiff1d(np.arange(N_CLASSES), lists[0])
    assert not found.probabilities[world.visit == 0][:, others].any()


def test_refusals(world):
    classifier, batch, visit, site = world.classifier, world.batch, world.visit, world.site
    with pytest.raises(OptionError, match="order says which groups come first, and needs pool"):
        classifier.infer(batch, groups=visit, order=visit)
    with pytest.raises(OptionError, match="pool and order need groups"):
        classifier.predict(batch, pool=site)
    with pytest.raises(TaskError, match="pool must have the same value in all rows of a group"):
        classifier.predict(batch, groups=site, pool=visit)
    with pytest.raises(TaskError, match="order must have one entry per row"):
        classifier.predict(batch, groups=visit, pool=site, order=visit[:3])


def test_steps_are_counted_within_a_pool():
    found = siblings_of([0, 0, 1, 1], [5, 9, 7, 9], 4, np.arange(4))
    assert found.step_of.tolist() == [0, 1, 0, 1]
    assert siblings_of(True, ["2026-01-09", "2026-01-10"], 2, np.arange(2)).step_of.tolist() == [0, 1]
    assert siblings_of(True, ["9", "10"], 2, np.arange(2)).step_of.tolist() == [0, 1]
    for order, sentence in (([1.0, np.nan], "no value in order"), ([(1, 2), (1, 3)], "one column of numbers or dates")):
        with pytest.raises(TaskError, match=sentence):
            siblings_of(True, order, 2, np.arange(2))
    assert siblings_of(None, None, 4, np.arange(4)) is None
    assert siblings_of(False, None, 4, np.arange(4)) is None
