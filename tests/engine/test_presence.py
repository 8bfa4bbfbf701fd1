"""Presence and labels: the exact posterior of small problems, and what must not change an answer."""

import itertools
import math

import numpy as np

from handful.engine.presence import (
    AloneLabels,
    joint_labels,
    sample_presence,
)
from handful.engine.settings import DEFAULT
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


def present(scores, shots):
    """Labels if there are few classes, chances of all classes, and the chance that each item is better alone."""
    alone, n_classes = labels_alone(scores), np.array([np.isfinite(scores).any(0).sum()])
    samples = sample_presence(alone, shots, n_classes)
    chances = np.zeros(scores.shape[1])
    chances[samples.columns[0]] = samples.presence[0]
    joint = joint_labels(alone, samples, n_classes)
    return alone.with_columns(joint.of_others, samples.columns, joint.of_columns)[0], chances, samples.alone_weight[0]


def exact(scores, shots, typical):
    """Sum over all sets of classes, all with the design effect of as many classes as typically occur."""
    n_items, n_classes = scores.shape
    e = np.exp(scores - scores.max(1, keepdims=True))
    mixed = (1 - DEFAULT.strays) * e + DEFAULT.strays * e.mean(1, keepdims=True)
    shared = DEFAULT.shared_error / shots / (1 + DEFAULT.shared_error / shots)
    total, held, labels = 0.0, np.zeros(n_classes), np.zeros_like(e)
    logs = {}
    for size in range(1, n_classes + 1):
        for chosen in itertools.combinations(range(n_classes), size):
            here = list(chosen)
            temper = 1 / (1 + (n_items / typical - 1) * shared.mean())
            logs[chosen] = (
                -np.log(size) - np.log(math.comb(n_classes, size)) + temper * np.log(mixed[:, here].sum(1) / size).sum()
            )
    top = max(logs.values())
    for chosen, log in logs.items():
        weight, here = np.exp(log - top), list(chosen)
        total += weight
        inside = np.zeros(n_classes)
        inside[here] = (1 - DEFAULT.strays) / len(here)
        q = e * (inside + DEFAULT.strays / n_classes)
        labels += weight * q / q.sum(1, keepdims=True)
        held[here] += weight
    return labels / total, held / total


def test_near_a_sum_over_all_sets_with_one_temper():
    of_presence, of_labels = [], []
    for seed in range(12):
        means, scores, _ = problem(seed)
        shots = np.full(len(means), 5.0)
        given, chances, _ = present(scores, shots)
        labels, held = exact(scores, shots, typical=2)
        # Presence says that a class has an item, which is a little less than that it belongs to the set.
        of_presence.append(chances - held)
        of_labels.append(np.abs(given - labels).mean())
    assert abs(np.mean(of_presence)) < 0.03
    assert np.sqrt(np.mean(np.square(of_presence))) < 0.08
    assert np.mean(of_labels) < 0.02


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
    assert np.abs(again[:, :40] - labels).max() < 0.02
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
