"""Classes of a catalogue get other names, become one, or are given up, while a batch is reviewed."""

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.errors import LabelError, OptionError
from handful.items import bring, import_labelled
from handful.review.opening import open_batch
from handful.review.server import Page
from tests.worlds import Clouds

DIM = 12


@pytest.fixture
def file(tmp_path):
    """A catalogue with examples of four classes, and a batch of two of them."""
    rng = np.random.default_rng(0)
    clouds = Clouds(4, DIM, rng, apart=2)
    names = np.array(["foks", "owl", "elk", "tit"])
    with CatalogueFile.open(tmp_path / "birds.handful") as made:
        codes = np.repeat(np.arange(4), 5)
        import_labelled(made, (clouds.around(codes), names[codes]), "examples")
        bring(made, "monday", clouds.around(np.repeat([0, 1], 8)))
        yield made


def labels(review):
    return set(review.said_by_model())


def test_a_class_of_the_examples_is_renamed_in_every_batch_and_taking_that_back_is_exact(file):
    review = open_batch(file, "monday", person="Ada")
    before = Page(review, "monday").whole()
    assert labels(review) == {"foks", "owl"}
    review.merge(review.number, "foks", "fox")
    assert labels(review) == {"fox", "owl"}
    assert set(review.session.classes) == {"fox", "owl", "elk", "tit"}
    assert set(file.said.classes) == {"fox", "owl", "elk", "tit"}
    assert review.changed_since(review.first, [], {"foks": "fox"}) == []
    again = open_batch(file, "monday")
    assert labels(again) == labels(review)
    review.undo(review.number)
    after = Page(review, "monday").whole()
    assert {name: after[name] for name in ("label", "classes", "certainty")} == {
        name: before[name] for name in ("label", "classes", "certainty")
    }


def test_two_classes_become_one_and_one_is_given_up(file):
    review = open_batch(file, "monday", person="Ada")
    review.decide(review.number, [0], "class", "foks")
    review.merge(review.number, "foks", "elk")
    assert labels(review) == {"elk", "owl"}
    assert review.session.said.given[0] == "elk"
    review.remove(review.number, "owl")
    assert "owl" not in review.session.classes
    assert "owl" not in labels(review)
    review.merge(review.number, "tit", "elk")
    with pytest.raises(OptionError, match="needs one class"):
        review.remove(review.number, "elk")
    assert set(review.session.classes) == {"elk"}
    review.undo(review.number)
    review.undo(review.number)
    assert set(review.session.classes) == {"elk", "owl", "tit"}


def test_a_name_that_nobody_gave_is_refused(file):
    review = open_batch(file, "monday")
    number = review.number
    with pytest.raises(LabelError, match="lynx"):
        review.remove(number, "lynx")
    with pytest.raises(OptionError, match="one class already"):
        review.merge(number, "owl", "owl")
    assert review.number == number


def test_any_answer_can_be_taken_back_and_what_followed_stays(file):
    review = open_batch(file, "monday", person="Ada")
    for item, label in ((0, "elk"), (1, "owl"), (2, "tit")):
        review.decide(review.number, [item], "class", label)
    page = Page(review, "monday")
    first = page.history()[-1]
    assert (first["kind"], first["label"], first["items"], first["person"]) == ("named", "elk", [0], "Ada")
    assert review.take_back(review.number, first["event"]) == (0,)
    assert review.session.said.given == {1: "owl", 2: "tit"}
    assert [one["label"] for one in page.history()] == ["tit", "owl"]
    review.merge(review.number, "tit", "blue tit")
    assert [one["label"] for one in page.history()] == ["tit", "blue tit", "owl"]
    assert page.history()[0]["into"] == "blue tit"
