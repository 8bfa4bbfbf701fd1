import numpy as np
import pytest

from handful.banks.tables import bank_of
from handful.errors import BankError


@pytest.mark.parametrize(
    ("labels", "given", "numbers", "names"),
    [
        ([7, 3, 7], None, [1, 0, 1], ("3", "7")),
        ([1, 0, 1], ["a", "b", "c"], [1, 0, 1], ("a", "b", "c")),
        (["b", "a", "b"], None, [1, 0, 1], ("a", "b")),
        (["b", "a", "b"], ["c", "b", "a"], [1, 2, 1], ("c", "b", "a")),
        (np.array([b"b", b"a", b"b"]), None, [1, 0, 1], ("a", "b")),
        ([1, 0, 1], ["same", "same"], [1, 0, 1], ("same", "same")),
        ([1, 0, 1], [7, np.int64(5)], [1, 0, 1], ("7", "5")),
    ],
)
def test_labels_of_any_kind_become_numbers_and_names(labels, given, numbers, names):
    bank = bank_of(np.zeros((3, 2)), labels, given, "it")
    assert bank.labels.tolist() == numbers
    assert bank.class_names == names


@pytest.mark.parametrize(
    ("labels", "given", "sentence"),
    [
        (["b", "a", "d"], ["a", "b"], "it: label 'd' is not among the 2 class names"),
        ([0, 1, 2], ["a", "b"], r"it: labels must lie in 0 … 1"),
        ([0.5, 1.0, 2.0], None, "it: labels must be one whole number"),
        (np.array(["a", 1, "b"], dtype=object), None, "it: labels must all be names or all be whole numbers"),
        ([0, 1], None, "it: labels must be one whole number for each of the 3 rows"),
        (["a", "b", "a"], ["a", "b", "a"], "it: 'a' is the name of more than one class"),
        ([0, 1, 1], [{"a": 1}, "b"], "it: class names must all be names"),
        ([b"\xff", b"a", b"a"], None, "it: labels must be text in UTF-8"),
        ([[1], [1, 2], [3]], None, "it: labels must be names or whole numbers"),
        (np.array("abc"), None, r"it: labels must be one for each row, got an array of shape \(\)"),
    ],
)
def test_impossible_labels_are_refused(labels, given, sentence):
    with pytest.raises(BankError, match=sentence):
        bank_of(np.zeros((3, 2)), labels, given, "it")
