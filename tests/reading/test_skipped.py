"""What was left out is counted in one way: by kind, with names and reasons, whatever the file."""

import json
import re
import sys

import numpy as np
import pytest

from handful.classification import classify, rescore, write_page
from handful.classification.labelled import predictions
from handful.errors import BankError, SkippedRowsWarning
from handful.extraction.items import list_items
from handful.reading import Skipped, read, read_bank, skipped_counts
from handful.reading.table import first_listed, skipped_summary
from tests.items_at_hand import image_bytes, image_folder, zipped


def test_a_sentence_counts_each_kind_and_a_list_has_the_first():
    lost = [Skipped(0, "a", "x", "failed"), Skipped(1, "b", "y"), Skipped(2, "c\n", "z", "blank"), Skipped(3, "d", "y")]
    assert skipped_counts(lost) == {"unreadable": 2, "blank": 1, "failed": 1}
    assert skipped_summary(lost, 1234) == (
        "4 of 1,234 items are skipped: 2 unreadable, 1 blank, 1 failed in the other tool"
    )
    assert first_listed(lost, 3) == ["a: x", "b: y", "c\\n: z", "and 1 more"]


def csv(path, rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("n_rows", "n_bad", "fine"), [(2, 1, True), (10, 1, True), (10, 2, False), (60, 3, True), (60, 4, False)]
)
def test_one_row_may_be_bad_in_any_file_and_five_percent_of_a_long_one(tmp_path, n_rows, n_bad, fine):
    rows = ["1,2,a"] * (n_rows - n_bad) + ["1,x,a"] * n_bad
    path = csv(tmp_path / "x.csv", ["e0,e1,label", *rows])
    if not fine:
        with pytest.raises(BankError, match=f"{n_bad} of {n_rows} rows cannot be read, .*leave them out with skip_bad"):
            read(path)
    table = read(path, skip_bad=not fine)
    assert (table.n_rows, skipped_counts(table.skipped)) == (n_rows - n_bad, {"unreadable": n_bad})
    with pytest.warns(SkippedRowsWarning, match=f"{n_bad} unreadable"):
        assert read_bank(path, skip_bad=True).n_rows == n_rows - n_bad


def test_a_file_without_any_row_that_can_be_read_is_refused(tmp_path):
    path = csv(tmp_path / "x.csv", ["e0,e1,label", "1,x,a"])
    for skip_bad in (False, True):
        with pytest.raises(BankError, match="none of the 1 rows can be read; the first is line 2"):
            read(path, skip_bad=skip_bad)


@pytest.mark.parametrize("blank", [",,,", " ,\xa0,,"])
def test_blank_rows_at_the_end_are_no_rows(tmp_path, blank):
    for header, row in (("e0,e1,label,note", "1,2,a,b"), ("text,label,note,more", "hello,a,b,c")):
        table = read(csv(tmp_path / "x.csv", [header, *[row] * 3, blank, row, *[blank] * 40]))
        assert (table.n_rows, table.rows[3]) == (4, 4)
        assert [(one.row, one.name, one.kind) for one in table.skipped] == [(3, "line 5", "blank")]


def test_blank_texts_are_left_out_and_counted_and_never_too_many(tmp_path):
    table = read(csv(tmp_path / "x.csv", ["text", "hello", '"  "', '""', '"\xa0"', "bye"]))
    assert table.values("text") == ["hello", "bye"]
    assert skipped_counts(table.skipped) == {"blank": 3}


def test_heic_without_its_extra_is_unsupported_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    folder = image_folder(tmp_path / "images", 2, 2)
    (folder / "class0" / "00.HEIC").write_bytes(b"x")
    (folder / "class1" / "film.mp4").write_bytes(b"x")
    for place in (folder, zipped(folder, tmp_path / "a.zip")):
        table = read(place)
        assert table.n_rows == 4
        assert [(one.name, one.kind) for one in table.skipped] == [
            ("class0/00.HEIC", "unsupported"),
            ("class1/film.mp4", "unsupported"),
        ]
        assert re.fullmatch(r'HEIC is not read; convert it to JPEG, or run: pip .*\[heic\]".*', table.skipped[0].reason)
        assert table.skipped[1].reason == "a video is not read; save pictures of it as JPEG"
        assert sorted([*table.rows, *(one.row for one in table.skipped)]) == list(range(6))
        with pytest.warns(SkippedRowsWarning, match="2 of 6 items are skipped: 2 of an unsupported kind"):
            assert len(list_items(place)) == 4


