"""The whole model on made-up batches: what is known in advance, another place, another order, another scale."""

import numpy as np

from engine.model import Classes, label


def made_up(seed, n_classes=40, chosen=(3, 9, 14), n_items=45, dim=16, shots=1, noise=0.8):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, dim))
    examples = centres[:, None] + noise * rng.normal(size=(n_classes, shots, dim))
    means = examples.mean(1)
    truth = np.repeat(chosen, n_items // len(chosen))
    points = centres[truth] + noise * rng.normal(size=(len(truth), dim))
    precision = 1 / (noise**2 * (1 + 1 / shots))
    classes = Classes(
        precision * means, -precision * (means**2).sum(1) / 2, means, np.full(n_classes, float(shots)), noise**2 * dim
    )
    return points, classes, truth


def test_one_example_gains_most():
    joint, alone = [], []
    for seed in range(8):
        points, classes, truth = made_up(seed)
        joint.append((label(points, classes).probabilities.argmax(1) == truth).mean())
        alone.append((classes.scores(points).argmax(1) == truth).mean())
    assert np.mean(joint) > np.mean(alone) + 0.1


def test_rows_are_probabilities_and_an_excluded_class_has_none():
    points, classes, truth = made_up(0, shots=5)
    weights = np.zeros(40)
    weights[truth[0]] = -np.inf
    found = label(points, classes, weights)
    assert np.allclose(found.probabilities.sum(1), 1)
    assert not found.probabilities[:, truth[0]].any()
    assert found.presence.min() >= 0
    assert found.presence.max() <= 1


def test_order_and_scale_do_not_matter():
    points, classes, _ = made_up(1, shots=5)
    found = label(points, classes)
    order = np.random.default_rng(0).permutation(len(points))
    scaled = Classes(classes.weights / 7, classes.offsets, 7 * classes.means, classes.shots, 49 * classes.spread)
    again = label(7 * points[order], scaled)
    assert np.allclose(again.probabilities, found.probabilities[order], atol=1e-6)
    assert np.allclose(again.presence, found.presence, atol=1e-6)


def test_a_batch_from_another_place_is_labelled_as_at_home():
    points, classes, truth = made_up(2, shots=5)
    offset = 0.8 * np.ones(16)
    there = label(points + offset, classes).probabilities.argmax(1) == truth
    unmoved = classes.scores(points + offset).argmax(1) == truth
    assert there.mean() > unmoved.mean() + 0.1


def test_one_item():
    points, classes, _ = made_up(3, shots=5)
    found = label(points[:1], classes)
    assert np.isfinite(found.probabilities).all()
    assert found.probabilities.argmax() == classes.scores(points[:1]).argmax()
