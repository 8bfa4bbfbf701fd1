"""Catalogues: what is added, removed or joined is as if it had been there, or never been there, from the start."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.catalogue import Catalogue, fitted, parts
from handful.errors import LabelError, OptionError
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from handful.task import TaskBatch
from handful.transforms import transform

LABELS = np.array(["cat", "ant", "dog", "ant", "bee", "cat", "bee", "dog", "ant"])
seeds = st.integers(0, 1000)


def rows(seed: int, n: int = len(LABELS), dim: int = 6) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, dim)))


def assert_same(left: Catalogue, right: Catalogue) -> None:
    assert left.classes.tolist() == right.classes.tolist()
    assert left.shots.tolist() == right.shots.tolist()
    torch.testing.assert_close(left.means + left.origin, right.means + right.origin)
    if right.squared_scale is None:
        assert left.squared_scale is None
    else:
        assert left.squared_scale == pytest.approx(right.squared_scale, rel=1e-6)
    assert sorted(left.examples.labels.tolist()) == sorted(right.examples.labels.tolist())


def test_means_and_scale_are_those_of_a_task():
    X, codes = rows(0), np.unique(LABELS, return_inverse=True)[1]
    frame = Frame(transform("l2", TaskBatch.single(X, codes, X[:1], 4)))
    catalogue = Catalogue.of(X, LABELS)
    torch.testing.assert_close(catalogue.means + catalogue.origin, frame.placed(frame.support.mean())[0])
    assert catalogue.squared_scale == pytest.approx(float(squared_scale(frame)[0]))


@given(seed=seeds, cut=st.integers(1, 8))
def test_examples_added_are_as_if_there_from_the_start(seed, cut):
    labels, X = np.random.default_rng(seed).permutation(LABELS), rows(seed)
    grown = Catalogue.of(X[:cut], labels[:cut]).with_examples(X[cut:], labels[cut:])
    assert_same(grown, Catalogue.of(X, labels))
    assert grown.examples.positions.tolist() == list(range(9))


@given(seed=seeds, cut=st.integers(1, 8))
def test_examples_taken_away_are_as_if_never_there(seed, cut):
    labels, X = np.random.default_rng(seed).permutation(LABELS), rows(seed)
    assert_same(Catalogue.of(X, labels).without_examples(X[cut:], labels[cut:]), Catalogue.of(X[:cut], labels[:cut]))


@given(seed=seeds, leaving=st.sets(st.sampled_from(["ant", "bee", "cat"]), min_size=1))
def test_classes_taken_out_are_as_if_never_there(seed, leaving):
    X, kept = rows(seed), ~np.isin(LABELS, list(leaving))
    assert_same(Catalogue.of(X, LABELS).without(np.array(sorted(leaving))), Catalogue.of(X[kept], LABELS[kept]))


@given(seed=seeds, cut=st.integers(1, 8))
def test_catalogues_of_two_machines_add_up(seed, cut):
    labels, X = np.random.default_rng(seed).permutation(LABELS), rows(seed)
    total = Catalogue.of(X[:cut], labels[:cut]) + Catalogue.of(X[cut:], labels[cut:])
    assert_same(total, Catalogue.of(X, labels))
    assert total.n_examples == 9


def test_blocks_of_rows_make_the_catalogue_of_all_rows(monkeypatch):
    X = rows(3)
    whole = Catalogue.of(X, LABELS)
    monkeypatch.setattr(fitted, "MOST_ADDITIONS", 2)
    assert_same(
        Catalogue.streamed((X[i : i + 2] for i in range(0, 9, 2)), (LABELS[i : i + 2] for i in range(0, 9, 2))), whole
    )


def test_a_catalogue_never_changes():
    X = rows(0)
    catalogue = Catalogue.of(X, LABELS)
    before = catalogue.means.clone(), catalogue.content_hash
    catalogue.with_examples(X, LABELS)
    catalogue.without(np.array(["ant"]))
    catalogue.without_examples(X[:2], LABELS[:2])
    assert torch.equal(catalogue.means, before[0])
    assert Catalogue.of(X, LABELS).content_hash == before[1] != Catalogue.of(X + 1, LABELS).content_hash


def test_of_many_examples_whole_classes_are_kept_whoever_saw_them(monkeypatch):
    labels, X = np.arange(40).repeat(5), rows(1, 200)
    monkeypatch.setattr(fitted, "KEPT_NUMBERS", 6 * 60)
    monkeypatch.setattr(parts, "FEWEST_CLASSES", 12)
    whole = Catalogue.of(X, labels)
    kept, counts = np.unique(whole.examples.labels, return_counts=True)
    assert len(kept) == 12
    assert set(counts) == {5}
    halves = Catalogue.of(X[:100], labels[:100]) + Catalogue.of(X[100:], labels[100:])
    assert sorted(set(halves.examples.labels.tolist())) == kept.tolist()
    assert halves.squared_scale == pytest.approx(whole.squared_scale)
    torch.testing.assert_close(halves.means + halves.origin, whole.means + whole.origin)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_few_classes_with_many_examples_are_calibrated(n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.arange(n_classes).repeat(2000)
    X = torch.from_numpy(rng.standard_normal((n_classes, 6))[labels] + 0.8 * rng.standard_normal((len(labels), 6)))
    whole = Catalogue.of(X, labels)
    monkeypatch.setattr(fitted, "KEPT_NUMBERS", 6 * 1280)
    sampled = Catalogue.of(X, labels)
    assert len(sampled.examples.labels) == 20 * n_classes
    assert sampled.squared_scale == pytest.approx(whole.squared_scale, rel=0.35)
    assert sampled.shots.tolist() == [2000] * n_classes


def test_one_example_each_leaves_the_scale_to_the_batch():
    catalogue = Catalogue.of(rows(0, 4), np.array(list("abcd")))
    assert catalogue.squared_scale is None
    batch = catalogue.against(rows(1, 10).unsqueeze(0))
    batch.nearest()
    assert float(batch.squared_scale[0]) > 0
    assert catalogue.with_examples(rows(2, 1), np.array(["a"])).squared_scale is not None


def test_what_does_not_fit_is_refused():
    catalogue = Catalogue.of(rows(0), LABELS)
    with pytest.raises(LabelError, match="no class would be left"):
        catalogue.without(LABELS)
    with pytest.raises(LabelError, match="labels must be of the catalogue's kind"):
        catalogue.with_examples(rows(0), np.arange(9))
    with pytest.raises(LabelError, match="must be examples of the catalogue"):
        catalogue.without_examples(rows(0, 1), np.array(["fly"]))
    with pytest.raises(LabelError, match="same transform"):
        catalogue + Catalogue.of(rows(0), LABELS, "raw")
    with pytest.raises(OptionError, match="range_scale"):
        Catalogue.of(rows(0), LABELS, "range_scale")
    assert catalogue.unknown(np.array(["fly", "ant", "elk"])) == ["elk", "fly"]


def test_unknown_labels_are_found_in_time():
    many = np.arange(4000).astype(str)
    catalogue = Catalogue.of(torch.ones(4000, 1), many)
    start = time.process_time()
    assert catalogue.unknown(many) == []
    assert time.process_time() - start < 0.5
