"""Checks of features and labels: numbers in one of two types, and sentences about what does not fit."""

import numpy as np
import pytest

from handful.errors import LabelError, TaskError
from handful.estimators import BatchClassifier
from handful.estimators.checks import checked_features, checked_labels, checked_rows, rows_of_names
from tests.optional import optional

torch = optional("torch")


def fitted():
    return BatchClassifier().fit(np.eye(3), ["ant", "bee", "cat"])


@pytest.mark.parametrize(
    ("given", "expected"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), (bool, "f8"), (">f4", "f8")]
)
def test_features_have_single_or_double_precision(given, expected):
    found = checked_features(fitted(), np.eye(3).astype(given), reset=False)
    assert found.dtype == expected
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.eye(3))


def test_features_are_noted_once_and_compared_later():
    classifier = BatchClassifier()
    checked_features(classifier, np.eye(3), reset=True)
    assert classifier.n_features_in_ == 3
    with pytest.raises(TaskError, match=r"4 features.*3 features"):
        checked_features(classifier, np.eye(4), reset=False)


def test_examples_are_copied_and_batches_are_not():
    X = np.eye(3)
    assert checked_features(fitted(), X, reset=False) is X
    rows, _ = checked_rows(fitted(), X, np.array([0, 1, 2]), reset=False)
    assert not np.shares_memory(rows, X)
    with pytest.raises(LabelError, match="inconsistent numbers of samples"):
        checked_rows(fitted(), X, np.array([0, 1]), reset=False)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "BatchClassifier requires y to be passed"),
        ([0.5, 0.7], "continuous"),
        ([1.0, np.nan], "NaN"),
        ([[1, 2], [3, 4]], "1d array"),
    ],
)
def test_labels_that_are_none_are_refused(y, said):
    with pytest.raises(LabelError, match=said):
        checked_labels(fitted(), y)


def test_labels_keep_their_values():
    assert checked_labels(fitted(), torch.tensor([3, 1])).tolist() == [3, 1]
    assert checked_labels(fitted(), ["b", "a"]).tolist() == ["b", "a"]
    assert checked_labels(fitted(), np.array([2.0, 5.0])).tolist() == [2.0, 5.0]


@pytest.mark.parametrize("make", [list, np.array, "Series", "frame", tuple], ids=str)
def test_texts_in_the_place_of_vectors_point_to_label(make):
    texts = ["hello", "bye"]
    if make == "Series":
        texts = pytest.importorskip("pandas").Series(texts)
    elif make == "frame":
        texts = pytest.importorskip("pandas").DataFrame({"text": texts})
    else:
        texts = make(texts)
    classifier = BatchClassifier().fit(np.eye(2), ["a", "b"])
    with pytest.raises(TaskError, match=r"X must have vectors, one per row, got text such as 'hello'; handful.label"):
        classifier.predict(texts)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(wrong):
    X = np.ones((5, 3), np.float32)
    X[[2, 4], 1] = wrong
    with pytest.raises(
        TaskError, match=r"X contains (NaN|infinity \(inf\)) in row 2 and 1 more; drop these rows"
    ) as raised:
        BatchClassifier().fit(X, list("aabbc"))
    assert "HistGradient" not in str(raised.value)
    large = np.full((4, 2), 1e38, np.float32) * np.array([[1], [1], [-1], [1]], np.float32)
    assert len(BatchClassifier().fit(large, list("aabb")).classes_) == 2


def test_a_vector_or_several_of_each_class():
    rows, labels = rows_of_names({4: torch.ones(3), 2: np.eye(3)[:2].tolist()}, 3)
    assert labels.tolist() == [4, 2, 2]
    assert rows.tolist() == [[1, 1, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        (["cat"], LabelError, "map labels to vectors"),
        ({}, LabelError, "at least one class"),
        ({"cat": "cat"}, TaskError, "embed texts first"),
        ({"cat": [[[1.0]]]}, TaskError, "'cat' must be a vector"),
        ({"cat": []}, TaskError, "'cat' must be a vector"),
        ({"cat": [1.0, 2.0], "dog": [1.0]}, TaskError, "'dog' has 1 numbers, and 2 are expected"),
        ({"cat": [1.0, np.nan]}, TaskError, "NaN"),
        ({"cat": [0.0, 0.0]}, TaskError, "zeros"),
    ],
)
def test_what_is_refused(names, error, said):
    with pytest.raises(error, match=said):
        rows_of_names(names, None)
