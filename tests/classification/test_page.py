"""The page about a batch: complete in itself, safe against what items are called, the doubtful first."""

import re
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import Answers, Batch, Classified, Shown, Unknown
from handful.classification import page as batch_page
from handful.classification.page import write_batch_page
from handful.errors import CollapseWarning
from handful.estimators import Diagnostic, Proposal
from handful.extraction.extract import Skipped
from handful.extraction.items import list_items
from tests.items_at_hand import image_folder

NAMES = ("ant & co", "<b>bee</b>", "cat", "dog")


def classified(probabilities, contents=None, skipped=(), diagnostics=(), names=None) -> Classified:
    table = np.asarray(probabilities)
    named = tuple(names or (f"item {i}" for i in range(len(table))))
    return Classified(
        batch=Batch(range(len(table)), named, contents, tuple(skipped)),
        answers=Answers.of(table),
        expected_counts=table.sum(0),
        presence=1 - np.prod(1 - table, axis=0),
        joint_weight=0.9,
        diagnostics=tuple(diagnostics),
        class_names=NAMES,
        n_examples=20,
        backbone="minilm, weights 12ab",
        streamed=False,
    )


TABLE = [[0.9, 0.1, 0, 0], [0.999, 0.001, 0, 0], [0.45, 0.55, 0, 0], [0.05, 0.75, 0.2, 0]]


def written(tmp_path, found) -> str:
    write_batch_page(found, tmp_path / "page.html", title="Tuesday <morning>")
    return (tmp_path / "page.html").read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_sentences_the_least_certain_first(tmp_path):
    texts = ("first words", "second & words", "third <i>words</i>", "w" * 500)
    page = written(tmp_path, classified(TABLE, texts))
    assert "<h1>Tuesday &lt;morning&gt;: 2 classes present</h1>" in page
    assert "4 items, labelled jointly, with a catalogue of 4 classes and 20 examples; features of minilm." in page
    assert "ant &amp; co" in page
    assert "<b>bee</b>" not in page.replace("<b>&lt;b&gt;bee&lt;/b&gt;</b>", "")
    below = page.split("the least certain first")[1]
    places = [below.index(text) for text in ("third &lt;i&gt;", "w" * 280 + "…", "first words", "second &amp; words")]
    assert places == sorted(places)
    assert "or ant &amp; co, 45 %" in below
    assert "1 other class may be there" in page
    assert "cat (20 %)" in page
    assert not re.search(r"(src|href)\s*=", page)


def test_vectors_alone_are_shown_by_name(tmp_path):
    page = written(tmp_path, classified(TABLE, names=["a7", "b8", "c9", "d<0"]))
    assert "d&lt;0" in page
    assert "d<0" not in page


def test_pictures_are_inside_the_page(tmp_path):
    source = list_items(image_folder(tmp_path / "images", 1, 4), labelled=False).source
    page = written(tmp_path, classified(TABLE, source))
    addresses = re.findall(r"src='([^']*)'", page)
    assert len(addresses) == 8  # each item once in the list, and as an example of its class
    assert all(address.startswith("data:image/jpeg;base64,") for address in addresses)
    assert "alt='item 2'" in page


def test_warnings_and_skipped_items_stand_on_top(tmp_path):
    diagnostic = Diagnostic("collapsed", "All became one < class.", 0.1, 0.3, CollapseWarning)
    page = written(tmp_path, classified(TABLE, skipped=[Skipped(3, "x.png", "torn <up>")], diagnostics=[diagnostic]))
    top = page.split("<h2>Classes present")[0]
    assert "All became one &lt; class." in top
    assert "1 item could not be read and got no label" in top
    assert "x.png: torn &lt;up&gt;" in top


def test_long_batches_are_cut_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_page, "MOST_ITEMS", 3)
    monkeypatch.setattr(batch_page, "MOST_CLASSES", 1)
    page = written(tmp_path, classified(TABLE))
    assert "And 1 more item, in the table of predictions." in page
    assert "And 1 more class, in the table of predictions." in page
    assert page.count("class='bar'") == 1 + 3 + 0


@pytest.mark.parametrize("table", [TABLE, [[1.0, 0.0, 0.0, 0.0]], [[0.3, 0.3, 0.2, 0.2]] * 3])
def test_every_batch_has_a_page(tmp_path, table):
    found = classified(table)
    assert "</html>" in written(tmp_path, replace(found, backbone=""))


def test_a_streamed_batch_says_so(tmp_path):
    assert "The batch was streamed." in written(tmp_path, replace(classified(TABLE), streamed=True))
    assert "The batch was streamed." not in written(tmp_path, classified(TABLE))


def test_items_labelled_alone_are_not_called_joint(tmp_path):
    page = written(tmp_path, replace(classified(TABLE), joint_weight=0.0))
    assert "4 items, each labelled alone, with a catalogue of 4 classes" in page
    assert "jointly" not in page


