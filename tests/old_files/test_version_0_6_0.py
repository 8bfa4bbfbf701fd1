"""A catalogue that was made on Python 3.11 opens on every Python: `tools/on_python.sh` runs this on others."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import GIVEN
from handful.items import vectors_of
from handful.review.opening import open_batch

KEPT = Path(__file__).parent / "v0_6_0.handful"
SAID = {1: "fox", 2: "owl", 3: "fox", 4: "Käuzchen", 5: "fox", 8: None}


@pytest.fixture
def file(tmp_path):
    with CatalogueFile.open(shutil.copy(KEPT, tmp_path)) as found:
        yield found


def test_it_has_all_that_was_said(file):
    assert {item: one.label for item, one in file.said.answers.items()} == SAID
    assert [event.person for event in file.history.events].count("ada") == 4
    asked = next(event for event in file.history.events if event.about.get("label") == "foks")
    assert asked.items == (EventItem(5, None, True, "owl", 0.125), EventItem(6, None, False, "owl", 0.25, 0.5, 2.0))
    assert file.said.places["monday"] == {5 + row: f"row {row}" for row in range(5)}
    assert file.cached("a cache") == b"0123"


def test_it_has_its_vectors(file):
    given, kept = (
        vectors_of(file, range(1, 10), encoder) for encoder in (GIVEN, next(one for one in file.encoders if one.name))
    )
    drawn = np.random.default_rng(60).normal(size=(4, 6)).astype(np.float32)
    np.testing.assert_array_equal(given[:4], drawn)
    np.testing.assert_allclose(kept, given, atol=np.abs(given).max() / 2**16)


def test_its_review_goes_on(file):
    review = open_batch(file, "monday", person="eve")
    assert {item: one.label for item, one in review.decisions.items()} == {0: "fox", 3: None}
    review.decide(review.number, [1], "class", "owl")
    file.close()
    with CatalogueFile.open(file.path) as again:
        assert again.said.answers[6].label == "owl"
