"""Catalogues: what is added, removed or joined is as if it had been there, or never been there, from the start."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from handful.errors import LabelError, OptionError
from handful.fitted import FittedModel, fitted, parts
from handful.fitted.rows import unit
from handful.model.head import fit_head
from handful.model.knowledge import Knowledge, Prior
from handful_fewshot.frame import Frame
from handful_fewshot.task import TaskBatch
from handful_fewshot.transforms import transform
from tests import clouds_at_hand

LABELS = np.array(["cat", "ant", "dog", "ant", "bee", "cat", "bee", "dog", "ant"])
seeds = st.integers(0, 1000)


def rows(seed: int, n: int = len(LABELS), dim: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dim))


def assert_same(left: FittedModel, right: FittedModel) -> None:
    assert left.classes.tolist() == right.classes.tolist()
    assert left.shots.tolist() == right.shots.tolist()
    np.testing.assert_allclose(left.means + left.origin, right.means + right.origin, rtol=1e-7, atol=1e-7)
    assert sorted(left.examples.labels.tolist()) == sorted(right.examples.labels.tolist())


def test_means_are_those_of_a_task():
    X, codes = rows(0), np.unique(LABELS, return_inverse=True)[1]
    frame = Frame(transform("l2", TaskBatch.single(X, codes, X[:1], 4)))
    catalogue = FittedModel.of(X, LABELS)
    expected = frame.placed(frame.support.mean())[0].numpy()
    np.testing.assert_allclose(catalogue.means + catalogue.origin, expected, rtol=1e-7, atol=1e-7)


@given(seed=seeds, cut=st.integers(1, 8))
def test_examples_added_are_as_if_there_from_the_start(seed, cut):
    labels, X = np.random.default_rng(seed).permutation(LABELS), rows(seed)
    grown = FittedModel.of(X[:cut], labels[:cut]).with_examples(X[cut:], labels[cut:])
    assert_same(grown, FittedModel.of(X, labels))
    assert grown.examples.positions.tolist() == list(range(9))


@given(seed=seeds, leaving=st.sets(st.sampled_from(["ant", "bee", "cat"]), min_size=1))
def test_classes_taken_out_are_as_if_never_there(seed, leaving):
    X, kept = rows(seed), ~np.isin(LABELS, list(leaving))
    assert_same(FittedModel.of(X, LABELS).without(np.array(sorted(leaving))), FittedModel.of(X[kept], LABELS[kept]))


def test_blocks_of_rows_make_the_catalogue_of_all_rows():
    X = rows(3)
    whole = FittedModel.of(X, LABELS)
    assert_same(
        FittedModel.streamed((X[i : i + 2] for i in range(0, 9, 2)), (LABELS[i : i + 2] for i in range(0, 9, 2))), whole
    )


def test_a_catalogue_never_changes():
    X = rows(0)
    catalogue = FittedModel.of(X, LABELS)
    before = catalogue.means.copy(), catalogue.content_hash
    catalogue.with_examples(X, LABELS)
    catalogue.without(np.array(["ant"]))
    np.testing.assert_array_equal(catalogue.means, before[0])
    assert FittedModel.of(X, LABELS).content_hash == before[1] != FittedModel.of(X + 1, LABELS).content_hash


def test_of_many_examples_whole_classes_are_kept_whoever_saw_them(monkeypatch):
    labels, X = np.arange(40).repeat(5), rows(1, 200)
    monkeypatch.setattr(fitted, "KEPT_NUMBERS", 6 * 60)
    monkeypatch.setattr(parts, "FEWEST_CLASSES", 12)
    whole = FittedModel.of(X, labels)
    kept, counts = np.unique(whole.examples.labels, return_counts=True)
    assert len(kept) == 12
    assert set(counts) == {5}
    halves = FittedModel.of(X[100:], labels[100:]).with_examples(X[:100], labels[:100])
    assert sorted(set(halves.examples.labels.tolist())) == kept.tolist()
    assert halves.head.temperature == pytest.approx(whole.head.temperature)
    np.testing.assert_allclose(halves.means + halves.origin, whole.means + whole.origin, rtol=1e-7, atol=1e-7)


def clouds(n_classes: int, shots: int, noise: float = 0.8, dim: int = 6):
    rng = np.random.default_rng(0)
    labels = np.arange(n_classes).repeat(shots)
    points = rng.standard_normal((n_classes, dim))[labels] + noise * rng.standard_normal((len(labels), dim))
    return points, labels


@pytest.mark.parametrize("n_classes", [2, 10])
def test_few_classes_with_many_examples_have_a_slope(n_classes, monkeypatch):
    X, labels = clouds(n_classes, 2000)
    monkeypatch.setattr(fitted, "KEPT_NUMBERS", 6 * 1280)
    sampled = FittedModel.of(X, labels)
    assert len(sampled.examples.labels) == 20 * n_classes
    assert sampled.shots.tolist() == [2000] * n_classes
    head = sampled.head
    assert len(head.left_out.rows) == 20 * n_classes
    scores, rows = sampled.scores(sampled.points(X), Knowledge()), np.arange(len(labels))
    losses = [-log_softmax(scores / t, axis=1)[rows, labels].mean() for t in (0.5, 1.0, 2.0)]
    assert losses[1] < min(losses[0], losses[2])


def test_the_head_is_fitted_to_all_examples_about_the_origin():
    X, labels = clouds(8, 5)
    catalogue = FittedModel.of(X, labels)
    points = unit(X) - catalogue.origin
    expected = fit_head(points, labels, 8, square_norm=1.0)
    np.testing.assert_array_equal(catalogue.head.weights, expected.weights)
    assert catalogue.head is catalogue.head
    raw = FittedModel.of(7 * X, labels, "raw").head
    assert raw.temperature == pytest.approx(FittedModel.of(X, labels, "raw").head.temperature, rel=0.2)


def test_what_was_added_or_removed_has_another_head():
    X, labels = clouds(8, 5)
    catalogue = FittedModel.of(X, labels)
    assert len(catalogue.head.left_out.rows) == 40
    assert len(catalogue.without(np.array([3])).head.weights) == 7
    assert len(catalogue.with_examples(X[:1] + 1, np.array([8])).head.weights) == 9


def test_with_examples_that_are_not_kept_the_head_is_made_of_means(monkeypatch):
    X, labels = clouds(40, 5)
    monkeypatch.setattr(fitted, "KEPT_NUMBERS", 6 * 60)
    monkeypatch.setattr(parts, "FEWEST_CLASSES", 12)
    head = FittedModel.of(X, labels).head
    ratio = head.weights / head.means
    np.testing.assert_allclose(ratio, ratio[0, 0])
    assert len(head.left_out.rows) == 60
    # Only what is not kept counts: with the classes that were not kept gone, all examples are known.
    sampled = FittedModel.of(X, labels)
    left = sampled.without(np.setdiff1d(labels, sampled.examples.labels))
    assert left.shots.sum() == len(left.examples.labels)
    assert left.head.weights.shape == (12, 6)
    ratio = left.head.weights / left.head.means
    assert ratio.max() > 1.1 * ratio.min()


def test_batches_are_placed_about_the_origin():
    X, labels = clouds(8, 5)
    catalogue = FittedModel.of(X, labels)
    expected = X[:20] / np.linalg.norm(X[:20], axis=1, keepdims=True) - catalogue.origin
    np.testing.assert_allclose(catalogue.points(3 * X[:20]), expected, atol=1e-12)
    head = catalogue.head
    assert catalogue.reference.head is head
    scores = catalogue.scores(catalogue.points(3 * X[:20]), Knowledge())
    np.testing.assert_allclose(scores, expected @ head.weights.T + head.offsets, atol=1e-9)
    prior = Prior.of(np.array([[0.0] + [1.0] * 7]), np.array([300.0]))
    banned = catalogue.scores(catalogue.points(3 * X[:20]), Knowledge(prior))
    assert np.isneginf(banned[:, 0]).all()
    np.testing.assert_allclose(banned[:, 1:], scores[:, 1:])


def test_what_does_not_fit_is_refused():
    catalogue = FittedModel.of(rows(0), LABELS)
    with pytest.raises(LabelError, match="no class would be left"):
        catalogue.without(LABELS)
    with pytest.raises(LabelError, match="labels must be of the catalogue's kind"):
        catalogue.with_examples(rows(0), np.arange(9))
    with pytest.raises(OptionError, match="range_scale"):
        FittedModel.of(rows(0), LABELS, "range_scale")
    with pytest.raises(LabelError, match="at least one example, got none"):
        FittedModel.streamed([], [])
    with pytest.raises(LabelError, match="at least one name, got none"):
        FittedModel.of_names(np.empty((0, 6)), np.array([]))
    assert catalogue.unknown(np.array(["fly", "ant", "elk"])) == ["elk", "fly"]
    with pytest.raises(LabelError, match="must be of one kind"):
        FittedModel.of(rows(0, 3), np.array(["a", None, 3], dtype=object))


def names_of(classes, dim=6, seed=9):
    return np.random.default_rng(seed).standard_normal((len(classes), dim)), np.array(classes)


def test_names_make_a_catalogue_and_examples_join_them():
    vectors, labels = names_of(["ant", "bee", "cat", "dog"])
    named = FittedModel.of_names(vectors, labels)
    assert named.only_names
    assert named.shots.tolist() == [0, 0, 0, 0]
    assert named.unknown_model is None
    assert "4 classes have a name and no example: ant, bee, cat, dog." in str(named.report())
    late = named.with_examples(rows(0), LABELS)
    early = FittedModel.of(rows(0), LABELS).with_names(vectors, labels)
    assert_same(late, early)
    np.testing.assert_allclose(late.head.weights, early.head.weights, rtol=1e-5)
    assert not late.only_names


def test_a_name_goes_with_its_class():
    vectors, labels = names_of(["ant", "emu"])
    catalogue = FittedModel.of(rows(0), LABELS).with_names(vectors, labels)
    assert catalogue.classes.tolist() == ["ant", "bee", "cat", "dog", "emu"]
    assert catalogue.shots.tolist() == [3, 2, 2, 2, 0]
    assert catalogue.without(np.array(["ant"])).names.classes.tolist() == ["emu"]
    assert catalogue.without(np.array(["ant", "emu"])).names is None
    merged = catalogue.relabelled(np.array(["insect", "insect", "cat", "dog", "emu"]))
    assert (merged.classes.tolist(), merged.shots.tolist()) == (["cat", "dog", "emu", "insect"], [2, 2, 0, 5])
    assert merged.names.classes.tolist() == ["emu", "insect"]
    np.testing.assert_array_equal(merged.names.points[::-1], catalogue.names.points)


def test_an_update_says_the_same_as_a_fit():
    X, y = clouds_at_hand.clouds(40, 5)
    before = FittedModel.of(X, y)
    more, truth = clouds_at_hand.clouds(40, 1, seed=3)
    batch, _ = clouds_at_hand.clouds(40, 20, seed=4)
    new = np.concatenate([more[:6], np.eye(16, dtype=np.float32)[:2]])
    labels = np.array([*truth[:6], "new class", "new class"])
    whole = before.with_examples(new, labels)
    after = whole.updated_from(before)
    assert after.head.n_fitted == before.head.n_fitted == 200
    assert whole.head.n_fitted == 208
    assert after.classes.tolist() == whole.classes.tolist()
    points = whole.points(batch)
    own, other = (one.head.scores(points).argmax(1) for one in (after, whole))
    assert (own == other).mean() > 0.99
    np.testing.assert_allclose(after.head.means, whole.head.means, atol=0.02)
    assert len(after.head.left_out.rows) == 206  # those of a class that the head did not know are not judged
    places, known = np.isin(after.classes, labels), np.isin(before.classes, labels)
    np.testing.assert_array_equal(after.head.weights[~places], before.head.weights[~known])


def test_a_class_with_another_name_is_the_same_class():
    before = FittedModel.of(*clouds_at_hand.clouds())
    _ = before.reference
    names = before.classes.astype("<U16")
    names[0] = "zebra"
    after = before.relabelled(names)
    order = [*range(1, 20), 0]
    assert after.classes.tolist() == [*before.classes.tolist()[1:], "zebra"]
    np.testing.assert_array_equal(after.head.weights, before.head.weights[order])
    assert after.report().suspects == before.report().suspects
    points = before.points(clouds_at_hand.clouds(seed=2)[0])
    named = after.classes[after.head.scores(points).argmax(1)]
    assert (names[before.head.scores(points).argmax(1)] == named).all()


def test_merged_classes_are_those_of_a_new_fit():
    X, y = clouds_at_hand.clouds()
    before = FittedModel.of(X, y)
    after = before.relabelled(np.where(before.classes == "class 04", "class 03", before.classes))
    again = FittedModel.of(X, np.where(y == "class 04", "class 03", y))
    assert after.classes.tolist() == again.classes.tolist()
    np.testing.assert_allclose(after.means + after.origin, again.means + again.origin, atol=1e-6)
    np.testing.assert_allclose(after.head.weights, again.head.weights, atol=1e-4)
    assert after.shots[3] == 8
