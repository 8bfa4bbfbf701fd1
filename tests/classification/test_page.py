"""The page about a batch: complete in itself, and safe against what items are called."""

import base64
import hashlib
import json
import os
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

from handful.classification import page as page_module
from handful.classification.labelled import messages
from handful.classification.page import by_doubt, write_page
from handful.errors import UnlikeCatalogueWarning
from handful.estimators import Diagnostic, Proposal
from handful.extraction.extract import Skipped
from handful_fewshot.errors import CollapseWarning
from tests import answers_at_hand

NAMES = ("ant & co", "<b>bee</b>", "cat", "dog")


def classified(table, contents=None, skipped=(), names=None, **changes):
    return answers_at_hand.classified(table, NAMES, contents, skipped, names, **changes)


def unknown(rejected, *groups, chances=None):
    return {
        "unknown": np.where(rejected, 0.97, 0.02) if chances is None else np.array(chances),
        "rejected": np.array(rejected),
        "unknown_interval": (0.25, 0.75),
        "proposals": tuple(Proposal(np.array(items), 0.93, "<b>bee</b>", 1.0) for items in groups),
    }


TABLE = [[0.9, 0.1, 0, 0], [0.999, 0.001, 0, 0], [0.45, 0.55, 0, 0], [0.05, 0.75, 0.2, 0]]


