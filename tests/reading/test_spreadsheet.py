import re
import sys
import zipfile

import pytest

from handful.errors import BankError, MissingExtraError
from handful.reading import read, read_bank

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")


def xlsx(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_sentences_and_vectors_of_the_first_sheet(tmp_path):
    table = read(
        xlsx(tmp_path / "x.xlsx", [["ticket", None, "Frage"], [7, 1, "wo"], [], [9, None, "wann"]]), text="Frage"
    )
    assert (table.text, table.columns) == ("Frage", {"ticket": [7, 9], "Frage": ["wo", "wann"]})
    assert table.row_name(1) == "line 4"
    bank = read_bank(xlsx(tmp_path / "y.xlsx", [["e0", "e1", "label"], [1, 2, "a"], [3, 4.5, "b"]]))
    assert (bank.features.tolist(), bank.class_names) == ([[1, 2], [3, 4.5]], ("a", "b"))


def test_rows_that_cannot_be_read_are_skipped_and_listed(tmp_path):
    rows = [["e0", "e1"], *([1, k] for k in range(30))]
    rows[4] = [1, "one"]
    table = read(xlsx(tmp_path / "x.xlsx", rows))
    assert [str(one) for one in table.skipped] == ["line 5: it must have a number in column 'e1', got 'one'"]
    assert len(table.vectors) == table.n_rows == 29


def test_rows_of_any_length_are_read_whatever_size_the_sheet_claims(tmp_path):
    table = read(xlsx(tmp_path / "x.xlsx", [["id", "text", "label"], [1, "a"], [], [2, "b", "x", None, "a remark"]]))
    assert table.columns == {"id": [1, 2], "text": ["a", "b"], "label": [None, "x"]}
    with zipfile.ZipFile(tmp_path / "x.xlsx") as old, zipfile.ZipFile(tmp_path / "y.xlsx", "w") as new:
        for entry in old.infolist():
            new.writestr(entry, re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:A1"', old.read(entry)))
    assert read(tmp_path / "y.xlsx").columns == table.columns


def test_other_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    for file, sentence in (
        (tmp_path / "x.xlsx", "cannot be read as .xlsx"),
        (xlsx(tmp_path / "y.xlsx", [["text"]]), "has no rows"),
        (xlsx(tmp_path / "z.xlsx", [["a", "a"], [1, 2]]), "two columns of the same name"),
    ):
        with pytest.raises(BankError, match=sentence):
            read(file)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r'pip install .*\[xlsx\]"'):
        read(tmp_path / "y.xlsx")


def test_a_book_whose_relations_lead_nowhere_has_no_sheet(tmp_path):
    whole = xlsx(tmp_path / "whole.xlsx", [["text"], ["wo"]])
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith("workbook.xml.rels"):
                content = content.replace(b"sheet1.xml", b"sheet7.xml")
            new.writestr(entry, content)
    with pytest.raises(BankError, match="has no sheet with cells"):
        read(tmp_path / "odd.xlsx")
