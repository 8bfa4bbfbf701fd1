"""Sensitivity: every number was changed, and one that changes nothing says what it acts on."""

import importlib
import json

import pytest

study = importlib.import_module("sensitivity")


@pytest.fixture(scope="module")
def found():
    return json.loads(study.RESULTS.read_text(encoding="utf-8"))


def test_every_number_was_changed_or_is_named_as_not_measured(found):
    missing = ", ".join(f"`{number}`" for number in study.NUMBERS if number not in found)
    assert f"Not measured yet: {missing}." in study.page().limits
    assert [number for number in found if number not in (*study.NUMBERS, "as it is", study.BATCHES)] == []


def test_a_number_that_changes_nothing_says_what_it_acts_on(found):
    unmoved = {number for number in study.NUMBERS if number in found and study.changes_nothing(found[number])}
    elsewhere = {number for number, about in study.NUMBERS.items() if about.metadata["acts_on"] != "any batch"}
    elsewhere &= found.keys()
    assert unmoved == elsewhere


def test_nothing_changes_if_neither_a_probability_nor_a_figure_does():
    same = dict.fromkeys(study.FIGURES, 0.0) | {study.MOVED: 1e-7}
    assert study.changes_nothing({"0.5": same, "2.0": same})
    assert not study.changes_nothing({"0.5": same, "2.0": same | {study.MOVED: 1e-3}})
    assert not study.changes_nothing({"0.5": same | {"open": 1.0}, "2.0": same})