def written(tmp_path, found) -> str:
    write_page(found, tmp_path / "deep" / "page.html", title="Tuesday <morning>")
    return (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")


def top_of(page: str) -> str:
    return page.partition("<body")[2].partition(">")[2].split("<noscript>")[0]


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
    program = page.split("<script type='module'>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_warnings_and_skipped_items_stand_on_top(tmp_path):
    diagnostic = Diagnostic("collapsed", "All became one < class.", 0.1, 0.3, CollapseWarning)
    found = classified(TABLE, skipped=[Skipped(3, "x.png", "torn <up>")], about={"diagnostics": (diagnostic,)})
    top = top_of(written(tmp_path, found))
    assert "All became one &lt; class." in top
    assert "items is skipped: 1 unreadable" in top
    assert "x.png: torn &lt;up&gt;" in top


@pytest.mark.parametrize("table", [TABLE, [[1.0, 0.0, 0.0, 0.0]], [[0.3, 0.3, 0.2, 0.2]] * 3])
def test_every_batch_has_a_page(tmp_path, table):
    assert "</html>" in written(tmp_path, classified(table, encoder=""))


def test_how_the_batch_was_labelled_is_said(tmp_path):
    page = written(tmp_path, classified(TABLE, about={"joint_weight": 0.0}))
    assert "4 items, each labelled alone, with a catalogue of 4 classes" in page
    assert "jointly" not in top_of(page)


def test_items_like_none_of_the_classes_are_counted_on_top(tmp_path):
    found = classified(TABLE, about=unknown([True, False, True, True], [2, 3]))
    top = top_of(written(tmp_path, found))
    assert "3 items look like none of your 4 classes; 2 of them fall into 1 group." in top
    assert "Between 25% and 75% of the items belong to no class" in top
    for none in ({}, unknown([False] * 4)):
        assert "none of your" not in written(tmp_path, classified(TABLE, about=none))


def test_where_unknown_items_cannot_be_judged_the_page_says_so(tmp_path):
    reason = "Unknown items cannot be judged with <one> class; add others."
    found = classified(TABLE, about={"unknown_reason": reason})
    assert f"<p class='alarm' role='note'>{escape(reason)}</p>" in top_of(written(tmp_path, found))
    # A person may still have said so of an item; the share of such items stays unknown.
    said = unknown([False, False, True, False], chances=[np.nan] * 4) | {"unknown_reason": reason}
    told = classified(TABLE, about=said)
    top = top_of(written(tmp_path, told))
    assert "1 item looks like none of your 4 classes. Unknown items cannot be judged" in top
    assert "Between" not in top


def test_one_item_is_not_labelled_jointly(tmp_path):
    top = top_of(written(tmp_path, classified([[0.9, 0.1, 0, 0]])))
    assert "1 item, labelled on its own (one item is not a batch to learn from), with a catalogue of 4 classes" in top


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


# -- with groups: a table of all above their items, bounded in size, safe and complete ---------------------------------

SURE, TORN = [0.98, 0.01, 0.01, 0.0], [0.45, 0.55, 0.0, 0.0]
THREE = {"wood": [SURE, SURE], "<marsh>": [TORN, TORN, SURE], "quay": [SURE, TORN]}


def of_sites(groups: dict, contents=None, skipped=(), **about):
    """Groups by name, each with its rows of probabilities."""
    table = [row for rows in groups.values() for row in rows]
    sites = [name for name, rows in groups.items() for _ in rows]
    return classified(table, contents, skipped, sites=sites, about=about)


def rejecting(rejected, proposals=((), (), ())):
    """Three groups with rejected items."""
    chances = np.where(rejected, 0.97, 0.02)
    intervals = np.tile([0.1, 0.4], (3, 1))
    return {"unknown": chances, "rejected": np.array(rejected), "unknown_interval": intervals, "proposals": proposals}


def warned(**told):
    """Diagnostics of three groups."""
    return {
        "diagnostics": tuple(
            (Diagnostic("unlike_catalogue", told[site], 0.1, 0.7, UnlikeCatalogueWarning),) if site in told else ()
            for site in ("<marsh>", "quay", "wood")
        )
    }


def rows_of(page: str) -> list[list[str]]:
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]
    return [[re.sub(r"<[^>]*>", "", cell).replace("&nbsp;", " ") for cell in row] for row in cells]


def test_a_table_of_all_groups_that_show_their_items(tmp_path):
    page = written(tmp_path, of_sites(THREE, ("w0", "w1", "m0 <i>", "m1", "m2", "q0", "q1")))
    assert "<h1>Tuesday &lt;morning&gt;: 3 groups</h1>" in page
    assert "7 items, each group labelled as one batch, with a catalogue of 4 classes and 20 examples" in page
    assert "features of minilm. 3 groups by site." in page
    assert rows_of(page) == [
        ["&lt;marsh&gt;", "3", "ant &amp; co 1.9, &lt;b&gt;bee&lt;/b&gt; 1.1", "2"],
        ["quay", "2", "ant &amp; co 1.4, &lt;b&gt;bee&lt;/b&gt; 0.6", "1"],
        ["wood", "2", "ant &amp; co 2", "0"],
    ]
    assert "None of these</th>" not in page
    assert "Warnings</th>" not in page
    assert re.findall(r"<button data-group='(\d)'>(.*?)</button>", page) == [
        ("0", "&lt;marsh&gt;"),
        ("1", "quay"),
        ("2", "wood"),
    ]
    assert "http" not in page.replace("http-equiv", "")
    assert "<i>" not in page


def test_doubt_decides_about_the_order(tmp_path):
    found = of_sites(THREE)
    assert by_doubt(found).tolist() == [0, 1, 2]
    assert by_doubt(of_sites(THREE, **warned(wood="It is odd."))).tolist() == [2, 0, 1]
    strange = of_sites(THREE, **rejecting([True, True, False, False, False, False, False]))
    assert by_doubt(strange).tolist() == [0, 2, 1]


def test_a_thousand_groups_make_a_page_that_opens(tmp_path):
    found = of_sites({f"site {i:04}": [TORN if i == 900 else SURE] * 5 for i in range(1000)})
    page = written(tmp_path, found)
    assert len(rows_of(page)) == 1000
    assert len(page) < 800_000


def test_more_groups_than_the_table_has_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_ROWS", 2)
    page = written(tmp_path, of_sites(THREE))
    assert [row[0] for row in rows_of(page)] == ["&lt;marsh&gt;", "quay"]
    assert "And 1 more group with less doubt, in the files." in page


def test_many_classes_of_a_group_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_NAMED", 1)
    assert rows_of(written(tmp_path, of_sites(THREE)))[0][2] == "ant &amp; co 1.9, and 1 more class"


def test_warnings_of_groups_stand_on_top_and_in_the_table(tmp_path):
    told = warned(wood="Odd < by 1.", quay="Odd < by 2.")
    found = of_sites(THREE, skipped=[Skipped(3, "x.png", "torn")], **told)
    page = written(tmp_path, found)
    top = page.split("<details open>")[0]
    assert "2 of 3 groups, for example quay: Odd &lt; by 2." in top
    assert "items is skipped: 1 unreadable" in top
    assert [row[-1] for row in rows_of(page)] == ["0", "1", "1"]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, []),
        ({"wood": "Odd."}, ["wood: Odd."]),
        ({"wood": "Odd.", "quay": "Odd."}, ["2 of 3 groups, for example quay: Odd."]),
        ({"wood": "Weak.", "quay": "Weak.", "<marsh>": "Weak."}, ["Weak."]),
    ],
)
def test_one_message_for_each_kind(told, said):
    assert messages(of_sites(THREE, **warned(**told))) == said


def test_unknown_items_have_a_column(tmp_path):
    found = of_sites(THREE, **rejecting([False, False, True, True, True, False, False]))
    page = written(tmp_path, found)
    assert "3 items look like none of your 4 classes, in 1 of 3 groups." in page
    assert [row[4] for row in rows_of(page)] == ["3", "0", "0"]


def test_a_group_without_a_sure_class(tmp_path):

    found = of_sites({"wood": [[0.3, 0.3, 0.2, 0.2]]}, presence=np.full((1, 4), 0.3), joint_weight=np.zeros(1))
    page = written(tmp_path, found)
    assert rows_of(page) == [["wood", "1", "none for certain", "1"]]