def test_a_folder_of_heic_alone_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    (tmp_path / "cat").mkdir()
    for name in ("1.heic", "2.HEIF"):
        (tmp_path / "cat" / name).write_bytes(b"x")
    with pytest.raises(BankError, match="it has 2 × HEIC, which is not read: convert it to JPEG, or run: pip"):
        read(tmp_path)
    with pytest.raises(BankError, match="a single image; give the folder that it is in"):
        read(tmp_path / "cat" / "1.heic")


def test_heic_is_an_image_with_its_extra(tmp_path):
    extra = pytest.importorskip("pillow_heif", reason='pillow-heif is not installed: pip install ".[heic]"')
    folder = image_folder(tmp_path / "images", 2, 2)
    extra.from_bytes("RGB", (8, 8), bytes(192)).save(folder / "class0" / "00.HEIC")
    table = read(folder)
    assert (table.n_rows, table.skipped) == (5, ())
    assert [len(one) > 100 for one in table.images] == [True] * 5


def test_rows_without_a_label_and_rows_that_cannot_be_read_are_on_the_page_and_in_python(tmp_path):
    rows = [f"1,{k % 2},{'ab'[k % 2]}" for k in range(30)]
    rows[3], rows[5] = "1,x,a", "1,2, "
    catalogue = csv(tmp_path / "c.csv", ["e0,e1,label", *rows])
    batch = csv(tmp_path / "b.csv", ["e0,e1", "1,1", "1,x", "1,0"])
    with pytest.warns(SkippedRowsWarning, match=r"c.csv: 2 of 30 items are skipped: 1 unreadable, 1 without a label"):
        found = classify(catalogue, batch)
    assert skipped_counts(found.about.skipped_examples) == {"unreadable": 1, "without label": 1}
    assert [str(one) for one in found.about.batch.skipped] == ["line 3: it must have a number in column 'e1', got 'x'"]
    write_page(found, tmp_path / "page.html", title="b")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Catalogue: 2 of 30 items are skipped: 1 unreadable, 1 without a label" in page
    assert "Batch: 1 of 3 items is skipped: 1 unreadable" in page
    assert "line 7: it has no label" in page


def test_merged_cells_are_named_as_the_cause(tmp_path):
    labels = ["ant", "", "", "bee", "", "", "fox", ""]
    path = csv(tmp_path / "x.csv", ["e0,e1,label", *(f"1,{k},{label}" for k, label in enumerate(labels))])
    with pytest.warns(SkippedRowsWarning, match="5 without a label: line 3: it has no label; merged cells keep theirs"):
        read_bank(path)
    rows = ["1,1,ant", "1,2,ant", "1,3,", "1,4,bee"]
    with pytest.warns(SkippedRowsWarning, match="it has no label$"):
        read_bank(csv(tmp_path / "y.csv", ["e0,e1,label", *rows]))


def test_images_that_failed_in_speciesnet_are_counted(tmp_path):
    cow = {"classes": ["cow", "deer"], "scores": [0.8, 0.1]}
    images = [
        {"filepath": "a.jpg", "classifications": cow},
        {"filepath": "b.jpg", "failures": ["CLASSIFIER"]},
        {"filepath": "c.jpg", "classifications": {"classes": [], "scores": []}},
        {"filepath": "d.jpg", "classifications": cow},
    ]
    (tmp_path / "predictions.json").write_text(json.dumps({"predictions": images}))
    found = rescore(tmp_path / "predictions.json")
    assert [(one.row, one.name, one.kind) for one in found.about.batch.skipped] == [
        (1, "b.jpg", "failed"),
        (2, "c.jpg", "failed"),
    ]
    assert "CLASSIFIER" in found.about.batch.skipped[0].reason
    assert predictions(found)["row"] == [0, 3]


def test_an_unreadable_example_is_counted(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch", reason="the weights of EfficientNet-Lite0 are not installed")
    folder = image_folder(tmp_path / "images", 2, 3)
    (folder / "class0" / "00.png").write_bytes(image_bytes(0)[:20])
    with pytest.warns(SkippedRowsWarning, match="1 of 6 items is skipped: 1 unreadable: class0/00.png"):
        found = classify(folder, folder / "class1")
    assert [one.name for one in found.about.skipped_examples] == ["class0/00.png"]
    assert np.all(np.array(found.about.batch.rows) == [0, 1, 2])
