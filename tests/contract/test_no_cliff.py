"""No cliff: what should not matter to the default's answer does not change it, whatever engine gives the answer."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from handful import PaddleClassifier
from handful.datasets import load_clinc150


class World(NamedTuple):
    """A catalogue, and a batch with its true classes; -1 means none of them."""

    X: np.ndarray
    y: np.ndarray
    batch: np.ndarray
    truth: np.ndarray


def made_up(
    seed: int, n_classes: int, dim: int, shots: int | range, noise: float, sizes: list[int], *, strange: int = 0
):
    """Gaussian classes about random places; the last `strange` of those in the batch are not in the catalogue."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes + strange, dim))
    numbers = np.full(n_classes, shots) if isinstance(shots, int) else rng.choice(shots, n_classes)
    y = np.arange(n_classes).repeat(numbers)
    present = np.concatenate([rng.permutation(n_classes)[: len(sizes) - strange], n_classes + np.arange(strange)])
    truth = present.repeat(sizes)
    X, batch = (centres[of] + noise * rng.normal(size=(len(of), dim)) for of in (y, truth))
    return World(X, y, batch, np.where(truth < n_classes, truth, -1))


@cache
def worlds() -> dict[str, World]:
    """Catalogues and batches of several shapes, made up and real."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    catalogue = np.concatenate([of_class[:5] for of_class in rows])

    def sentences(sizes: dict[int, int]) -> World:
        batch = np.concatenate([rows[k][5 : 5 + n] for k, n in sizes.items()])
        return World(bank.take(catalogue), bank.labels[catalogue], bank.take(batch), bank.labels[batch])

    return {
        "five shots": made_up(0, 20, 16, 5, 0.4, [12, 9, 8]),
        "one shot": made_up(1, 20, 16, 1, 0.4, [12, 9, 8]),
        "unequal": made_up(2, 15, 16, range(1, 20), 0.5, [30, 10, 5, 1]),
        "easy": made_up(3, 30, 24, 5, 0.1, [20, 20]),
        "hard": made_up(4, 12, 8, 5, 0.9, [15, 15, 10]),
        "few items": made_up(5, 20, 16, 5, 0.5, [2, 1]),
        "many items": made_up(6, 10, 12, 5, 0.6, [80, 60, 40, 20]),
        "strangers": made_up(7, 20, 24, 5, 0.4, [12, 9, 8], strange=1),
        "two of many intents": sentences({3: 30, 30: 15}),
        "many intents": sentences(dict.fromkeys(range(0, 150, 6), 3)),
        "one intent": sentences({77: 20}),
    }


NAMES = sorted(worlds())
# Copies that one item may have.
COPIES = (1, 2, 5, 10, 11, 12, 14, 20, 50)


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_a_known_item_stay_known(name):
    world = worlds()[name]
    classifier = PaddleClassifier().fit(world.X, world.y)
    items = known_items(classifier, world)
    rows = np.concatenate([np.repeat(item, n) for item in items for n in COPIES])
    together = classifier.infer(
        world.batch[rows], groups=np.repeat(np.arange(len(items) * len(COPIES)), COPIES * len(items))
    )
    found = [(items[group // len(COPIES)], together[group]) for group in together.groups]
    found += [(items[0], classifier.infer(np.tile(world.batch[items[0]], (n, 1)))) for n in (11, 50)]
    for item, answer in found:
        assert not answer.rejected.any()
        assert not answer.unknown_share > 0.5
        assert answer.present_classes.tolist() == [world.truth[item]]


def known_items(classifier: PaddleClassifier, world: World) -> list[int]:
    """Return up to four items that are known for certain when they are alone."""
    alone = classifier.infer(world.batch, groups=np.arange(len(world.batch)))
    unlikely = np.nan_to_num(alone.unknown) < 0.2
    sure = np.flatnonzero(unlikely & (alone.labels == world.truth) & (alone.presence.max(1) > 0.8))
    return sure[:: max(1, len(sure) // 4)][:4].tolist()
