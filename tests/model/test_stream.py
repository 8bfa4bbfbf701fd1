"""A large batch is decided by a sample of its items, which follows from their content alone."""

import pickle

import numpy as np
import pytest

from handful.model.batch import BatchItems
from handful.model.content import content_keys
from handful.model.head import fit_head
from handful.model.knowledge import FixedLabels, Knowledge, ToldShare
from handful.model.labelling import label_batch, label_stack
from handful.model.reference import Reference
from handful.model.settings import DEFAULT
from handful.model.stream import DecidedBatch
from handful.model.summary import BatchTotals
from handful.model.unknown_of_catalogue import fit_unknown_model
from tests.worlds import Clouds

N_CLASSES = 40


def world(n_items, n_present=6, shots=5, seed=0, strangers=0):
    clouds = Clouds(N_CLASSES + strangers, 16, seed)
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(N_CLASSES), shots)
    points = clouds.around(codes, 0.6).astype(np.float32)
    head = fit_head(points, codes, N_CLASSES)
    present = rng.permutation(N_CLASSES + strangers)[:n_present]
    truth = rng.choice(present, n_items)
    return Reference(head, fit_unknown_model(head, points, codes)), clouds.around(truth, 0.6).astype(np.float32), truth


def decided(reference, points, settings=DEFAULT):
    def items_at(rows):
        return BatchItems.of(points[None, rows], reference, Knowledge())

    nobody = np.empty(0, np.int64)
    return DecidedBatch.of(points, reference.n_classes, items_at, nobody, settings.most_counted, settings)


def blocks_of(batch, reference, points, size):
    for at in range(0, len(points), size):
        yield batch.label(BatchItems.of(points[None, at : at + size], reference, Knowledge()))


@pytest.mark.parametrize("n_items", [30, 400, 700])
def test_labelled_block_by_block_a_small_batch_has_the_answer_of_memory(n_items):
    reference, points, _ = world(n_items, strangers=4)
    whole = label_batch(points, reference)
    batch = pickle.loads(pickle.dumps(decided(reference, points)))
    assert batch.settings is DEFAULT
    found = list(blocks_of(batch, reference, points, 64))
    np.testing.assert_allclose(np.concatenate([one.probabilities[0] for one in found]), whole.probabilities, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([one.unknown[0] for one in found]), whole.unknown, atol=2e-5)
    assert BatchTotals.added([BatchTotals.of(one) for one in found]).n_items == n_items


@pytest.mark.parametrize("n_items", [700, 1500, 9000])
def test_the_order_of_items_changes_nothing(n_items):
    reference, points, _ = world(n_items, strangers=4)
    points[100:140] = points[99]  # copies
    found = label_batch(points, reference)
    order = np.random.default_rng(1).permutation(n_items)
    again = label_batch(points[order], reference)
    np.testing.assert_allclose(again.probabilities, found.probabilities[order], atol=1e-5)
    np.testing.assert_allclose(again.unknown, found.unknown[order], atol=2e-5)
    np.testing.assert_allclose(again.expected_counts, found.expected_counts, rtol=1e-4)


def test_the_order_of_scores_changes_nothing():
    from handful.model.labelling import label_scores

    rng = np.random.default_rng(0)
    nats = rng.normal(size=(3000, 30))
    order = rng.permutation(3000)
    found = label_scores(nats).probabilities[order]
    np.testing.assert_allclose(label_scores(nats[order]).probabilities, found, atol=1e-6)


def test_copies_have_the_label_of_what_they_are_copies_of():
    reference, points, _ = world(300)
    batch = decided(reference, points)
    (first,) = blocks_of(batch, reference, points[:10], 10)
    (twice,) = blocks_of(batch, reference, np.repeat(points[:10], 2, axis=0), 20)
    np.testing.assert_allclose(twice.probabilities[0, ::2], first.probabilities[0], atol=1e-6)
    np.testing.assert_allclose(twice.probabilities[0, 1::2], first.probabilities[0], atol=1e-6)


def test_a_copy_of_an_item_that_a_person_labelled_moves_what_it_moved():
    reference, points, truth = world(1500)
    points[1] = points[0]
    codes = np.full(1500, -1)
    codes[0] = truth[0]
    found = label_batch(points, reference, Knowledge(labels=FixedLabels.of(codes)))
    assert found.probabilities[0].argmax() == found.probabilities[1].argmax() == truth[0]


def test_keys_are_of_contents():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 7)).astype(np.float32)
    keys = content_keys(rows)
    assert len(np.unique(keys)) == 5000
    assert (content_keys(rows[::-1]) == keys[::-1]).all()
    assert (content_keys(rows[10:11]) == keys[10:11]).all()
    assert (content_keys(np.asfortranarray(rows)) == keys).all()


@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_near_classes_say_what_all_classes_say(size, shift):
    reference, points, _ = world(20 * size, n_present=N_CLASSES + 4, strangers=4)
    stack = (points + np.float32(shift)).reshape(20, size, -1)
    share = ToldShare(np.full(20, 3.0), np.full(20, 7.0), np.arange(20) % 2 == 0)
    whole = label_stack(stack, reference, Knowledge(share=share))
    near = label_stack(stack, reference, Knowledge(share=share), near=True)
    classes = near.labels.near.classes
    assert classes.shape[1] < N_CLASSES or size == 60
    best = near.named.probabilities.argmax(-1)
    assert (np.take_along_axis(classes, best, -1) == whole.named.probabilities.argmax(-1)).all()
    np.testing.assert_allclose(near.named.probabilities.max(-1), whole.named.probabilities.max(-1), atol=2e-5)
    np.testing.assert_allclose(near.named.unknown, whole.named.unknown, atol=1e-5)
    assert (near.summary.n_rejected == whole.summary.n_rejected).all()
    for name in ("expected_counts", "presence"):
        every = getattr(whole.summary, name)
        np.testing.assert_allclose(getattr(near.summary, name), np.take_along_axis(every, classes, -1), atol=2e-4)
        others = np.ones_like(every, bool)
        np.put_along_axis(others, classes, False, -1)
        assert (every[others] < 0.02).all()


def test_where_no_class_is_likely_each_item_keeps_its_best():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3000, 8)).astype(np.float32)
    head = fit_head(means, np.arange(3000), 3000)
    stack = (0.05 * rng.normal(size=(4, 5, 8))).astype(np.float32)  # in the middle of all classes
    whole = label_stack(stack, Reference(head), Knowledge())
    near = label_stack(stack, Reference(head), Knowledge(), near=True)
    best = np.take_along_axis(near.labels.near.classes, near.named.probabilities.argmax(-1), -1)
    assert (best == whole.named.probabilities.argmax(-1)).all()
