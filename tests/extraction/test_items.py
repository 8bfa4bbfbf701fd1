import gzip
import json
import os

import pytest

from handful.errors import BankError, SkippedRowsWarning
from handful.extraction.items import list_items
from tests.items_at_hand import image_bytes, image_folder, shared_data, zipped

ROWS = [
    {"text": "hello there", "label": "greeting", "split": "train"},
    {"text": "see you", "label": "farewell", "split": "train"},
    {"text": "good day", "label": "greeting", "split": "test"},
]


def jsonl(path, rows=ROWS):
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_a_folder_a_class(tmp_path):
    listed = list_items(image_folder(tmp_path / "images", n_classes=2, each=3))
    assert listed.kind == "image"
    assert listed.names[:2] == ("class0/00.png", "class0/01.png")
    assert listed.class_names == ("class0", "class1")
    assert listed.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert list(listed.source[1:2]) == [image_bytes(1)]


def test_a_zip_lists_as_the_folder_it_was_made_of(tmp_path):
    folder = image_folder(tmp_path / "images")
    plain = list_items(folder)
    archived = list_items(zipped(folder, tmp_path / "a.zip"))
    inside = list_items(zipped(folder, tmp_path / "b.zip", "deep/er/").joinpath("deep", "er"))
    for other in (archived, inside):
        assert other.names == plain.names
        assert other.data_hash == plain.data_hash
        assert list(other.source) == list(plain.source)


@pytest.mark.parametrize("change", ["a byte", "a name", "a class", "one more"])
def test_the_hash_sees_every_change(tmp_path, change):
    folder = image_folder(tmp_path / "images", 2, 2)
    before = list_items(folder).data_hash
    assert list_items(folder).data_hash == before
    first = folder / "class0" / "00.png"
    if change == "a byte":
        data = bytearray(first.read_bytes())
        data[-20] ^= 1
        first.write_bytes(data)
    elif change == "a name":
        first.rename(folder / "class0" / "000.png")
    elif change == "a class":
        first.rename(folder / "class1" / "02.png")
    else:
        (folder / "class0" / "02.png").write_bytes(image_bytes(9))
    assert list_items(folder).data_hash != before


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.csv"])
def test_sentences_from_a_table(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".csv"):
        path.write_text("text,label,split\n" + "".join(f"{r['text']},{r['label']},{r['split']}\n" for r in ROWS))
    else:
        jsonl(path)
    listed = list_items(path)
    assert listed.kind == "text"
    assert listed.source == ("hello there", "see you", "good day")
    assert listed.class_names == ("farewell", "greeting")
    assert listed.labels.tolist() == [1, 0, 1]
    assert listed.data_hash == list_items(jsonl(tmp_path / "again.jsonl")).data_hash


def test_splits_share_the_numbering_of_classes(tmp_path):
    test = list_items(jsonl(tmp_path / "rows.jsonl"), split="test")
    assert test.names == ("row 2",)
    assert test.source == ("good day",)
    assert test.class_names == ("farewell", "greeting")
    assert test.labels.tolist() == [1]


def test_paths_in_a_table_are_relative_to_it(tmp_path):
    image_folder(tmp_path / "images", 1, 2)
    rows = [{"path": "images/class0/01.png", "label": 10}, {"path": "images/class0/00.png", "label": 9}]
    listed = list_items(jsonl(tmp_path / "rows.jsonl", rows))
    assert listed.kind == "image"
    assert listed.class_names == ("9", "10")
    assert list(listed.source) == [image_bytes(1), image_bytes(0)]


