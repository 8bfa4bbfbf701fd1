"""Every valid batch gets an answer, and every number of the answer is finite.

`HANDFUL_BATCHES=50000 python -m pytest tests/contract/test_finite.py` draws as many batches in place of some 1,000.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from handful import BatchClassifier, Session, infer_scores
from handful.scale import label_table
from tests.doors import DOORS, Room
from tests.scale_at_hand import lists, pa
from tests.worlds import Clouds

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")

N_BATCHES = int(os.environ.get("HANDFUL_BATCHES", "1000"))
AT_A_TIME = 40  # batches that are also labelled as the groups of one table


class Kind(NamedTuple):
    """What a catalogue is like."""

    n_classes: int
    dim: int
    shots: int | range
    noise: float


CATALOGUES = [
    Kind(1000, 128, 5, 1.0),
    Kind(1000, 32, 1, 0.5),
    Kind(300, 64, range(1, 9), 1.0),
    Kind(200, 16, 5, 0.3),
    Kind(100, 8, 3, 1.0),
    Kind(60, 128, 1, 2.0),
    Kind(40, 2, 5, 0.1),
    Kind(20, 16, 8, 0.0),
    Kind(8, 12, range(1, 60), 0.4),
    Kind(3, 4, 2, 0.5),
    Kind(2, 3, 1, 1.0),
    Kind(1, 5, 4, 1.0),
]


class World(NamedTuple):
    """A fitted catalogue, and where its items come from."""

    classifier: BatchClassifier
    clouds: Clouds
    noise: float
    constant: np.ndarray  # columns with one number in all rows

    def items(self, classes: np.ndarray) -> np.ndarray:
        """Draw one item of each of these classes."""
        items = self.clouds.around(classes, self.noise)
        items[:, self.constant] = 3.0
        return items


@cache
def world_of(number: int) -> World:
    kind = CATALOGUES[number]
    clouds = Clouds(kind.n_classes, kind.dim, number)
    if kind.n_classes >= 8:
        clouds.centres[1] = clouds.centres[0]  # two classes that nothing tells apart
    constant = np.arange(kind.dim) % 4 == 3 if number % 2 else np.zeros(kind.dim, bool)
    shots = kind.shots if isinstance(kind.shots, int) else clouds.rng.choice(kind.shots, kind.n_classes)
    world = World(BatchClassifier(), clouds, kind.noise, constant)
    codes = np.arange(kind.n_classes).repeat(shots)
    world.classifier.fit(world.items(codes), codes)
    return world


def batch_of(world: World, rng: np.random.Generator) -> np.ndarray:
    """Draw a valid batch of one of many kinds."""
    n_classes = len(world.clouds.centres)
    n_items = int(rng.integers(1, 120))
    kind = rng.integers(10)
    if kind < 3:  # one item of each of many classes
        return world.items(rng.permutation(n_classes)[:n_items])
    few = rng.integers(n_classes, size=rng.integers(1, 9))
    items = world.items(rng.choice(few, n_items))
    if kind == 3:  # one item, or two
        return items[:2]
    if kind == 4:  # copies of one item, or of some
        return items[rng.choice(rng.integers(n_items, size=rng.integers(1, n_items + 1)), n_items)]
    if kind == 5:  # one class
        return world.items(few[:1].repeat(n_items))
    if kind == 6:  # columns that are constant in this batch alone
        items[:, rng.random(items.shape[1]) < 0.5] = rng.normal()
        return items
    if kind == 7:  # of no class, from elsewhere, and at another scale
        return np.concatenate([rng.normal(size=items.shape), items + 5 * rng.normal(size=items.shape[1]), 1e4 * items])
    if kind == 8:  # few classes, and one item of each of many others
        return np.concatenate([items, world.items(rng.permutation(n_classes)[:n_items])])
    return items


def batches(number: int) -> Iterator[list[np.ndarray]]:
    """Draw the batches of a catalogue, some at a time."""
    rng = np.random.default_rng(number)
    for _ in range(max(1, N_BATCHES // len(CATALOGUES) // AT_A_TIME)):
        yield [batch_of(world_of(number), rng) for _ in range(AT_A_TIME)]


def assert_finite(found, judged: bool) -> None:
    """Check all numbers of an answer; `unknown` is NaN for all items if the catalogue cannot tell."""
    for name in ("certainty", "presence", "expected_counts", "joint_weight", "unknown_interval"):
        assert np.isfinite(np.asarray(getattr(found, name), np.float64)).all(), name
    assert np.isfinite(found.unknown).all() if judged else np.isnan(found.unknown).all()


@pytest.mark.parametrize("number", range(len(CATALOGUES)))
def test_every_number_is_finite(number):
    world = world_of(number)
    judged = world.classifier.model_.unknown_model is not None
    for some in batches(number):
        of_group = np.arange(len(some)).repeat([len(items) for items in some])
        together = np.concatenate(some)
        assert_finite(world.classifier.infer(together, of_group), judged)
        for items in some:
            found = world.classifier.infer(items)
            assert_finite(found, judged)
            assert np.allclose(found.probabilities.sum(1), 1, atol=1e-4)
            assert_finite(infer_scores(items @ world.clouds.centres.T, kind="similarities"), False)


@pytest.mark.parametrize("number", range(len(CATALOGUES)))
def test_every_door_gives_finite_numbers(number, tmp_path):
    world = world_of(number)
    judged = world.classifier.model_.unknown_model is not None
    some = next(batches(number))
    for at, door in enumerate(DOORS.values()):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert_finite(door(Room.of(world.classifier, some[at], folder), {}), judged)
    names = BatchClassifier().add_names(dict(enumerate(world.clouds.centres)))
    session = Session(some[0])
    session.answer(0, "fox", new=True)
    assert_finite(names.infer(some[0]), False)
    assert_finite(session.result, True)


@pytest.mark.parametrize("number", range(len(CATALOGUES)))
def test_tables_of_groups_have_finite_numbers(number, tmp_path):
    world = world_of(number)
    some = next(batches(number))
    of_group = np.arange(len(some)).repeat([len(items) for items in some])
    vectors = np.concatenate(some).astype(np.float32)
    table = pa.table({"site": of_group, "vector": lists(vectors)})
    items, _ = label_table(table, world.classifier, "site")
    assert np.isfinite(items["certainty"].to_numpy()).all()
    if world.classifier.model_.unknown_model is not None:
        assert np.isfinite(items["unknown"].to_numpy()).all()


def test_one_item_of_each_of_many_classes_is_labelled_as_well_as_each_alone():
    world = world_of(0)
    rng = np.random.default_rng(5)
    right = []
    for n_items in (40, 50, 60, 75, 90) * 5:
        truth = rng.permutation(len(world.clouds.centres))[:n_items]
        found = world.classifier.infer(world.items(truth))
        right.append([(found.labels == truth).mean(), (found.alone == truth).mean()])
    jointly, alone = np.mean(right, axis=0)
    assert jointly >= alone > 0.9
