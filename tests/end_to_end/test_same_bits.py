"""The same answer twice: bits where nothing changes, rounding where sums have another order."""

import numpy as np
import pytest
import torch

from handful.datasets import load_clinc150
from handful.estimators import BatchClassifier


@pytest.fixture(scope="module")
def world():
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(60)]
    support = np.concatenate([of_class[:5] for of_class in rows])
    batch = np.concatenate([rows[k][5:30] for k in rng.choice(60, 12, replace=False)])
    groups = rng.integers(0, 6, len(batch))
    return bank.take(support).astype(np.float32), bank.labels[support], bank.take(batch).astype(np.float32), groups


def answers(world, threads):
    X, y, batch, groups = world
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        classifier = BatchClassifier().fit(X, y)
        return classifier.infer(batch), classifier.infer(batch, groups=groups), classifier
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def one(world):
    return answers(world, 1)


def test_again_the_same_bits(world, one):
    other = answers(world, 1)
    assert one[2].model_.content_hash == other[2].model_.content_hash
    for first, second in zip(one[:2], other[:2], strict=True):
        assert first.probabilities.tobytes() == second.probabilities.tobytes()
        assert np.asarray(first.unknown).tobytes() == np.asarray(second.unknown).tobytes()


def test_with_other_threads_the_same_up_to_rounding(world, one):
    for first, second in zip(one[:2], answers(world, 2)[:2], strict=True):
        np.testing.assert_allclose(first.probabilities, second.probabilities, atol=1e-4)
        np.testing.assert_array_equal(first.labels, second.labels)


def test_in_another_order_the_same_up_to_rounding(world, one):
    _, _, batch, groups = world
    _, together, classifier = one
    order = np.random.default_rng(1).permutation(len(batch))
    shuffled = classifier.infer(batch[order], groups=groups[order])
    np.testing.assert_allclose(together.probabilities[order], shuffled.probabilities, atol=1e-4)
