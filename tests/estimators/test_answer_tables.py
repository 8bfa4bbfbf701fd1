"""Tables and text about answers."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from handful.estimators.answer_tables import aligned, are_doubtful, columns_of_items, counted, listed, top_of
from hypothesis import given
from hypothesis import strategies as st

from handful.errors import MissingExtraError, OptionError, UnlikeCatalogueWarning
from handful.estimators import BatchClassifier, Diagnostic

CLASSES = np.array([f"class {k:02}" for k in range(20)])
COLUMNS = ["label", "probability", "runner_up", "runner_up_probability", "doubtful", "unknown", "rejected"]


@pytest.fixture(scope="module")
def world():
    """A classifier, and a batch of two known classes and an unknown one."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(21, 24))
    X = centres[:20].repeat(5, axis=0) + 0.4 * rng.normal(size=(100, 24))
    batch = centres[[3] * 12 + [7] * 9 + [20] * 8] + 0.4 * rng.normal(size=(29, 24))
    batch[0] = 0.5 * (centres[3] + centres[7])
    return BatchClassifier().fit(X, CLASSES.repeat(5)), batch


@given(seed=st.integers(0, 1000), k=st.integers(1, 7), n_classes=st.integers(1, 5))
def test_top_is_a_full_sort(seed, k, n_classes):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (6, n_classes)) / 4  # with many ties
    found = top_of(table, np.arange(n_classes), k)
    np.testing.assert_array_equal(found.probabilities, -np.sort(-table, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(table, found.labels, 1), found.probabilities)


def test_top_needs_a_whole_number():
    with pytest.raises(OptionError, match="k must be a whole number of at least 1, got 0"):
        top_of(np.ones((1, 2)), np.arange(2), 0)


def test_doubt_is_a_narrow_lead():
    assert are_doubtful(np.array([0.9, 0.6, 0.6]), np.array([0.1, 0.4, 0.1])).tolist() == [False, True, False]


def test_a_single_class_has_no_runner_up():
    columns = columns_of_items(np.ones((2, 1)), np.array(["only"]), np.full(2, np.nan), np.zeros(2, bool))
    assert columns["runner_up"].tolist() == [None, None]
    assert not columns["doubtful"].any()


def test_words():
    assert counted(1, "item", "items") == "1 item"
    assert counted(1200, "item", "items") == "1,200 items"
    assert listed(list(range(12))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    assert aligned([["class", "n"], ["a", "12"]]) == ["class   n", "a      12"]
    assert aligned([["class", "n"], ["a\nb", "12"]]) == ["class   n", "a\\nb   12"]


def test_rejected_items_are_not_in_doubt_between_two_classes():
    table, rejected = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([False, True])
    columns = columns_of_items(table, np.array(["a", "b"]), np.array([0.1, 0.9]), rejected)
    assert columns["doubtful"].tolist() == [True, False]


def test_a_frame_has_the_index_and_the_kind_of_the_batch(world):
    classifier, batch = world
    expected = classifier.infer(batch)
    plain = expected.to_frame()
    assert list(plain.columns) == COLUMNS
    assert plain["label"].tolist() == expected.labels.tolist()
    np.testing.assert_array_equal(plain["probability"], expected.probabilities.max(1))
    np.testing.assert_array_equal(plain["rejected"], expected.rejected)
    np.testing.assert_array_equal(plain["doubtful"], expected.doubtful)
    assert (plain["runner_up"] != plain["label"]).all()
    index = [f"photo {i}" for i in range(len(batch))]
    framed = classifier.infer(pd.DataFrame({"v": list(batch)}, index=index)).to_frame()
    assert framed.index.tolist() == index
    assert classifier.infer(torch.from_numpy(batch)).to_frame()["label"].tolist() == plain["label"].tolist()
    for table, kind in ((pl.DataFrame({"v": batch}), pl.DataFrame), (pa.table({"v": batch.tolist()}), pa.Table)):
        found = classifier.infer(table)
        assert isinstance(found.to_frame(), kind)
        assert isinstance(found.by_class(), kind)
        assert np.asarray(found.to_frame()["label"]).tolist() == plain["label"].tolist()


def test_without_pandas_the_error_says_what_to_install(world, monkeypatch):
    classifier, batch = world
    found = classifier.infer(batch)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        found.to_frame()


def test_classes_are_read_together(world):
    classifier, batch = world
    found = classifier.infer(batch)
    table = found.by_class().set_index("class")
    assert table.index[:2].tolist() == ["class 03", "class 07"] == found.present_classes.tolist()
    np.testing.assert_array_equal(table.loc[found.classes, "expected_count"], found.expected_counts)
    np.testing.assert_array_equal(table.loc[found.classes, "presence"], found.presence)
    np.testing.assert_array_equal(table.loc[found.classes, "proportion"], found.class_proportions)


def test_a_summary_says_what_there_is(world):
    classifier, batch = world
    found = classifier.infer(batch)
    assert repr(found) == "Inference(29 items, 2 of 20 classes present, 0 items doubtful, 9 rejected)"
    lines = found.summary().splitlines()
    assert lines[0] == "29 items, 2 of 20 classes present."
    assert lines[2].split()[:3] == ["class", "03", f"{found.expected_counts[3]:.1f}"]
    # Item 0 lies between two classes, far from both.
    assert lines[4].startswith("9 items look like none of the classes: 0, 21, 22, 23, 24, 25, 26, 27, 28. The share")
    assert lines[5].startswith("Perhaps a new class of 8 items, nearest to class")


def test_a_summary_repeats_the_warnings(world):
    classifier, batch = world
    said = Diagnostic("unlike_catalogue", "The batch looks unlike the catalogue.", 0.1, 0.7, UnlikeCatalogueWarning)
    summary = replace(classifier.infer(batch), diagnostics=(said,)).summary()
    assert summary.endswith("\nWarning: The batch looks unlike the catalogue.")


def test_groups_have_the_same_tables(world):
    classifier, batch = world
    groups = np.array(["north"] * 12 + ["south"] * 9 + ["west"] * 8)
    found = classifier.infer(batch, groups=groups)
    assert repr(found).startswith("GroupedInference(3 groups, 29 items, ")
    table = found.to_frame()
    assert list(table.columns) == ["group", *COLUMNS]
    assert table["group"].tolist() == groups.tolist()
    assert table["label"].tolist() == found.labels.tolist()
    by_class = found.by_class()
    for group in found.groups:
        one, mine = found[group], by_class[by_class["group"] == group]
        assert mine["class"].tolist() == one.present_classes.tolist()
        np.testing.assert_allclose(mine["proportion"], one.by_class()["proportion"][: len(mine)])
    np.testing.assert_array_equal(found.top(1).labels[:, 0], found.labels)
    lines = found.summary().splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["north", "south", "west"]
    assert lines[2].split()[1] == "12"
    many = classifier.infer(batch, groups=np.arange(len(batch)))
    assert many.summary().endswith("And 9 more groups, see by_class().")