def packed(path, n_bytes):
    with gzip.open(path, "wb") as stream:
        stream.write(b"text,label\n" + bytes(n_bytes))
    return path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p: p / "nowhere", "does not exist; check the path"),
        (lambda p: "s3://bucket/photos", "is an address, .*; copy it to this machine first"),
        (lambda p: p / "nowhere.csv", "does not exist; check the path"),
        (lambda p: write(p / "x.txt", "hello"), "has no rows; expected a header, and one row per item"),
        (lambda p: write(p / "x.zip", "hello"), "not a complete .zip"),
        (lambda p: write(p / "x" / "a.png", "").parent, "'a.png' is in none"),
        (lambda p: write(p / "x" / "a.txt", "").parent, "nor images"),
        (lambda p: write(p / "x.csv", ""), "has no rows"),
        (lambda p: write(p / "x.csv", "text,path,label\na,b,c\n"), "a column of texts, 'text', and one of paths"),
        (lambda p: write(p / "x.csv", "text\na\n"), "no column that looks like labels"),
        (
            lambda p: write(p / "x.csv", "text,label\n,c\n"),
            "none of the 1 rows can be read; the first is line 2: its 'text' is blank",
        ),
        (lambda p: write(p / "x.csv", "path,label\nno.png,c\n"), "1 file.s. that do not exist, the first is 'no.png'"),
        (lambda p: write(p / "x.jsonl", "{\n"), "line 1: it is not JSON"),
        (lambda p: write(p / "x.jsonl", "[1]\n"), "expected one object per line"),
        (lambda p: write(p / "x.jsonl", '{"text": 3, "label": "a"}\n'), "got 3"),
        (lambda p: write(p / "x.jsonl", r'{"text": "\ud800", "label": "a"}'), "row 0 has half a character"),
        (lambda p: write(p / "x.jsonl.gz", "plain"), "not a complete .gz"),
        (lambda p: write(p / "x.jsonl", '{"text": "a", "label": ' + "[" * 100_000), "line 1: it is not JSON.*too deep"),
        (lambda p: write(p / "x.jsonl", '{"text": "a", "label": ' + "9" * 5000 + "}"), "line 1: it is not JSON"),
        (lambda p: write(p / "x.csv", "path,label\na\0b.png,c\n"), "that do not exist"),
        (lambda p: (os.mkfifo(p / "x.csv"), p / "x.csv")[1], "not a regular file"),
        (lambda p: packed(p / "x.csv.gz", 2**27), "would expand to"),
    ],
)
def test_what_cannot_be_listed_is_refused_with_a_sentence(tmp_path, make, sentence):
    with pytest.raises(BankError, match=sentence):
        list_items(make(tmp_path))


@pytest.mark.parametrize(
    ("name", "there"), [("rows.jsonl", "choose from test, train"), ("images", "only from a table")]
)
def test_an_unknown_split_is_refused(tmp_path, name, there):
    jsonl(tmp_path / "rows.jsonl")
    image_folder(tmp_path / "images", 1, 1)
    with pytest.raises(BankError, match=there):
        list_items(tmp_path / name, split="valid")


def test_the_folders_of_omniglot():
    listed = list_items(shared_data("images/omniglot.zip") / "base")
    assert (len(listed), len(listed.class_names)) == (4840, 242)
    assert listed.class_names[0] == "Balinese/character01"


def test_without_labels_images_may_lie_anywhere(tmp_path):
    folder = image_folder(tmp_path / "images", 1, 2)
    (folder / "z.png").write_bytes(image_bytes(7))
    for place in (folder, zipped(folder, tmp_path / "a.zip")):
        listed = list_items(place, labelled=False)
        assert listed.names == ("z.png", "class0/00.png", "class0/01.png")
        assert listed.class_names == ("unlabelled",)
        assert listed.labels.tolist() == [0, 0, 0]
        with pytest.raises(BankError, match=r"'z\.png' is in none"):
            list_items(place)


def test_without_labels_a_table_needs_no_column_for_them(tmp_path):
    listed = list_items(jsonl(tmp_path / "a.jsonl", [{"text": "hello"}, {"text": "bye"}]), labelled=False)
    assert (listed.names, list(listed.source)) == (("row 0", "row 1"), ["hello", "bye"])
    with pytest.raises(BankError, match="has no rows; expected a header"):
        list_items(jsonl(tmp_path / "b.jsonl", []), labelled=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "text,label\nwhere,luggage\nwhen,\nwake,alarm\nwhat,NaN\n"),
        (
            "x.jsonl",
            '{"text": "where", "label": "luggage"}\n{"text": "when", "label": null}\n'
            '{"text": "wake", "label": "alarm"}\n{"text": "what", "label": NaN}\n',
        ),
    ],
)
def test_rows_without_a_label_are_left_out_and_counted(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.warns(SkippedRowsWarning, match="2 of 4 items are skipped: 2 without a label"):
        items = list_items(tmp_path / name)
    assert items.class_names == ("alarm", "luggage")
    assert items.names == ("row 0", "row 2")
    assert items.source == ("where", "wake")
    assert [items.class_names[k] for k in items.labels] == ["luggage", "alarm"]
    assert len(list_items(tmp_path / name, labelled=False)) == 4
