"""Small catalogues for heads in NumPy."""

import numpy as np

from handful.model.names import NameVectors
from tests.worlds import Clouds


def drawn(n_classes=20, shots=5, dim=24, noise=0.8, seed=0, dtype=np.float32):
    """Unit vectors of n_classes classes: examples, their codes, and 20 items of each class."""
    clouds = Clouds(n_classes, dim, seed)

    def around(codes):
        rows = clouds.around(codes, noise)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)

    codes = np.arange(n_classes).repeat(np.broadcast_to(shots, n_classes))
    truth = np.arange(n_classes).repeat(20)
    return around(codes), codes, around(truth), truth


def accuracy(head, points, truth):
    return float((head.scores(points).argmax(1) == truth).mean())


def means_of(points, codes):
    shots = np.bincount(codes).astype(points.dtype)
    return np.stack([points[codes == k].mean(0) for k in range(len(shots))]), shots


def with_names(shots=2, of_names=0.8):
    """Examples, items, and names: the centres of the items, with noise, elsewhere and twice as large."""
    points, codes, items, truth = drawn(40, shots, 24, 1.6)
    centres = means_of(items, truth)[0]
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    noise = np.random.default_rng(1).normal(size=centres.shape).astype(np.float32)
    return points, codes, items, truth, NameVectors(2 * (centres + of_names * noise / 24**0.5) + 1, np.arange(40))


def doubtful(points, codes):
    wrong = np.arange(0, len(codes), 9)
    given = codes.copy()
    given[wrong] = (given[wrong] + 7) % (codes.max() + 1)
    return points, given, wrong
