"""Examples of the catalogue on the page: each picture is stored once, however often it is shown."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from handful.classification import Shown
from handful.classification.examples import SMALL, CatalogueExamples, shortened, thumbnail
from handful.extraction.items import list_items
from tests.items_at_hand import image_folder

CLASSES = np.array(["ant", "ant", "<bee>", "<bee>"])


@pytest.fixture
def pictures(tmp_path) -> Shown:
    items = list_items(image_folder(tmp_path / "photos", 2, 2))
    return Shown(items.source, items.names, CLASSES, {7: 1})


def test_a_picture_is_stored_once_and_only_if_it_is_shown(pictures):
    examples = CatalogueExamples(pictures)
    assert examples.style() == ""
    first = examples.of_class("ant", 1)
    assert first == examples.of_class("ant", 1) == examples.of_item(3, "ant")
    assert re.findall(r"class='(x\d+)'", first) == ["x0"]
    style = examples.style()
    assert style.count("data:image/jpeg;base64,") == style.count(".x0 ") == 1
    assert "aria-label='" in first


def test_an_item_has_the_nearest_example_else_the_first_of_its_label(pictures):
    examples = CatalogueExamples(pictures)
    assert "'x1'" in examples.of_item(7, "ant")
    assert "'x2'" in examples.of_item(8, "<bee>")
    assert examples.of_item(8, "cat") == ""


def test_sentences_are_escaped_and_at_most_two():
    shown = Shown(("an ant", "a & b", "a <bee>", "c" * 300), ("1", "2", "3", "4"), CLASSES, {0: 1})
    examples = CatalogueExamples(shown)
    assert examples.of_item(0, "ant").count("<li>") == 1
    assert "a &amp; b" in examples.of_item(0, "ant")
    piece = examples.of_class("<bee>", 6)
    assert "a &lt;bee&gt;" in piece
    assert "<bee>" not in piece
    assert "c" * 280 + "…</li>" in piece
    assert examples.style() == ""


def test_without_examples_nothing_is_shown():
    examples = CatalogueExamples(None)
    assert examples.of_class("ant", 2) == examples.of_item(0, "ant") == examples.style() == ""


def test_a_picture_that_can_no_longer_be_read_is_left_out(tmp_path):
    folder = image_folder(tmp_path / "photos", 2, 2)
    items = list_items(folder)
    examples = CatalogueExamples(Shown(items.source, items.names, CLASSES))
    examples.of_class("ant", 2)
    (folder / items.names[0]).write_bytes(b"torn")
    assert re.findall(r"\.x(\d+) ", examples.style()) == ["1"]


def test_thumbnails_are_small():
    stream = io.BytesIO()
    Image.new("RGB", (600, 300), (10, 200, 30)).save(stream, "PNG")
    address = thumbnail(stream.getvalue(), SMALL)
    assert address.startswith("data:image/jpeg;base64,")
    assert len(address) < 2000
    assert thumbnail(b"no picture", SMALL) is None


def test_long_texts_are_cut():
    assert shortened("a" * 280) == "a" * 280
    assert shortened("a" * 281) == "a" * 280 + "…"
