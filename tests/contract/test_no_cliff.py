"""No cliff: what should not matter to the default's answer does not change it, whatever engine gives the answer."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from handful import BatchClassifier
from handful.datasets import load_clinc150
from handful.estimators import Answer
from tests.worlds import Clouds


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
    clouds = Clouds(n_classes + strange, dim, rng)
    numbers = np.full(n_classes, shots) if isinstance(shots, int) else rng.choice(shots, n_classes)
    y = np.arange(n_classes).repeat(numbers)
    present = np.concatenate([rng.permutation(n_classes)[: len(sizes) - strange], n_classes + np.arange(strange)])
    truth = present.repeat(sizes)
    X, batch = (clouds.around(of, noise) for of in (y, truth))
    return World(X, y, batch, np.where(truth < n_classes, truth, -1))


@cache
def worlds() -> dict[str, World]:
    """Catalogues and batches of several shapes, made up and real."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == 6 * k)) for k in range(25)]
    catalogue = np.concatenate([of_class[:5] for of_class in rows])

    def sentences(sizes: dict[int, int]) -> World:
        batch = np.concatenate([rows[k][5 : 5 + n] for k, n in sizes.items()])
        return World(bank.take(catalogue), bank.labels[catalogue] // 6, bank.take(batch), bank.labels[batch] // 6)

    made = {
        "five shots": made_up(0, 20, 16, 5, 0.4, [12, 9, 8]),
        "one shot": made_up(1, 20, 16, 1, 0.4, [12, 9, 8]),
        "unequal": made_up(2, 15, 16, range(1, 20), 0.5, [30, 10, 5, 1]),
        "easy": made_up(3, 30, 24, 5, 0.1, [20, 20]),
        "hard": made_up(4, 12, 8, 5, 0.9, [15, 15, 10]),
        "few items": made_up(5, 20, 16, 5, 0.5, [2, 1]),
        "many items": made_up(6, 10, 12, 5, 0.6, [80, 60, 40, 20]),
        "strangers": made_up(7, 20, 24, 5, 0.4, [12, 9, 8], strange=1),
        "two of many intents": sentences({3: 30, 15: 15}),
        "many intents": sentences(dict.fromkeys(range(0, 25, 2), 3)),
        "one intent": sentences({14: 20}),
    }
    return {
        name: world._replace(X=world.X.astype(float), batch=world.batch.astype(float)) for name, world in made.items()
    }


NAMES = sorted(worlds())
# Copies that one item may have.
COPIES = (1, 2, 10, 11, 50)
# Largest change of a probability, a presence or a chance of being unknown: by what should not matter at all, and by one
# more class that is far from everything. Of few or similar classes, one more moves temperature and pair odds (0.126).
NOTHING, LITTLE, SOME = 1e-3, 0.025, 0.15
MOVED_BY_ONE_MORE = {"unequal", "hard", "many items", "many intents"}
# Items whose label may change with the origin: rows have unit length about it (3% measured, probabilities by 0.56).
FEW = 0.05


def answer(world: World) -> Answer:
    """Fit the default and label the batch."""
    return BatchClassifier().fit(world.X, world.y).infer(world.batch)


@cache
def usual(name: str) -> Answer:
    """Return the answer that is compared with the others."""
    return answer(worlds()[name])


def assert_same(found: Answer, expected: Answer, most: float) -> None:
    """Compare everything that an answer says; NaN means that unknown items are not judged."""
    for ours, theirs in (
        (found.probabilities, expected.probabilities),
        (found.presence, expected.presence),
        (found.unknown, expected.unknown),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=most)


@pytest.mark.parametrize("name", NAMES)
def test_noise_of_a_millionth_changes_nothing(name):
    world, rng = worlds()[name], np.random.default_rng(0)
    small = 1e-6 * np.sqrt(np.square(world.X).mean())
    X, batch = (rows + small * rng.normal(size=rows.shape) for rows in (world.X, world.batch))
    assert_same(answer(world._replace(X=X, batch=batch)), usual(name), NOTHING)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_items_changes_nothing(name):
    world, expected = worlds()[name], usual(name)
    order = np.random.default_rng(0).permutation(len(world.batch))
    found = answer(world._replace(batch=world.batch[order]))
    back = np.argsort(order)
    found = replace(found, _table=found.probabilities[back], unknown=found.unknown[back])
    assert_same(found, expected, NOTHING)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_classes_and_examples_changes_nothing(name):
    world, expected, rng = worlds()[name], usual(name), np.random.default_rng(0)
    names, order = rng.permutation(len(expected.classes)), rng.permutation(len(world.y))
    found = answer(world._replace(X=world.X[order], y=names[world.y[order]]))
    found = replace(found, _table=found.probabilities[:, names], presence=found.presence[names])
    assert_same(found, expected, NOTHING)


@pytest.mark.parametrize("name", NAMES)
def test_the_scale_of_the_features_changes_nothing(name):
    world, factor = worlds()[name], 3.7e-5
    assert_same(answer(world._replace(X=factor * world.X, batch=factor * world.batch)), usual(name), NOTHING)


@pytest.mark.parametrize("name", NAMES)
def test_a_rotation_of_the_features_changes_nothing(name):
    world = worlds()[name]
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(world.X.shape[1],) * 2))[0]
    assert_same(answer(world._replace(X=world.X @ rotation, batch=world.batch @ rotation)), usual(name), NOTHING)


