"""Examples of the catalogue on the page: those that help an eye come first, and pictures are small."""

import base64
import io

import numpy as np
from PIL import Image

from handful.classification import Shown, page_data
from handful.classification.page_data import SMALL, chosen_examples, pictures, rounded, shortened, thumbnail
from handful.extraction.items import list_items
from tests.items_at_hand import image_folder

NAMES = ("ant", "bee", "cat")
SHOWN = Shown(tuple("abcdefghijk"), tuple("abcdefghijk"), np.array(["ant"] * 8 + ["bee"] * 2 + ["cat"]))


def test_nearest_ones_then_classes_that_occur_then_others(monkeypatch):
    assert chosen_examples(SHOWN, NAMES, {1}, [3]) == [3, 8, 9, 0, 10]
    assert chosen_examples(SHOWN, NAMES, {0}, [3, 7]) == [3, 7, 0, 1, 2, 4, 5, 8, 10]
    monkeypatch.setattr(page_data, "MOST_EXAMPLES", 3)
    assert chosen_examples(SHOWN, NAMES, {1}, [3]) == [3, 8, 9]


def test_a_class_without_examples_shows_none():
    assert chosen_examples(SHOWN, ("ant", "named by a person"), {1}, []) == [0]


def test_a_picture_that_can_no_longer_be_read_is_left_out(tmp_path):
    folder = image_folder(tmp_path / "photos", 2, 2)
    items = list_items(folder)
    (folder / items.names[0]).write_bytes(b"torn")
    assert [picture is None for picture in pictures(items.source, [0, 1, 3], SMALL)] == [True, False, False]


def test_thumbnails_are_small():
    stream = io.BytesIO()
    Image.new("RGB", (600, 300), (10, 200, 30)).save(stream, "PNG")
    small = thumbnail(stream.getvalue(), SMALL)
    assert Image.open(io.BytesIO(base64.b64decode(small))).size == (SMALL, SMALL // 2)
    assert len(small) < 2000
    assert thumbnail(b"no picture", SMALL) is None


def test_long_texts_are_cut_and_numbers_rounded():
    assert shortened("a" * 600) == "a" * 600
    assert shortened("a" * 601) == "a" * 600 + "…"
    assert rounded(np.array([1 / 3, np.float32(0.1)])) == [0.3333, 0.1]
