"""The page about a batch: complete in itself, and safe against what items are called."""

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from handful.classification import Answers, Batch, Classified, Unknown
from handful.classification.page import write_batch_page
from handful.errors import CollapseWarning
from handful.estimators import Diagnostic, Proposal
from handful.extraction.extract import Skipped

NAMES = ("ant & co", "<b>bee</b>", "cat", "dog")


def classified(probabilities, contents=None, skipped=(), diagnostics=(), names=None) -> Classified:
    table = np.asarray(probabilities)
    named = tuple(names or (f"item {i}" for i in range(len(table))))
    return Classified(
        batch=Batch(range(len(table)), named, contents, tuple(skipped), fingerprint="12ab"),
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


def unknown(rejected, *groups) -> Unknown:
    proposals = tuple(Proposal(np.array(items), 0.93, "<b>bee</b>", 1.0) for items in groups)
    return Unknown(np.where(rejected, 0.97, 0.02), np.array(rejected), (0.25, 0.75), proposals)


TABLE = [[0.9, 0.1, 0, 0], [0.999, 0.001, 0, 0], [0.45, 0.55, 0, 0], [0.05, 0.75, 0.2, 0]]


def written(tmp_path, found) -> str:
    write_batch_page(found, tmp_path / "deep" / "page.html", title="Tuesday <morning>")
    return (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")


def top_of(page: str) -> str:
    return page.split("<body>")[1].split("<noscript>")[0]


def test_what_the_batch_is_stands_on_top(tmp_path):
    top = top_of(written(tmp_path, classified(TABLE)))
    assert "<h1>Tuesday &lt;morning&gt;: 2 classes present</h1>" in top
    assert "4 items, labelled jointly, with a catalogue of 4 classes and 20 examples; features of minilm." in top


def test_nothing_outside_the_page_and_no_markup_from_names(tmp_path):
    hostile = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"&", "\u2028 🦊 שלום")
    page = written(tmp_path, classified(TABLE, hostile, names=hostile))
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert not re.search(r"(src|href)\s*=\s*['\"]?http|url\(", page)
    data = json.loads(page.split("id='data'>")[1].split("</script>")[0])
    assert tuple(data["texts"]) == tuple(data["names"]) == hostile


def test_a_browser_may_run_the_program_and_nothing_else(tmp_path):
    page = written(tmp_path, classified(TABLE))
    program = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_warnings_and_skipped_items_stand_on_top(tmp_path):
    diagnostic = Diagnostic("collapsed", "All became one < class.", 0.1, 0.3, CollapseWarning)
    found = classified(TABLE, skipped=[Skipped(3, "x.png", "torn <up>")], diagnostics=[diagnostic])
    top = top_of(written(tmp_path, found))
    assert "All became one &lt; class." in top
    assert "1 item could not be read and got no label" in top
    assert "x.png: torn &lt;up&gt;" in top


@pytest.mark.parametrize("table", [TABLE, [[1.0, 0.0, 0.0, 0.0]], [[0.3, 0.3, 0.2, 0.2]] * 3])
def test_every_batch_has_a_page(tmp_path, table):
    assert "</html>" in written(tmp_path, replace(classified(table), backbone=""))


def test_how_the_batch_was_labelled_is_said(tmp_path):
    assert "The batch was streamed." in written(tmp_path, replace(classified(TABLE), streamed=True))
    page = written(tmp_path, replace(classified(TABLE), joint_weight=0.0))
    assert "The batch was streamed." not in page
    assert "4 items, each labelled alone, with a catalogue of 4 classes" in page
    assert "jointly" not in top_of(page)


def test_items_like_none_of_the_classes_are_counted_on_top(tmp_path):
    found = replace(classified(TABLE), unknown=unknown([True, False, True, True], [2, 3]))
    top = top_of(written(tmp_path, found))
    assert "3 items look like none of your 4 classes; 2 of them fall into 1 group." in top
    assert "Between 25% and 75% of the items belong to no class" in top
    for none in (None, unknown([False] * 4)):
        assert "none of your" not in written(tmp_path, replace(classified(TABLE), unknown=none))


def test_where_unknown_items_cannot_be_judged_the_page_says_so(tmp_path):
    reason = "Unknown items cannot be judged with <one> class; add others."
    found = replace(classified(TABLE), unknown_reason=reason)
    assert f"<p class='alarm' role='note'>{escape(reason)}</p>" in top_of(written(tmp_path, found))
    # A person may still have said so of an item; the share of such items stays unknown.
    told = replace(found, unknown=replace(unknown([False, False, True, False]), chances=np.array([np.nan] * 4)))
    top = top_of(written(tmp_path, told))
    assert "1 item looks like none of your 4 classes. Unknown items cannot be judged" in top
    assert "Between" not in top


def test_one_item_is_not_labelled_jointly(tmp_path):
    top = top_of(written(tmp_path, classified([[0.9, 0.1, 0, 0]])))
    assert "1 item, labelled on its own, with a catalogue of 4 classes" in top


def test_a_page_is_written_whole(tmp_path, monkeypatch):
    written(tmp_path, classified(TABLE))
    before = (tmp_path / "deep" / "page.html").read_bytes()

    def cut_short(path, text, *more, **named):
        path.write_bytes(text[:100].encode())
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "write_text", cut_short)
    with pytest.raises(OSError, match="the disk is full"):
        written(tmp_path, classified(TABLE))
    assert (tmp_path / "deep" / "page.html").read_bytes() == before
    assert os.listdir(tmp_path / "deep") == ["page.html"]
