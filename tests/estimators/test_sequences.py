"""Items of one class: what is known about one of them holds for all, and what contradicts itself is refused."""

import numpy as np
import pytest

from handful.errors import OptionError, TaskError
from handful.estimators.context import BatchContexts
from handful.estimators.sequences import allowed_for_all, given_to_all, sequences_of

CLASSES = np.array(["a", "b", "c"])


def test_items_without_a_value_stand_alone():
    names, sequence_of = sequences_of(["x", None, "x", float("nan"), "w"], 5)
    assert sequence_of.tolist() == [1, 2, 1, 3, 0]
    assert names[:2] == ["w", "x"]
    assert sequences_of([["n", 1], ["n", None], ["n", 1]], 3)[1].tolist() == [0, 1, 0]
    with pytest.raises(TaskError, match="sequence must have values of one kind"):
        sequences_of([1, "x", 1], 3)


def test_what_is_known_about_an_item_is_known_about_its_sequence():
    sequence_of = np.array([1, 0, 1, 2])
    allowed = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], bool)
    expected = [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert allowed_for_all(allowed, sequence_of).astype(int).tolist() == expected
    assert given_to_all(np.array([-1, -1, 2, -1]), 3, [0, 1, 2], sequence_of).tolist() == [2, -1, 2, -1]
    with pytest.raises(OptionError, match="given different labels, those of 'y'"):
        given_to_all(np.array([1, -1, 2, -1]), 3, ["x", "y", "z"], sequence_of)
    nameless = given_to_all(np.array([3, -1, 4, -1]), 3, ["x", "y", "z"], sequence_of)
    assert nameless.tolist() == [4, -1, 4, -1]


def test_the_first_sequence_that_contradicts_itself_is_named_and_the_others_are_counted():
    sequence, lists = ["s", "s", "t", "t", "u", "u"], [["a"], ["b"], ["a", "c"], ["c"], ["b"], ["c"]]
    with pytest.raises(OptionError, match="candidates leave no class for sequence 's', and for 1 more sequence;"):
        BatchContexts({"sequence": sequence, "candidates": lists}, CLASSES, 6)
    found = BatchContexts({"sequence": sequence[2:4], "candidates": lists[2:4]}, CLASSES, 2)
    assert found.allowed.tolist() == [[False, False, True]] * 2
    with pytest.raises(OptionError, match="prior and candidates leave no class for sequence 't'"):
        BatchContexts({"sequence": ["t", "t"], "candidates": [["a", "c"], ["b", "c"]], "prior": {"c": 0}}, CLASSES, 2)


def test_a_sequence_in_two_groups_is_refused_unless_the_group_is_part_of_it():
    sites, numbers = np.array(["marsh", "wood"]).repeat(4), np.tile([1, 1, 2, 3], 2)
    with pytest.raises(
        OptionError, match="sequence 1 has items in the groups 'marsh' and 'wood', and 2 more sequences"
    ):
        BatchContexts({"sequence": numbers}, CLASSES, 8, sites)
    both = list(map(list, zip(sites.tolist(), numbers.tolist(), strict=True)))
    assert BatchContexts({"sequence": both}, CLASSES, 8, sites).sequence_of.tolist() == [0, 0, 1, 2, 3, 3, 4, 5]
    assert BatchContexts({"sequence": numbers}, CLASSES, 8).sequence_of.tolist() == [0, 0, 1, 2] * 2


def test_some_items_and_classes_of_what_is_known():
    """Those that could be read: the same as if only they had been listed, and what their sequences knew stays."""
    known = {
        "sequence": ["s", "s", "t", "u"],
        "candidates": [["a", "c"], ["b", "c"], None, None],
        "prior": {"a": 2},
        "coarse": {"a": "x"},
        "pool": True,
        "order": [2, 2, 1, 3],
    }
    whole = BatchContexts(known, CLASSES, 4, ["g", "g", "h", "i"], np.array([-1, -1, 2, 0]))
    assert whole.of(range(4), range(3)) is whole
    some = whole.of([1, 3], [0, 2])
    assert (some.classes.tolist(), some.groups.tolist(), some.group_of.tolist()) == (["a", "c"], ["g", "i"], [0, 1])
    assert (some.allowed.tolist(), some.given.tolist()) == ([[False, True], [True, True]], [-1, 0])
    assert (some.coarse.tolist(), some.siblings.step_of.tolist()) == (["x", "c"], [0, 1])
    np.testing.assert_allclose(some.prior.shares, [[2 / 3, 1 / 3]] * 2)
    with pytest.raises(OptionError, match="candidates leave no class for row 0"):
        whole.of([0, 2, 3], [0, 1])
