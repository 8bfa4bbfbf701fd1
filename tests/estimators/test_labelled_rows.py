"""Labelled rows: the same rows make the same one, whatever the way there."""

import numpy as np
import pytest
import torch
from handful.estimators.labelled_rows import LabelledRows, is_unlabelled
from hypothesis import given
from hypothesis import strategies as st

from handful.errors import LabelError

LABELS = np.array(["cat", "ant", "dog", "ant", "bee", "cat"])


def rows(seed: int, labels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((len(labels), 3)))


def assert_same(left: LabelledRows, right: LabelledRows) -> None:
    assert left.classes.tolist() == right.classes.tolist()
    assert left.classes.dtype == right.classes.dtype
    torch.testing.assert_close(left.codes, right.codes, rtol=0, atol=0)
    torch.testing.assert_close(left.features, right.features, rtol=0, atol=0)


@given(seed=st.integers(0, 1000), cut=st.integers(1, 5))
def test_rows_added_are_as_if_there_from_the_start(seed, cut):
    labels = np.random.default_rng(seed).permutation(LABELS)
    features = rows(seed, labels)
    grown = LabelledRows.of(features[:cut], labels[:cut]).with_examples(features[cut:], labels[cut:])
    assert_same(grown, LabelledRows.of(features, labels))


@given(seed=st.integers(0, 1000), leaving=st.sets(st.sampled_from(["ant", "bee", "cat"]), min_size=1))
def test_classes_taken_out_are_as_if_never_there(seed, leaving):
    features = rows(seed, LABELS)
    kept = ~np.isin(LABELS, list(leaving))
    shrunk = LabelledRows.of(features, LABELS).without(np.array(sorted(leaving)))
    assert_same(shrunk, LabelledRows.of(features[kept], LABELS[kept]))


def test_a_catalogue_never_changes():
    features = rows(0, LABELS)
    catalogue = LabelledRows.of(features, LABELS)
    before = catalogue.features.clone()
    catalogue.with_examples(features, LABELS)
    catalogue.without(np.array(["ant"]))
    torch.testing.assert_close(catalogue.features, before)
    assert catalogue.labels.tolist() == LABELS.tolist()


def test_unknown_labels_are_named():
    assert LabelledRows.of(rows(0, LABELS), LABELS).unknown(np.array(["fly", "ant", "elk"])) == ["elk", "fly"]


def test_the_last_class_stays():
    with pytest.raises(LabelError, match="no class would be left"):
        LabelledRows.of(rows(0, LABELS), LABELS).without(LABELS)


def test_numbers_do_not_become_text():
    with pytest.raises(LabelError, match="must be of the catalogue's kind, <U3, got int64"):
        LabelledRows.of(rows(0, LABELS), LABELS).with_examples(rows(0, LABELS), np.arange(6))


def test_labels_without_order_are_refused():
    with pytest.raises(LabelError, match="must be of one kind"):
        LabelledRows.of(rows(0, LABELS), np.array(["a", None, 3, "b", "c", "d"], dtype=object))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([0, -1, 1]), [False, True, False]),
        (np.array([0.0, -1.0, 1.0]), [False, True, False]),
        (np.array(["a", -1, "b"], dtype=object), [False, True, False]),
        (np.array(["a", "-1", "b"], dtype=object), [False, False, False]),
        (np.array([-1, -1]), [True, True]),
        (np.array([-1, 1, -1]), [True, False, True]),
    ],
)
def test_what_is_unlabelled_does_not_depend_on_the_other_labels(labels, expected):
    assert is_unlabelled(labels, -1).tolist() == expected
    assert not is_unlabelled(labels, None).any()


def test_the_mark_may_be_text():
    assert is_unlabelled(np.array(["a", "?"]), "?").tolist() == [False, True]


@pytest.mark.parametrize(("labels", "mark"), [(np.array(["a", -1]), -1), (np.array([0, 1]), "?")])
def test_a_mark_that_no_label_can_equal_is_refused(labels, mark):
    with pytest.raises(LabelError, match="unlabelled must be of the kind of the labels"):
        is_unlabelled(labels, mark)


def test_looking_for_unknown_labels_takes_linear_time():
    """Steps of 100,000 classes squared would take hours, so there is no clock."""
    labels = np.arange(100_000).astype(str)
    assert LabelledRows.of(torch.zeros(len(labels), 1), labels).unknown(labels) == []
