import json
import sys
from pathlib import Path

import pytest

from handful import read_bank
from handful.banks import FeatureBank
from handful.cli.main import main
from handful.extraction.items import list_items
from tests.items_at_hand import image_bytes, image_folder, small_encoder
from tests.test_progress import watch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(monkeypatch, capfd):
    """Run the command with the small encoder in the place of the named ones: exit code, output, errors."""
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: small_encoder())

    def run(*arguments):
        code = main(["extract", *map(str, arguments)])
        return code, *capfd.readouterr()

    return run


def test_a_bank_is_made_and_its_hash_printed(tmp_path, run):
    folder, out = image_folder(tmp_path / "images"), tmp_path / "bank"
    found = run("--items", folder, "--encoder", "b", "--out", out, "--licence", "CC0", "--dtype", "float32")
    bank = FeatureBank.load(out)
    told = (
        "24 vectors of 32 numbers, 3 classes with 8 each, features of small\n"
        f"Written:\n  {out}  bank, content hash {bank.content_hash}\n"
    )
    assert found == (0, told, "")  # no terminal, no bar
    assert (bank.n_rows, bank.dtype, bank.provenance.licence) == (24, "float32", "CC0")


def test_skipped_items_are_listed_on_standard_error(tmp_path, run):
    folder = image_folder(tmp_path / "images", 1, 25)
    for i in range(22):
        (folder / "class0" / f"{i:02d}.png").write_bytes(image_bytes(i)[:20])
    code, _, errors = run("--items", folder, "--encoder", "b", "--out", tmp_path / "bank")
    told = errors.splitlines()
    assert code == 0
    assert told[0] == "22 of 25 items are skipped: 22 unreadable"
    assert told[1].startswith("  class0/00.png: ")
    assert told[-1] == "  and 2 more"
    assert len(told) == 22


def test_the_same_hash_on_one_worker_and_on_two(tmp_path, run):
    folder = image_folder(tmp_path / "images")
    shared = ("--items", folder, "--encoder", "b", "--shard-size", 5)
    printed = [run(*shared, "--out", tmp_path / f"bank{n}", "--on", f"here:{n}")[1].split()[-1] for n in (1, 2)]
    assert printed[0] == printed[1]


def test_a_split_of_a_table(tmp_path, run):
    image_folder(tmp_path / "images", 1, 2)
    rows = [{"path": f"images/class0/0{i}.png", "label": f"k{i}", "split": ("train", "test")[i]} for i in (0, 1)]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("--items", table, "--split", "test", "--encoder", "b", "--out", tmp_path / "bank")
    assert FeatureBank.load(tmp_path / "bank").labels.tolist() == [1]


@pytest.mark.parametrize("option", ["--batch-size", "--shard-size"])
def test_sizes_below_one_are_a_usage_error(tmp_path, run, option):
    assert run("--items", tmp_path, "--encoder", "b", "--out", tmp_path / "bank", option, 0)[0] == 2


def test_a_terminal_gets_a_bar_with_the_time_left(tmp_path, run, monkeypatch):
    watch(monkeypatch)
    folder = image_folder(tmp_path / "images")
    assert run("--items", folder, "--encoder", "b", "--out", tmp_path / "bank", "--shard-size", 2)[0] == 0
    drawn = sys.stderr.getvalue()
    assert "24 of 24 photographs" in drawn
    assert "photographs/s" in drawn


def test_a_sheet_and_the_line_of_its_names(tmp_path, run, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    book.active.append(["not this", "one"])
    for row in (["remarks", "of", "2025"], ["text", "label"], ["where is my bag", "luggage"], ["wake me", "alarm"]):
        (book["more"] if "more" in book.sheetnames else book.create_sheet("more")).append(row)
    book.save(tmp_path / "book.xlsx")
    asked = ("--encoder", "b", "--out", tmp_path / "bank", "--items")
    items = list_items(tmp_path / "book.xlsx" / "more", header_row=2)
    assert items.class_names == ("alarm", "luggage")
    code, _, errors = run(*asked, tmp_path / "book.xlsx" / "none")
    assert code == 1
    assert "has no sheet 'none'" in errors
    monkeypatch.setattr("handful.extraction.extract.extract", lambda items, *_, **__: pytest.fail(items.names[0]))
    with pytest.raises(pytest.fail.Exception, match="row 0"):
        run(*asked, tmp_path / "book.xlsx" / "more", "--header-row", "2")


def test_a_bank_is_made_of_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    book.active.append(["text"])
    for row in (["e0", "e1", "label"], [1, 2, "a"], [3, 4, "b"]):
        (book["more"] if "more" in book.sheetnames else book.create_sheet("more")).append(row)
    book.save(tmp_path / "book.xlsx")
    read_bank(tmp_path / "book.xlsx" / "more", header_row=1).save(tmp_path / "bank")
    assert FeatureBank.load(tmp_path / "bank").class_names == ("a", "b")