@pytest.mark.parametrize("name", NAMES)
def test_the_origin_of_the_features_changes_few_labels(name):
    world, rng = worlds()[name], np.random.default_rng(1)
    offset = np.sqrt(np.square(world.X).mean()) * rng.normal(size=world.X.shape[1])
    found = answer(world._replace(X=world.X + offset, batch=world.batch + offset))
    assert (found.labels != usual(name).labels).mean() <= FEW


@pytest.mark.parametrize("name", NAMES)
def test_one_more_class_far_from_everything_changes_little(name):
    world, rng = worlds()[name], np.random.default_rng(0)
    X, batch = (np.pad(rows, ((0, 0), (0, 1))) for rows in (world.X, world.batch))
    shots = np.bincount(world.y)
    away = np.zeros((int(np.median(shots)), X.shape[1]))
    away[:, -1] = np.linalg.norm(X, axis=1).mean()
    means = np.stack([X[world.y == k].mean(0) for k in range(len(shots))])
    away += (X - means[world.y]).std() * rng.normal(size=away.shape)
    more = World(np.concatenate([X, away]), np.append(world.y, [len(shots)] * len(away)), batch, world.truth)
    found, most = answer(more), SOME if name in MOVED_BY_ONE_MORE else LITTLE
    assert found.presence[-1] < most
    assert found.probabilities[:, -1].max() < LITTLE
    found = replace(found, _table=found.probabilities[:, :-1], presence=found.presence[:-1])
    assert_same(found, usual(name), most)


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_a_known_item_stay_known(name):
    world = worlds()[name]
    classifier = BatchClassifier().fit(world.X, world.y)
    items = known_items(classifier, world)
    rows = np.concatenate([np.repeat(item, n) for item in items for n in COPIES])
    together = classifier.infer(
        world.batch[rows], groups=np.repeat(np.arange(len(items) * len(COPIES)), COPIES * len(items))
    )
    found = [(items[group // len(COPIES)], together[group]) for group in together.groups]
    found += [(items[0], classifier.infer(np.tile(world.batch[items[0]], (n, 1)))) for n in (11, 50)]
    for item, answer in found:
        assert not answer.rejected.any()
        assert not answer.unknown.mean() > 0.5
        assert answer.present_classes.tolist() == [world.truth[item]]


def known_items(classifier: BatchClassifier, world: World) -> list[int]:
    """Return up to four items that are known for certain when they are alone."""
    alone = classifier.infer(world.batch, groups=np.arange(len(world.batch)))
    unlikely = np.nan_to_num(alone.unknown) < 0.2
    sure = np.flatnonzero(unlikely & (alone.labels == world.truth) & (alone.presence.max(1) > 0.8))
    return sure[:: max(1, len(sure) // 4)][:4].tolist()
