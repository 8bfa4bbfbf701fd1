"""Labels have names: events know names, and a catalogue in memory may have numbers, dates or truth values."""

import numpy as np
import pytest

from handful.errors import LabelError
from handful.session.labels import LabelNames


@pytest.mark.parametrize(
    ("classes", "name", "label"),
    [
        (["fox", "owl"], "fox", "fox"),
        (["fox", "owl"], "elk", "elk"),
        ([3, 7], "7", 7),
        ([3, 7], "12", 12),
        ([0.0, 1.0], "2.0", 2.0),
        ([True, False], "True", True),
        (np.array(["2026-01-01"], "M8[D]"), "2027-01-01", np.datetime64("2027-01-01")),
        ([], "anything", "anything"),
    ],
)
def test_a_name_stands_for_a_label_of_the_kind_of_the_classes(classes, name, label):
    names = LabelNames(np.asarray(classes))
    assert names.label(name) == label
    assert names.label(names.name(label)) == label


@pytest.mark.parametrize(
    ("classes", "name", "said"),
    [
        ([True, False], "perhaps", "no third one"),
        ([3, 7], "fox", "the classes are numbers"),
        ([3, 7], "07", "is the class '7'"),
        ([3, 7], "012", "write '12'"),
        ([0.0, 1.0], "0.5", "whole numbers"),
        (np.array(["2026-01-01"], "M8[D]"), "soon", "the classes are dates"),
    ],
)
def test_a_name_that_fit_could_not_take_is_refused(classes, name, said):
    names = LabelNames(np.asarray(classes))
    with pytest.raises(LabelError, match=said):
        names.label(name)


def test_a_label_that_was_said_is_remembered_by_its_name():
    names = LabelNames(np.zeros(0, object))
    assert (names.name(7), names.label("7")) == ("7", 7)


def test_labels_of_one_name_are_told():
    assert LabelNames(np.array([1, 2])).are_distinct
    assert not LabelNames(np.array([1, "1"], dtype=object)).are_distinct
