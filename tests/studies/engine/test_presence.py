"""Presence and labels: the exact posterior of small problems, and what must not change an answer."""

import itertools
import math

import numpy as np

from engine.presence import SHARED_ERROR, STRAYS, class_noise, present


def problem(seed, n_classes=8, present_classes=2, n_items=12, dim=6, noise=1.0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, dim))
    truth = rng.choice(n_classes, present_classes, replace=False)[rng.integers(0, present_classes, n_items)]
    points = means[truth] + noise * rng.normal(size=(n_items, dim))
    scores = (points @ means.T - (means**2).sum(1) / 2) / noise**2
    return means, scores, truth


def exact(scores, shots, typical):
    """Sum over all sets of classes; the design effect is that of as many classes as typically occur."""
    n_items, n_classes = scores.shape
    e = np.exp(scores - scores.max(1, keepdims=True))
    near = (1 - STRAYS) * e + STRAYS * e.mean(1, keepdims=True)
    shared = SHARED_ERROR / shots / (1 + SHARED_ERROR / shots)
    total, held, labels = 0.0, np.zeros(n_classes), np.zeros_like(e)
    logs = {}
    for size in range(1, n_classes + 1):
        for chosen in itertools.combinations(range(n_classes), size):
            here = list(chosen)
            temper = 1 / (1 + (n_items / typical - 1) * shared.mean())
            logs[chosen] = (
                -np.log(size) - np.log(math.comb(n_classes, size)) + temper * np.log(near[:, here].sum(1) / size).sum()
            )
    top = max(logs.values())
    for chosen, log in logs.items():
        weight, here = np.exp(log - top), list(chosen)
        total += weight
        inside = np.zeros(n_classes)
        inside[here] = (1 - STRAYS) / len(here)
        q = e * (inside + STRAYS / n_classes)
        labels += weight * q / q.sum(1, keepdims=True)
        held[here] += weight
    return labels / total, held / total


def test_near_the_exact_posterior():
    of_presence, of_labels = [], []
    for seed in range(12):
        means, scores, _ = problem(seed)
        shots = np.full(len(means), 5.0)
        found, (labels, held) = present(scores, shots, class_noise(means)), exact(scores, shots, typical=2)
        # Presence says that a class has an item, which is a little less than that it belongs to the set.
        of_presence.append(found.presence - held)
        of_labels.append(np.abs(found.given - labels).mean())
    assert abs(np.mean(of_presence)) < 0.02
    assert np.sqrt(np.mean(np.square(of_presence))) < 0.08
    assert np.mean(of_labels) < 0.02


def test_order_of_classes_and_items_does_not_matter():
    means, scores, _ = problem(0, n_classes=40, present_classes=4, n_items=30)
    shots, rng = np.full(40, 3.0), np.random.default_rng(5)
    found = present(scores, shots, class_noise(means))
    classes, items = rng.permutation(40), rng.permutation(30)
    again = present(scores[items][:, classes], shots, class_noise(means[classes]))
    assert np.allclose(again.probabilities, found.probabilities[items][:, classes], atol=1e-6)
    assert np.allclose(again.presence, found.presence[classes], atol=1e-6)


def test_a_little_noise_changes_little():
    for seed in range(10):
        means, scores, _ = problem(seed, n_classes=40, present_classes=4, n_items=30)
        rng, shots = np.random.default_rng(seed), np.full(40, 3.0)
        found = present(scores, shots, class_noise(means))
        again = present(
            scores + 1e-5 * rng.normal(size=scores.shape),
            shots,
            class_noise(means + 1e-6 * rng.normal(size=means.shape)),
        )
        assert np.abs(again.probabilities - found.probabilities).max() < 1e-3
        assert np.abs(again.presence - found.presence).max() < 1e-3


def test_a_class_far_from_everything_changes_little():
    means, scores, _ = problem(3, n_classes=40, present_classes=4, n_items=60, noise=0.7)
    shots, noise = np.full(40, 3.0), class_noise(means)
    found = present(scores, shots, noise)
    more = np.column_stack([scores, np.full(60, -200.0)])
    again = present(more, np.full(41, 3.0), np.vstack([noise, noise[:1]]))
    assert np.abs(again.probabilities[:, :40] - found.probabilities).max() < 0.02
    assert again.presence[40] < 1e-6


def test_copies_of_one_item_are_one_class():
    means, scores, _ = problem(1, n_classes=20, noise=0.5)
    for n in (1, 2, 10, 11, 50):
        found = present(np.repeat(scores[:1], n, 0), np.full(20, 5.0), class_noise(means))
        assert found.presence[scores[0].argmax()] > 0.5
        assert (found.probabilities.argmax(1) == scores[0].argmax()).all()


def test_a_class_that_is_ruled_out_gets_nothing():
    means, scores, truth = problem(2)
    scores[:, truth[0]] = -np.inf
    found = present(scores, np.full(8, 5.0), class_noise(means))
    assert np.isfinite(found.probabilities).all()
    assert not found.probabilities[:, truth[0]].any()
    assert found.presence[truth[0]] == 0


def test_joint_labels_are_better_where_few_classes_occur():
    right = []
    for seed in range(10):
        means, scores, truth = problem(seed, n_classes=60, present_classes=3, n_items=45, dim=8, noise=1.2)
        found = present(scores, np.full(60, 5.0), class_noise(means))
        right.append([(found.probabilities.argmax(1) == truth).mean(), (scores.argmax(1) == truth).mean()])
    joint, alone = np.mean(right, 0)
    assert joint > alone + 0.1


def test_a_very_uneven_batch_is_natural_and_an_even_one_is_not():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(30, 12))
    sizes = {"uneven": [60, 20, 8, 4, 2, 1, 1, 1, 1, 1, 1], "even": [20] * 5}
    natural = {}
    for kind, counts in sizes.items():
        truth = np.repeat(np.arange(len(counts)), counts)
        points = means[truth] + 0.5 * rng.normal(size=(len(truth), 12))
        scores = (points @ means.T - (means**2).sum(1) / 2) / 0.25
        natural[kind] = present(scores, np.full(30, 5.0), class_noise(means)).natural
    assert natural["even"] < 0.02
    assert natural["uneven"] > 10 * natural["even"]
