"""The page about groups: a table of all above their items, bounded in size, safe and complete."""

import re
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import Answers, Batch, ClassifiedGroups, Grouping, UnknownByGroup, groups_page
from handful.classification.groups_page import by_doubt, messages, write_groups_page
from handful.errors import UnlikeCatalogueWarning
from handful.estimators import Diagnostic
from handful.extraction.extract import Skipped

NAMES = ("ant & co", "<b>bee</b>", "cat", "dog")
SURE, TORN = [0.98, 0.01, 0.01, 0.0], [0.45, 0.55, 0.0, 0.0]


def classified(groups: dict, contents=None, skipped=()) -> ClassifiedGroups:
    """Groups by name, each with its rows of probabilities."""
    table = np.array([row for rows in groups.values() for row in rows])
    grouping = Grouping.of({"site": [name for name, rows in groups.items() for _ in rows]}, "a table")
    counts = np.array([table[grouping.group_of == place].sum(0) for place in range(len(grouping.groups))])
    return ClassifiedGroups(
        batch=Batch(range(len(table)), tuple(f"item {i}" for i in range(len(table))), contents, tuple(skipped)),
        grouping=grouping,
        answers=Answers.of(table),
        expected_counts=counts,
        presence=np.minimum(counts, 0.99),
        joint_weight=np.full(len(counts), 0.8),
        diagnostics=((),) * len(counts),
        class_names=NAMES,
        n_examples=20,
        backbone="minilm, weights 12ab",
    )


def unknown(found: ClassifiedGroups, rejected, proposals) -> ClassifiedGroups:
    chances = np.where(rejected, 0.97, 0.02)
    intervals = np.tile([0.1, 0.4], (len(found), 1))
    return replace(found, unknown=UnknownByGroup(chances, np.array(rejected), intervals, proposals))


def warned(found: ClassifiedGroups, **told) -> ClassifiedGroups:
    every = [()] * len(found)
    for site, message in told.items():
        every[found.grouping.groups.index((site,))] = (
            Diagnostic("unlike_catalogue", message, 0.1, 0.7, UnlikeCatalogueWarning),
        )
    return replace(found, diagnostics=tuple(every))


def written(tmp_path, found) -> str:
    write_groups_page(found, tmp_path / "deep" / "page.html", title="Tuesday <morning>")
    return (tmp_path / "deep" / "page.html").read_text()


def rows_of(page: str) -> list[list[str]]:
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]
    return [[re.sub(r"<[^>]*>", "", cell).replace("&nbsp;", " ") for cell in row] for row in cells]


THREE = {"wood": [SURE, SURE], "<marsh>": [TORN, TORN, SURE], "quay": [SURE, TORN]}


def test_a_table_of_all_groups_that_show_their_items(tmp_path):
    page = written(tmp_path, classified(THREE, ("w0", "w1", "m0 <i>", "m1", "m2", "q0", "q1")))
    assert "<h1>Tuesday &lt;morning&gt;: 3 groups</h1>" in page
    assert "7 items in 3 groups by site, every group labelled as one batch" in page
    assert "a catalogue of 4 classes and 20 examples; features of minilm." in page
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
    found = classified(THREE)
    assert by_doubt(found).tolist() == [0, 1, 2]
    assert by_doubt(warned(found, wood="It is odd.")).tolist() == [2, 0, 1]
    strange = unknown(found, [True, True, False, False, False, False, False], ((), (), ()))
    assert by_doubt(strange).tolist() == [0, 2, 1]


def test_a_thousand_groups_make_a_page_that_opens(tmp_path):
    found = classified({f"site {i:04}": [TORN if i == 900 else SURE] * 5 for i in range(1000)})
    page = written(tmp_path, found)
    assert len(rows_of(page)) == 1000
    assert len(page) < 800_000


def test_more_groups_than_the_table_has_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(groups_page, "MOST_ROWS", 2)
    page = written(tmp_path, classified(THREE))
    assert [row[0] for row in rows_of(page)] == ["&lt;marsh&gt;", "quay"]
    assert "And 1 more group with less doubt, in the files." in page


def test_many_classes_of_a_group_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(groups_page, "MOST_NAMED", 1)
    assert rows_of(written(tmp_path, classified(THREE)))[0][2] == "ant &amp; co 1.9, and 1 more class"


def test_warnings_stand_on_top_and_in_the_table(tmp_path):
    found = warned(classified(THREE, skipped=[Skipped(3, "x.png", "torn")]), wood="Odd < by 1.", quay="Odd < by 2.")
    page = written(tmp_path, found)
    top = page.split("<details open>")[0]
    assert "2 of 3 groups, for example quay: Odd &lt; by 2." in top
    assert "1 item could not be read" in top
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
    assert messages(warned(classified(THREE), **told)) == said


def test_unknown_items_have_a_column(tmp_path):
    found = unknown(classified(THREE), [False, False, True, True, True, False, False], ((), (), ()))
    page = written(tmp_path, found)
    assert "3 items look like none of your 4 classes, in 1 of 3 groups." in page
    assert [row[4] for row in rows_of(page)] == ["3", "0", "0"]


def test_a_group_without_a_sure_class(tmp_path):
    found = classified({"wood": [[0.3, 0.3, 0.2, 0.2]]})
    page = written(tmp_path, replace(found, presence=np.full((1, 4), 0.3), joint_weight=np.zeros(1), backbone=""))
    assert rows_of(page) == [["wood", "1", "none for certain", "1"]]
