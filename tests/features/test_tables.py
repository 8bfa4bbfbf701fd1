import numpy as np
import pytest

from handful.errors import BankError
from handful.features.tables import bank_of, find_column, opened_archive


def test_the_likeliest_column_is_found_whatever_its_case():
    assert find_column(["id", "Label", "y"], None, ("labels", "label", "y"), "labels", "it") == "Label"
    assert find_column(["id", "Label", "y"], "y", ("labels", "label"), "labels", "it") == "y"


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(BankError, match="it has no column 'z' for the labels; it has id, y"):
        find_column(["id", "y"], "z", (), "labels", "it")
    with pytest.raises(BankError, match="it has no column that looks like labels; say which it is, it has id"):
        find_column(["id"], None, ("y",), "labels", "it")


def test_an_archive_cut_short_or_with_pickles_in_it_is_refused(tmp_path):
    whole, cut, pickled = (tmp_path / f"{name}.npz" for name in ("whole", "cut", "pickled"))
    np.savez(whole, x=np.arange(100))
    cut.write_bytes(whole.read_bytes()[:200])
    np.savez(pickled, x=np.array([{}], dtype=object))
    with opened_archive(whole) as archive:
        assert archive["x"].sum() == 4950
    for file in (cut, pickled):
        with pytest.raises(BankError, match="cannot be read as"), opened_archive(file) as archive:
            archive["x"]


@pytest.mark.parametrize(
    ("labels", "given", "numbers", "names"),
    [
        ([7, 3, 7], None, [1, 0, 1], ("3", "7")),
        ([1, 0, 1], ["a", "b", "c"], [1, 0, 1], ("a", "b", "c")),
        (["b", "a", "b"], None, [1, 0, 1], ("a", "b")),
        (["b", "a", "b"], ["c", "b", "a"], [1, 2, 1], ("c", "b", "a")),
        (np.array([b"b", b"a", b"b"]), None, [1, 0, 1], ("a", "b")),
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
        (np.array(["a", None, "b"], dtype=object), None, "it: labels must all be names or all be whole numbers"),
        ([0, 1], None, "it: labels must be one whole number for each of the 3 rows"),
    ],
)
def test_impossible_labels_are_refused(labels, given, sentence):
    with pytest.raises(BankError, match=sentence):
        bank_of(np.zeros((3, 2)), labels, given, "it")
