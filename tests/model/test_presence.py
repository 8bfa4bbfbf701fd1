"""Presence and labels: the exact posterior of small problems, and what must not change an answer."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from handful.model.presence import AloneLabels, SetsOfClasses, find_sets, joint_labels
from handful.model.settings import DEFAULT
from tests.worlds import Clouds


def problem(seed, n_classes=8, present_classes=2, n_items=12, dim=6, noise=1.0):
    clouds = Clouds(n_classes, dim, seed)
    rng = clouds.rng
    means = clouds.centres
    truth = rng.choice(n_classes, present_classes, replace=False)[rng.integers(0, present_classes, n_items)]
    points = clouds.around(truth, noise)
    scores = (points @ means.T - (means**2).sum(1) / 2) / noise**2
    return means, scores, truth


def labels_alone(scores):
    return AloneLabels.of(np.exp(scores - scores.max(1, keepdims=True))[None])


def present(scores, shots, settings=DEFAULT):
    """Labels if there are few classes, chances of all classes, and the chance that each item is better alone."""
    alone, n_classes = labels_alone(scores), np.array([np.isfinite(scores).any(0).sum()])
    samples = find_sets(alone, shots, n_classes, settings)
    chances = np.zeros(scores.shape[1])
    chances[samples.columns[0]] = samples.presence[0]
    joint = joint_labels(alone, samples, n_classes, settings)
    return alone.with_columns(joint.others, samples.columns, joint.columns)[0], chances, samples.alone_weight[0]


def one_temper(e, shots):
    """τ of a batch, from the shares that keep half an item."""
    shares = e.mean(0)
    for _ in range(DEFAULT.share_steps):
        r = e * shares
        counts = np.maximum((r / r.sum(1, keepdims=True)).sum(0) - 0.5, 0)
        shares = counts / counts.sum() if counts.any() else e.mean(0)
    typical = math.exp(-sum(share * math.log(share) for share in shares if share))
    shared = (shares * 0.4 / (shots + 0.4)).sum()
    return 1 / (1 + max(len(e) / typical - 1, 0) * shared)


def over_all_sets(scores, shots):
    """The sum over all 2^K sets, written from the page: ln of their weights, labels, chances of classes."""
    n_classes = scores.shape[1]
    e = np.exp(scores - scores.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    temper = one_temper(e, shots)
    sets = [set(some) for h in range(1, n_classes + 1) for some in itertools.combinations(range(n_classes), h)]
    logs = []
    labels = []
    for z in sets:
        h = len(z)
        weight = np.array([0.98 * (k in z) / h + 0.02 / n_classes for k in range(n_classes)])
        q = e * weight
        likelihood = q.sum(1)
        logs.append(-math.log(h) - math.log(math.comb(n_classes, h)) + temper * np.log(likelihood).sum())
        labels.append(q / likelihood[:, None])
    logs = np.array(logs)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    inside = np.array([[k in z for k in range(n_classes)] for z in sets])
    return inside, logs, np.einsum("z,znk->nk", p, labels), p @ inside


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_sets_are_those_of_the_page(seed):
    _, scores, _ = problem(seed, n_classes=7)
    shots = np.arange(1, 8.0)
    inside, logs, _, _ = over_all_sets(scores, shots)
    alone = labels_alone(scores)
    rows = alone.of_columns(np.arange(7)[None]).swapaxes(1, 2)
    temper = np.array([one_temper(rows[0].T, shots)])
    found = SetsOfClasses(rows, temper, np.array([7]), DEFAULT).log_weights(inside[None])[0]
    assert np.allclose(found - found[0], logs - logs[0], atol=1e-5)


def test_with_enough_visits_it_is_the_sum_over_all_sets():
    many = replace(DEFAULT, chains=256, sweeps=60, warm_up=10, candidate_count=0.0)
    for seed in range(4):
        means, scores, _ = problem(seed)
        shots = np.full(len(means), 5.0)
        labels, chances, _ = present(scores, shots, many)
        _, _, exact, held = over_all_sets(scores, shots)
        assert np.abs(labels - exact).max() < 3e-3
        assert np.abs(chances - held).max() < 3e-3


def test_with_the_visits_of_the_page_it_is_near_the_sum_over_all_sets():
    of_labels, of_presence = [], []
    for seed in range(24):
        means, scores, _ = problem(seed, n_classes=10, present_classes=3, n_items=15)
        shots = np.full(len(means), 5.0)
        labels, chances, _ = present(scores, shots)
        _, _, exact, held = over_all_sets(scores, shots)
        of_labels.append(np.abs(labels - exact).mean())
        of_presence.append(np.abs(chances - held).mean())
    assert np.mean(of_labels) < 0.006
    assert np.mean(of_presence) < 0.05


@pytest.mark.parametrize(("shots", "most"), [(1, 0.02), (5, 0.005)])
def test_two_seeds_differ_in_few_labels(shots, most):
    different = []
    for seed in range(12):
        _, scores, _ = problem(seed, n_classes=60, present_classes=5, n_items=75, dim=10, noise=1.0)
        given = [present(scores, np.full(60, float(shots)), replace(DEFAULT, seed=s))[0].argmax(1) for s in range(2)]
        different.append((given[0] != given[1]).mean())
    assert np.mean(different) <= most


def test_order_of_classes_and_items_does_not_matter():
    _, scores, _ = problem(0, n_classes=40, present_classes=4, n_items=30)
    shots, rng = np.full(40, 3.0), np.random.default_rng(5)
    labels, chances, _ = present(scores, shots)
    classes, items = rng.permutation(40), rng.permutation(30)
    again, chances_again, _ = present(scores[items][:, classes], shots)
    assert np.allclose(again, labels[items][:, classes], atol=1e-4)
    assert np.allclose(chances_again, chances[classes], atol=1e-4)


def test_a_little_noise_changes_little():
    for seed in range(10):
        _, scores, _ = problem(seed, n_classes=40, present_classes=4, n_items=30)
        rng, shots = np.random.default_rng(seed), np.full(40, 3.0)
        labels, chances, _ = present(scores, shots)
        again, chances_again, _ = present(
            scores + 1e-5 * rng.normal(size=scores.shape),
            shots,
        )
        assert np.abs(again - labels).max() < 1e-3
        assert np.abs(chances_again - chances).max() < 1e-3


def test_a_class_far_from_everything_changes_little():
    _, scores, _ = problem(3, n_classes=40, present_classes=4, n_items=60, noise=0.7)
    shots = np.full(40, 3.0)
    labels, _, _ = present(scores, shots)
    more = np.column_stack([scores, np.full(60, -200.0)])
    again, chances, _ = present(more, np.full(41, 3.0))
    assert np.abs(again[:, :40] - labels).max() < 0.03  # K is one more
    assert chances[40] < 1e-6


def test_copies_of_one_item_are_one_class():
    _, scores, _ = problem(1, n_classes=20, noise=0.5)
    for n in (1, 2, 10, 11, 50):
        labels, chances, _ = present(np.repeat(scores[:1], n, 0), np.full(20, 5.0))
        assert chances[scores[0].argmax()] > 0.5
        assert (labels.argmax(1) == scores[0].argmax()).all()


def test_a_class_that_is_ruled_out_gets_nothing():
    _, scores, truth = problem(2)
    scores[:, truth[0]] = -np.inf
    labels, chances, _ = present(scores, np.full(8, 5.0))
    assert np.isfinite(labels).all()
    assert not labels[:, truth[0]].any()
    assert chances[truth[0]] == 0


def test_joint_labels_are_better_where_few_classes_occur():
    right = []
    for seed in range(10):
        _, scores, truth = problem(seed, n_classes=60, present_classes=3, n_items=45, dim=8, noise=1.2)
        labels, _, _ = present(scores, np.full(60, 5.0))
        right.append([(labels.argmax(1) == truth).mean(), (scores.argmax(1) == truth).mean()])
    joint, alone = np.mean(right, 0)
    assert joint > alone + 0.1


def test_items_are_labelled_alone_in_a_very_uneven_batch_and_where_any_class_may_occur():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(300, 12))
    sizes = {"uneven": [60, 20, 8, 4, 2, 1, 1, 1, 1, 1, 1], "even": [20] * 5, "any": [1] * 60}
    alone = {}
    for kind, counts in sizes.items():
        truth = np.repeat(np.arange(len(counts)), counts)
        points = means[truth] + 0.5 * rng.normal(size=(len(truth), 12))
        scores = (points @ means.T - (means**2).sum(1) / 2) / 0.25
        alone[kind] = present(scores, np.full(300, 5.0))[2]
    assert alone["even"] < 0.1
    assert alone["uneven"] > 0.4
    assert alone["any"] > 0.9
