"""Portions: answers by rows, whatever the order in which groups were labelled, and read again by segments."""

import numpy as np
import pytest

from handful.many import portions
from handful.many.portions import Answered, Portion
from tests.many_at_hand import world


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Two portions with rows in turn, in segments of 64 rows."""
    monkeypatch.setattr(portions, "SEGMENT_ROWS", 64)
    given = world(20)
    groups = np.unique(given.groups, return_inverse=True)[1]
    files = []
    for odd in range(2):
        chosen = np.flatnonzero(groups % 2 == odd)
        portion = Portion()
        catalogue = given.classifier.catalogue_
        portion.label(catalogue, given.vectors[chosen], groups[chosen] // 2, chosen)
        files.append(tmp_path / f"{odd}.safetensors")
        portion.write(files[-1], "")
    return given, groups, Answered(files)


def test_segments_hold_every_row_once(answered):
    given, groups, answers = answered
    n_segments = -(-len(groups) // 64)
    tables = [answers.segment(number) for number in range(n_segments)]
    rows = np.concatenate([table["item"]["row"] for table in tables])
    np.testing.assert_array_equal(rows, np.arange(len(groups)))
    found = given.classifier.infer(given.vectors, groups=groups)
    codes = np.concatenate([table["item"]["code"] for table in tables])
    np.testing.assert_array_equal(given.classifier.classes_[codes], found.labels)
    firsts = np.concatenate([table["group"]["row"] for table in tables])
    np.testing.assert_array_equal(firsts, np.sort(np.unique(groups, return_index=True)[1]))
    np.testing.assert_array_equal(
        np.concatenate([table["group"]["items"] for table in tables]), np.bincount(groups)[groups[firsts]]
    )


def test_classes_are_listed_if_they_may_be_present(answered):
    given, groups, answers = answered
    found = given.classifier.infer(given.vectors, groups=groups)
    tables = [answers.segment(number)["class"] for number in range(-(-len(groups) // 64))]
    listed = {
        (int(groups[row]), int(code))
        for table in tables
        for row, code in zip(table["row"].tolist(), table["code"].tolist(), strict=True)
    }
    wanted = found.presence >= portions.LEAST_LISTED
    wanted[np.arange(len(wanted)), found.expected_counts.argmax(1)] = True
    assert listed == {*zip(*(place.tolist() for place in np.nonzero(wanted)), strict=True)}
