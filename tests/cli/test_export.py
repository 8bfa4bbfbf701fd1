"""`handful export` writes what a catalogue says: tables for people and programs, a folder per class, a model."""

import csv
import datetime
import json
import shutil

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.classification import classify
from handful.cli.main import main
from handful.fitted import load_model
from handful.items import bring, import_labelled
from tests.classification.test_steps import pictures as pictures  # a fixture
from tests.clouds_at_hand import clouds


@pytest.fixture
def birds(tmp_path):
    """Examples, and a batch of a table with semicolons, in which two items have an answer."""
    with CatalogueFile.open(tmp_path / "birds.handful") as file:
        import_labelled(file, clouds(5, 4, noise=0.2), "examples")
        rows, _ = clouds(3, 4, seed=1)
        names = ";".join(f"e{k}" for k in range(16))
        table = [f"id;{names};day;where;label"]
        for at, row in enumerate(rows):
            table.append(f"item {at};{';'.join(map(str, row))};2026-11-{at + 1:02d};47.123456789;x")
        (tmp_path / "monday.csv").write_text("\n".join(table) + "\n")
        bring(file, "monday", tmp_path / "monday.csv")
        first, second = sorted(file.said.places["monday"])[:2]
        file.append("named", {"label": "crab, red"}, [EventItem(first, None, True, "class 00", 0.03)], person="Ada")
        file.append("none", {}, [EventItem(second, None, True, None, 7.400757608484829e-07)], person="Bob")
    return tmp_path / "birds.handful"


def export(birds, out, *more):
    return main(["export", str(birds), str(out), *map(str, more)])


def table_of(path, delimiter):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def test_a_table_has_what_people_said_and_what_the_model_says(birds, capsys):
    out = birds.parent / "labels.csv"
    assert export(birds, out, "--batch", "monday") == 0
    assert f"Written: {out}: 12 rows" in capsys.readouterr().out
    rows = table_of(out, ";")  # as the batch has it
    first, second, *others = rows
    assert (first["label"], first["person"], first["said_by"]) == ("crab, red", "crab, red", "Ada")
    assert (first["model"], first["certainty"]) == ("class 00", "0.97")
    assert (second["label"], second["person"], second["model"], second["certainty"]) == (
        "",
        "none of these",
        "none of these",
        "1.0",
    )
    assert datetime.datetime.fromisoformat(first["said_at"]).tzinfo is not None
    assert [row["label"] for row in others] == [row["model"] for row in others]
    assert [row["label"] for row in others[2:]] == [*["class 01"] * 4, *["class 02"] * 4]
    assert {row["person"] for row in others} == {""}
    assert all(len(row["certainty"]) <= 6 for row in rows)
    assert (first["day"], first["where"], first["given_label"]) == ("2026-11-01", "47.123456789", "x")
    assert first["item"] == "item 0"


def test_tables_of_all_kinds_say_the_same(birds):
    folder = birds.parent
    parquet = pytest.importorskip("pyarrow.parquet")
    openpyxl = pytest.importorskip("openpyxl")
    for ending in ("parquet", "xlsx", "jsonl"):
        assert export(birds, folder / f"l.{ending}") == 0
    found = parquet.read_table(folder / "l.parquet").to_pylist()
    lines = [json.loads(line) for line in (folder / "l.jsonl").read_text().splitlines()]
    head, *cells = openpyxl.load_workbook(folder / "l.xlsx").active.values
    sheet = [dict(zip(head, row, strict=True)) for row in cells]
    assert len(found) == len(lines) == len(sheet) == 32
    for one, line, row in zip(found, lines, sheet, strict=True):
        assert one["label"] == line.get("label") == row["label"]
        assert one["certainty"] == line.get("certainty")
        if one["certainty"] is not None:
            assert row["certainty"] == round(one["certainty"], 4)
    monday = [row for row in sheet if row["batch"] == "monday"]
    assert isinstance(monday[0]["day"], datetime.datetime)  # a date of the spreadsheet
    assert next(row for row in found if row["batch"] == "monday")["day"] == datetime.date(2026, 11, 1)
    assert found[0]["said_by"] == "import"


def test_a_model_names_no_files_and_no_people(birds):
    out = birds.parent / "birds.model"
    assert export(birds, out) == 0
    content = out.read_bytes()
    assert not any(word in content for word in (b"Ada", b"monday", b"item 0", b"47.12"))
    assert load_model(out).n_examples == 21
    table = birds.parent / "monday.csv"
    one, two = (classify(path, table, features="e") for path in (birds, out))
    assert one.labels.tolist() == two.labels.tolist()
    assert export(birds, out, "--batch", "monday") == 1