def test_a_class_is_present_by_its_chance_and_not_by_its_count(tmp_path):
    page = written(tmp_path, replace(classified(TABLE), presence=np.array([0.87, 0.3, 0.6, 0.01])))
    assert "present with probability 87 %" in page
    shown = page.split("<h2>Classes present")[1].split("<details>")[0]
    assert "ant &amp; co" in shown
    assert "cat" in shown
    assert "bee" not in shown
    assert "1 other class may be there" in page
    assert "&lt;b&gt;bee&lt;/b&gt; (30 %)" in page


def test_many_possible_classes_are_cut_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_page, "MOST_POSSIBLE", 1)
    page = written(tmp_path, classified([[0.6, 0.15, 0.15, 0.1]]))
    assert "3 other classes may be there" in page
    assert ", and 2 more classes</p>" in page


def unknown(rejected, *groups) -> Unknown:
    proposals = tuple(Proposal(np.array(items), 0.93, "<b>bee</b>", 1.0) for items in groups)
    return Unknown(np.where(rejected, 0.97, 0.02), np.array(rejected), (0.25, 0.75), proposals)


def test_unknown_sentences_stand_beside_examples_of_the_nearest_class(tmp_path):
    texts = ("first words", "second & words", "third <i>words</i>", "fourth words")
    shown = Shown(("an ant", "a <bee>", "a cat"), ("1", "2", "3"), np.array(["ant & co", "<b>bee</b>", "cat"]))
    found = replace(classified(TABLE, texts), unknown=unknown([True, False, True, True], [2, 3]), shown=shown)
    page = written(tmp_path, found)
    section = page.split("<h2>None of these classes</h2>")[1].split("<h2>")[0]
    assert "3 items look like none of your 4 classes; 2 of them fall into 1 group." in section
    assert "Between 25% and 75% of the items belong to no class" in section
    assert "New group 1</b><span>2 items" in section
    assert "third &lt;i&gt;words" in section
    assert "nearest class: <b>&lt;b&gt;bee&lt;/b&gt;</b>" in section
    assert "a &lt;bee&gt;" in section
    groups, strays = section.split("<h3>")
    assert "an ant" not in groups
    assert "1 item in no group" in strays
    assert "an ant" in strays
    assert "first words" in section
    assert "second &amp; words" not in section
    below = page.split("the least certain first")[1]
    assert below.count("none of the classes, 97 %") == 3


def test_unknown_pictures_stand_beside_pictures(tmp_path):
    items = list_items(image_folder(tmp_path / "photos", 2, 2))
    shown = Shown(items.source, items.names, np.array(["<b>bee</b>", "cat", "<b>bee</b>", "cat"]))
    found = replace(
        classified(TABLE, items.source, names=items.names),
        unknown=unknown([True, True, False, True], [0, 1]),
        shown=shown,
    )
    page = written(tmp_path, found)
    section = page.split("<h2>None of these classes</h2>")[1].split("<h2>")[0]
    assert section.count("<img src='data:image/jpeg") == 2 + 1
    groups, strays = section.split("<h3>")
    assert re.findall(r"<i class='(x\d)'", groups) == ["x0", "x2"]
    assert "<i class='x0'" in strays


def test_classes_and_items_stand_beside_examples_that_are_stored_once(tmp_path):
    items = list_items(image_folder(tmp_path / "photos", 2, 3))
    classes = np.array(["ant & co", "<b>bee</b>", "ant & co", "ant & co", "<b>bee</b>", "cat"])
    shown = Shown(items.source, items.names, classes, {0: 3, 2: 4})
    page = written(tmp_path, replace(classified(TABLE, items.source), shown=shown))
    head, body = page.split("<body>")
    of_class = {
        card.split("</b><span>")[0]: re.findall(r"<i class='(x\d)'", card)
        for card in body.split("<ul class='classes'>")[1].split("</ul>")[0].split("<li><div class='head'><b>")[1:]
    }
    assert of_class == {"ant &amp; co": ["x0", "x2"], "&lt;b&gt;bee&lt;/b&gt;": ["x1", "x4"]}
    # Items 2, 3, 0, 1: the nearest example where that is known, else the first.
    assert re.findall(r"<i class='(x\d)'", body.split("the least certain first")[1]) == ["x4", "x1", "x3", "x0"]
    assert sorted(re.findall(r"\.(x\d) \{ background-image: url\(data:image/jpeg", head)) == [
        "x0",
        "x1",
        "x2",
        "x3",
        "x4",
    ]
    assert "then examples of the catalogue" in body
    assert not re.search(r"(src|href)\s*=\s*'(?!data:)", page)


def test_without_unknown_items_there_is_no_section(tmp_path):
    for found in (None, unknown([False] * 4)):
        page = written(tmp_path, replace(classified(TABLE), unknown=found))
        assert "None of these classes" not in page
        assert "none of the classes" not in page


def test_vectors_of_unknown_items_are_named(tmp_path):
    found = replace(classified(TABLE), unknown=unknown([False, True, True, True], [1, 2, 3]))
    section = written(tmp_path, found).split("<h2>None of these classes</h2>")[1].split("<h2>")[0]
    assert "item 1" in section
    assert "nearest class" in section
