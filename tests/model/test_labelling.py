"""The whole model on made-up batches: what is known in advance, an offset, another order or scale, class sizes."""

import numpy as np
import pytest

from handful.model.batch import BatchItems, decide
from handful.model.head import LinearHead, fit_head
from handful.model.knowledge import FixedLabels, Knowledge, Prior, ToldShare
from handful.model.labelling import KnownBatch, label_batch, label_batches
from handful.model.labels import ItemLabels, fold_unnamed
from handful.model.left_out import HeadCalibration
from handful.model.reference import Reference
from handful.model.settings import DEFAULT
from handful.model.stream import DecidedBatch, with_sizes
from handful.model.unknown_of_catalogue import fit_unknown_model
from tests.worlds import Clouds


def made_up(seed, n_classes=40, chosen=(3, 9, 14), n_items=45, dim=16, shots=1, noise=0.8):
    clouds = Clouds(n_classes, dim, seed)
    means = clouds.examples(shots, noise).reshape(n_classes, shots, dim).mean(1)
    truth = np.repeat(chosen, n_items // len(chosen))
    points = clouds.around(truth, noise)
    precision = 1 / (noise**2 * (1 + 1 / shots))
    return points, reference(precision * means, -precision * (means**2).sum(1) / 2, means, shots, noise**2 * dim), truth


def reference(weights, offsets, means, shots, spread):
    examples, t, wrong, confidence = HeadCalibration.without_examples(1.0)
    mass = np.full(len(means), float(shots))
    return Reference(LinearHead(weights, offsets, means, mass, spread, t, wrong, confidence, examples))


def prior_of(weights, concentration=DEFAULT.prior_concentration):
    return Prior.of(weights[None], np.array([concentration]))


def test_one_example_gains_most():
    joint, alone = [], []
    for seed in range(8):
        points, classes, truth = made_up(seed)
        joint.append((label_batch(points, classes).probabilities.argmax(1) == truth).mean())
        alone.append((classes.head.scores(points).argmax(1) == truth).mean())
    assert np.mean(joint) > np.mean(alone) + 0.1


def test_rows_are_probabilities_and_an_excluded_class_has_none():
    points, classes, truth = made_up(0, shots=5)
    weights = np.ones(40)
    weights[truth[0]] = 0
    found = label_batch(points, classes, Knowledge(prior_of(weights)))
    assert np.allclose(found.probabilities.sum(1), 1)
    assert not found.probabilities[:, truth[0]].any()
    assert found.presence.min() >= 0
    assert found.presence.max() <= 1


def test_order_and_scale_do_not_matter():
    points, classes, _ = made_up(1, shots=5)
    found = label_batch(points, classes)
    order = np.random.default_rng(0).permutation(len(points))
    head = classes.head
    scaled = reference(head.weights / 7, head.offsets, 7 * head.means, 5, 49 * head.spread)
    again = label_batch(7 * points[order], scaled)
    assert np.allclose(again.probabilities, found.probabilities[order], atol=1e-4)
    assert np.allclose(again.presence, found.presence, atol=1e-4)


def test_one_example_of_each_class_is_enough_to_see_another_place():
    home, away = [], []
    for seed in range(8):
        points, classes, truth = made_up(seed, n_classes=20, chosen=(1, 4, 7, 10, 13), n_items=75, noise=0.5)
        head = classes.head
        unknown_spread = reference(head.weights, head.offsets, head.means, 1, None)
        offset = 0.75 * np.random.default_rng(seed).normal(size=points.shape[1])
        for found, there in ((home, points), (away, points + offset)):
            found.append((label_batch(there, unknown_spread).probabilities.argmax(1) == truth).mean())
    assert np.mean(away) > np.mean(home) - 0.05


def test_a_batch_from_another_place_is_labelled_as_at_home():
    points, classes, truth = made_up(2, shots=5)
    offset = 0.8 * np.ones(16)
    there = label_batch(points + offset, classes).probabilities.argmax(1) == truth
    unmoved = classes.head.scores(points + offset).argmax(1) == truth
    assert there.mean() > unmoved.mean() + 0.1


def test_one_item():
    points, classes, _ = made_up(3, shots=5)
    found = label_batch(points[:1], classes)
    assert np.isfinite(found.probabilities).all()
    assert found.probabilities.argmax() == classes.head.scores(points[:1]).argmax()


def test_a_part_decides_for_a_large_batch():
    points, classes, truth = made_up(4, n_items=45, shots=5)
    rng = np.random.default_rng(0)
    many = np.repeat(points, 40, 0) + 0.05 * rng.normal(size=(1800, 16))
    found = label_batch(many, classes)
    order = rng.permutation(1800)
    again = label_batch(many[order], classes)
    assert (found.probabilities.argmax(1) == np.repeat(truth, 40)).mean() > 0.9
    assert np.flatnonzero(found.presence > 0.5).tolist() == [3, 9, 14]
    # Other items decide, so the order is no longer of no matter at all.
    assert np.allclose(again.probabilities, found.probabilities[order], atol=0.1)
    assert (again.probabilities.argmax(1) == found.probabilities.argmax(1)[order]).mean() > 0.995


def test_what_is_given_holds_and_what_an_item_cannot_be_it_is_not():
    points, classes, truth = made_up(5, shots=5)
    fixed_labels = np.full(45, -1)
    fixed_labels[0] = 30
    allowed = np.ones((45, 40), bool)
    allowed[2, truth[2]] = False
    found = label_batch(points, classes, Knowledge(allowed=allowed[None], labels=FixedLabels.of(fixed_labels)))
    assert found.probabilities[0].argmax() == 30
    assert found.probabilities[2, truth[2]] == 0
    assert found.presence[30] > 0.5


def test_items_of_a_class_without_a_name_are_unknown():
    clouds = Clouds(41, 16)
    codes = np.repeat(np.arange(41), 5)
    examples = clouds.around(codes, 0.6)
    head = fit_head(examples, codes, 41)
    truth = np.repeat([3, 9, 40], 12)
    points = clouds.around(truth, 0.6)
    named = label_batch(points, Reference(head))
    folded = label_batch(points, Reference(head, n_unnamed=1))
    assert folded.probabilities.shape == (36, 40)
    assert np.allclose(folded.probabilities.sum(1), 1)
    assert folded.rejected.tolist() == (named.probabilities.argmax(1) == 40).tolist()
    assert (folded.unnamed == 0).tolist() == folded.rejected.tolist()
    assert folded.expected_counts.sum() == pytest.approx(36 - folded.unknown.sum(), abs=1e-4)
    (group,) = folded.groups
    assert sorted(group.items.tolist()) == np.flatnonzero(folded.rejected).tolist()


def test_what_is_left_out_is_put_back_as_unknown():
    points, classes, _ = made_up(5, shots=5)
    found = label_batch(points, classes)
    excluded = np.zeros(47, bool)
    excluded[[0, 46]] = True
    whole = found.with_excluded(excluded)
    assert whole.rejected[[0, 46]].all()
    assert (whole.probabilities[1:46] == found.probabilities).all()
    assert (whole.presence == found.presence).all()
    nothing = found.with_excluded(np.ones(45, bool))
    assert nothing.rejected.all()
    assert nothing.expected_counts.sum() == nothing.presence.sum() == 0


def test_weights_decide_between_two_classes_that_look_alike():
    points, classes, truth = made_up(6, shots=5)
    head = classes.head
    twin = np.r_[0:40, truth[0]]
    doubled = reference(head.weights[twin], head.offsets[twin], head.means[twin], 5, head.spread)
    shares = np.full(41, 1 / 41)
    shares[truth[0]], shares[40] = 1e-4, 0.05
    found = label_batch(points[:1], doubled, Knowledge(prior_of(shares)))
    assert found.probabilities[0, 40] > 10 * found.probabilities[0, truth[0]]


def world_with_unknown_items(seed=0):
    """A catalogue of 30 classes, batches of 1 to 40 items, some of classes that it lacks, and their classes."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(34, 24, rng)
    codes = np.repeat(np.arange(30), 5)
    examples = clouds.around(codes, 0.6)
    head = fit_head(examples, codes, 30)
    classes, batches, labels = Reference(head, fit_unknown_model(head, examples, codes)), [], []
    for size in [1, 3, 8, 12, 3, 8, 12, 8, 40, 3, 40, 1, 8]:
        truth = rng.choice(rng.choice(34, 5), size)
        batches.append(clouds.around(truth, 0.6))
        labels.append(np.where(truth < 30, truth, -1))
    return classes, batches, labels, rng


@pytest.mark.parametrize("known", ["nothing", "shares", "allowed", "fixed_labels"])
def test_a_batch_of_a_stack_is_labelled_as_if_it_were_alone(known):
    classes, batches, labels, rng = world_with_unknown_items()
    contexts = []
    for points, own in zip(batches, labels, strict=True):
        weights = rng.dirichlet(np.ones(30))
        weights[rng.integers(30)] = 0
        allowed = rng.random((len(points), 30)) < 0.8
        fixed_labels = np.where(rng.random(len(points)) < 0.2, own, -1)
        contexts.append(
            {
                "nothing": Knowledge(),
                "shares": Knowledge(prior_of(weights, rng.uniform(1, 300))),
                "allowed": Knowledge(allowed=allowed[None]),
                "fixed_labels": Knowledge(labels=FixedLabels.of(fixed_labels)),
            }[known]
        )
    together = list(label_batches(map(KnownBatch, batches, contexts), classes))
    assert known != "nothing" or {bool(found.rejected.any()) for found in together} == {True, False}
    for points, context, found in zip(batches, contexts, together, strict=True):
        alone = label_batch(points, classes, context)
        assert (found.interval, found.rejected.tolist()) == (alone.interval, alone.rejected.tolist())
        for name in ("probabilities", "presence", "unknown", "expected_counts", "joint_weight", "prior_weight"):
            assert np.allclose(getattr(found, name), getattr(alone, name), rtol=1e-6, atol=1e-6), name
        assert [group.items.tolist() for group in found.groups] == [group.items.tolist() for group in alone.groups]


def world(sizes, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    clouds = Clouds(60, 16, rng)
    codes = np.repeat(np.arange(60), 5)
    reference = Reference(fit_head(clouds.around(codes, noise), codes, 60))
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    points = clouds.around(truth, noise)
    return BatchItems.of(points[None], reference, Knowledge()), truth


def test_classes_that_the_deciding_items_do_not_show_are_counted():
    items, truth = world((2000 / np.arange(1, 61) / 4.7).astype(int) + 1)
    decision = decide(items.rows(slice(60)), DEFAULT).decision
    counted = with_sizes(decision, items.scores.shots, lambda: [items], DEFAULT)
    before, after = (
        DecidedBatch(one, None, None, DEFAULT).label(items).probabilities[0] for one in (decision, counted)
    )
    assert counted.present.columns.shape[1] > decision.present.columns.shape[1]
    assert (after.argmax(1) == truth).mean() >= (before.argmax(1) == truth).mean()


def test_a_few_even_classes_stay_as_they_were_decided():
    items, _ = world([100] * 5)
    decision = decide(items.rows(slice(200)), DEFAULT).decision
    assert with_sizes(decision, items.scores.shots, lambda: [items], DEFAULT) is decision


def test_items_that_a_person_labelled_move_no_mean_though_nothing_is_unknown():
    classes, batches, labels, _ = world_with_unknown_items()
    points, own = next(
        pair for pair in zip(batches, labels, strict=True) if len(pair[1]) == 40 and (pair[1] >= 0).any()
    )
    codes = np.where(np.arange(40) == np.flatnonzero(own >= 0)[0], own, -1)
    told = Knowledge(labels=FixedLabels.of(codes), share=ToldShare.of(np.array([0.0, 1.0])))
    responsibilities = decide(BatchItems.of(points[None], classes, told), DEFAULT).responsibilities[0]
    assert not responsibilities[codes >= 0].any()
    assert responsibilities[codes < 0].any()


def test_a_named_class_without_any_chance_has_none_beside_groups_without_a_name():
    q = np.array([[[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.0, 0.5], [0.0, 0.0, 0.0, 1.0]]])
    found = fold_unnamed(ItemLabels(q, np.ones((1, 3)), np.zeros((1, 2, 4)), None), 3, DEFAULT)
    np.testing.assert_array_equal(found.probabilities[0], [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_array_equal(found.unknown[0], [0, 0.5, 1])