def test_an_export_overwrites_nothing_that_was_read(birds, capsys):
    before = (birds.parent / "monday.csv").read_bytes(), birds.read_bytes()
    for out in ("monday.csv", "birds.handful", "other.handful"):
        assert export(birds, birds.parent / out) == 1
    assert export(birds, birds.parent / "l.csv", "--batch", "monda") == 1
    assert "did you mean 'monday'" in capsys.readouterr().err
    assert export(birds, birds.parent / "l.csv", "--links") == 1
    assert ((birds.parent / "monday.csv").read_bytes(), birds.read_bytes()) == before
    assert not (birds.parent / "l.csv").exists()
    assert main(["export", str(birds.parent / "gone.handful"), str(birds.parent / "l.csv")]) == 1


def test_what_two_people_said_differently_is_in_the_table(birds):
    shutil.copy(birds, birds.parent / "copy.handful")
    from handful.catalogue.join import join

    with CatalogueFile.open(birds) as mine, CatalogueFile.open(birds.parent / "copy.handful") as yours:
        item = sorted(mine.said.places["monday"])[5]
        for file, name in ((mine, "fox"), (yours, "wolf")):
            file.append("named", {"label": name}, [EventItem(item)], person=name.upper())
        join(mine, yours)
    assert export(birds, birds.parent / "l.jsonl", "--batch", "monday") == 0
    row = json.loads((birds.parent / "l.jsonl").read_text().splitlines()[5])
    assert set(row["person"].split(" or ")) == {"fox", "wolf"}
    assert set(row["said_by"].split(" or ")) == {"FOX", "WOLF"}
    assert "label" not in row


def test_a_folder_per_class_has_every_image(pictures, capsys):
    birds = pictures / "birds.handful"
    with CatalogueFile.open(birds) as file:
        import_labelled(file, pictures / "catalogue", encoder="small")
        classes = file.said.classes
        file.append("renamed", {"label": classes[0], "into": "what/now?"})
        images = len(file.said.places["catalogue"])
    out = pictures / "by_class"
    assert export(birds, out) == 0
    assert (out / "kinds.csv").is_file()
    written = [path for path in out.rglob("*") if path.is_file() and path.name != "kinds.csv"]
    assert len(written) == images
    assert "what_now_" in {path.name for path in out.iterdir()}
    sources = {path.read_bytes() for path in (pictures / "catalogue").rglob("*.*")}
    assert {path.read_bytes() for path in written} <= sources
    assert export(birds, out) == 1
    assert "is there already" in capsys.readouterr().err
    assert export(birds, pictures / "linked", "--links") == 0
    linked = [path for path in (pictures / "linked").rglob("*") if path.is_symlink()]
    assert len(linked) == images
    assert all(path.resolve().is_relative_to(pictures / "catalogue") for path in linked)
    assert not [path for path in pictures.iterdir() if path.name.endswith(".partial")]
    assert export(birds, pictures / "catalogue" / "inside") == 1


def test_a_folder_per_class_is_of_images(birds, capsys):
    assert export(birds, birds.parent / "by_class") == 1
    assert "name a table instead" in capsys.readouterr().err
    assert not (birds.parent / "by_class").exists()


def test_a_folder_per_class_leaves_out_images_that_are_gone(pictures, capsys):
    birds = pictures / "birds.handful"
    with CatalogueFile.open(birds) as file:
        import_labelled(file, pictures / "catalogue", encoder="small")
        gone = next(iter(file.said.places["catalogue"].values()))
    (pictures / "catalogue" / gone).unlink()
    assert export(birds, pictures / "by_class") == 0
    assert f"1 image cannot be read, the first is {gone}" in capsys.readouterr().out


def test_a_batch_of_which_nothing_was_named_has_no_labels(tmp_path):
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        bring(file, "monday", np.eye(4, dtype=np.float32))
    assert export(tmp_path / "c.handful", tmp_path / "l.csv") == 0
    assert {row["label"] for row in table_of(tmp_path / "l.csv", ",")} == {""}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_table_of_kinds_says_which_were_seen_and_by_whom(birds, ending):
    out = birds.parent / f"labels.{ending}"
    assert export(birds, out, "--batch", "monday") == 0
    beside = birds.parent / f"labels.kinds.{ending}"
    lines = beside.read_text(encoding="utf-8-sig").splitlines()
    rows = table_of(beside, ";") if ending == "csv" else [json.loads(line) for line in lines]
    first, *others = rows
    assert (first["kind"], int(first["items"]), int(first["seen"])) == ("crab, red", 2, 1)
    assert (first["seen_by"], first["said"]) == ("Ada", "seen")
    assert {row["kind"]: int(row["items"]) for row in others} == {"class 00": 1, "class 01": 4, "class 02": 4}
    assert {row["said"] for row in others} == {"probable, none seen"}
    assert sum(int(row["items"]) for row in rows) == 11  # one is of no class
