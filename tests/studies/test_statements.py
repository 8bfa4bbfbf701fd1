"""The study of statements: what is true is true, and both are said together where they can be."""

import numpy as np
import pytest

import statements as study
from bank_data import rng_of


@pytest.fixture
def folder(tmp_path):
    """A bank of twenty classes."""
    rng = np.random.default_rng(0)
    place = tmp_path / "bank"
    place.mkdir()
    labels = np.arange(20).repeat(24)
    np.save(place / "features.npy", rng.normal(size=(20, 16))[labels] + 0.3 * rng.normal(size=(480, 16)))
    np.save(place / "labels.npy", labels)
    return place


@pytest.mark.parametrize("missing", [0, 2])
def test_what_is_said_is_true(folder, missing):
    one = study.batch(folder, missing, 0)
    said = study.true_statements(one, rng_of("test"))
    assert len(one.truth) == 64
    assert (~one.known).sum() == 8 * missing
    assert set(one.truth[one.known]) <= set(said["candidates"]["candidates"])
    assert all(one.truth[row] == label for row, label in said["10 labels"]["given"].items())
    assert said["share"]["expect_unknown"] == pytest.approx(missing / 8)
    pairs = said["sequence"]["sequence"]
    assert all(len(set(one.truth[pairs == number])) == 1 for number in set(pairs.tolist()))
    assert np.bincount(pairs).max() == 2
    if missing:
        assert not one.known[list(said["7 none"]["given"])].any()


def test_statements_are_said_together_unless_they_are_about_the_same(folder):
    said = study.true_statements(study.batch(folder, 2, 0), rng_of("test"))
    both = study.together(said["10 labels"], said["3 none"])
    assert len(both["given"]) == 13
    assert study.together(said["candidates"], said["candidates, 20 more"]) is None
    assert set(study.together(said["prior"], said["sequence"])) == {"prior", "sequence"}


def test_changes_are_those_of_items_that_nobody_labelled(folder):
    found = study.measured(folder, 2, 0)
    labels, known, unknown = found["7 none"]
    assert abs(labels) <= 100
    assert known is not None
    assert unknown is not None
    assert any(" + " in name for name in found)
    assert any(name.startswith("false") for name in found)


def test_what_the_page_says_is_so():
    assert not study.page().behind()
