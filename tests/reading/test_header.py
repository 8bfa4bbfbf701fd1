"""Tables that people made: what stands in the place of the header is named, and what to do about it."""

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.labelled import class_names
from handful.errors import BankError, OptionError, TableWarning
from handful.reading import read, read_bank

ROWS = [["e0", "e1", "label"], ["1", "2", "a"], ["3", "4", "b"]]


def csv(path, rows, delimiter=",", encoding="utf-8"):
    path.write_text("\n".join(delimiter.join(row) for row in rows) + "\n", encoding=encoding)
    return path


def xlsx(path, **sheets):
    book = pytest.importorskip("openpyxl", reason="openpyxl is not installed").Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append([None if cell == "" else float(cell) if cell.isdecimal() else cell for cell in row])
    book.save(path)
    return path


@pytest.mark.parametrize("title", [["Survey 2024"], ["Survey 2024", "", ""], ["", "Survey 2024"]])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "xlsx"])
def test_a_title_is_passed_over_and_said(tmp_path, title, delimiter):
    rows = [title, ["Department of bees"], [""], *ROWS]
    path = xlsx(tmp_path / "x.xlsx", A=rows) if delimiter == "xlsx" else csv(tmp_path / "x.csv", rows, delimiter)
    with pytest.warns(TableWarning, match="line 1 is taken for a title, 'Survey 2024', and line 4 for the names"):
        table = read(path)
    assert (table.vectors.tolist(), table.values("label")) == ([[1, 2], [3, 4]], ["a", "b"])
    assert table.row_name(0) == "line 5"


def test_a_title_with_another_separator_in_it(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("Survey, May 2024\ne0;e1;label\n1;2;a\n3;4;b\n")
    with pytest.warns(TableWarning, match="line 1 is taken for a title, 'Survey, May 2024', and line 2 for the names"):
        assert read(path).n_rows == 2
    path.write_text("Messung\nhoehe;breite\n1,5;2,5\n3,5;4,25\n")
    with pytest.warns(TableWarning, match="line 2 for the names"):
        assert read(path).vectors.tolist() == [[1.5, 2.5], [3.5, 4.25]]
    path.write_text("text,label\nwhere; here,\nwho; me,\n")
    assert read(path).n_rows == 2


def test_one_column_of_texts_is_no_title(tmp_path):
    with pytest.raises(BankError, match="it has 2 values, the header has 1; put values that contain ',' in quotes"):
        read(csv(tmp_path / "x.csv", [["text"], ["where is it", " here"], ["who", " me"]]))
    table = read(csv(tmp_path / "y.csv", [["Frage"], ["wo"], ["wann"]]), text="Frage")
    assert table.values("Frage") == ["wo", "wann"]


def test_data_on_another_sheet_are_found_and_said(tmp_path):
    notes = [["Made by", "the office"], ["on", "Monday"]]
    for first in ([], notes, [["read me"]]):
        path = xlsx(tmp_path / "x.xlsx", Info=first, Daten=ROWS)
        with pytest.warns(
            TableWarning, match=r"the table is on the sheet 'Daten', because 'Info' has none.*x\.xlsx/Daten"
        ):
            assert read(path).n_rows == 2
        assert read(path / "Daten").values("label") == ["a", "b"]
    assert read_bank(xlsx(tmp_path / "y.xlsx", Daten=ROWS, Info=notes)).class_names == ("a", "b")
    with pytest.raises(BankError, match=r"has no sheet 'Data'; it has Daten, Info"):
        read(tmp_path / "y.xlsx" / "Data")
    with pytest.raises(BankError, match=r"That is the sheet 'A'; 'B' is another"):
        read(xlsx(tmp_path / "z.xlsx", A=notes, B=notes))


def test_merged_cells_have_one_value(tmp_path):
    path = xlsx(tmp_path / "x.xlsx", A=[ROWS[0], *([str(i), "2", "a" if i < 3 else "b"] for i in range(6))])
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("C2:C4")
    book.active.merge_cells("C5:C7")
    book.save(path)
    assert openpyxl.load_workbook(path).active["C3"].value is None
    assert read(path).values("label") == ["a"] * 3 + ["b"] * 3


def test_columns_of_one_name_and_columns_without_a_name(tmp_path):
    for path in (
        csv(tmp_path / "x.csv", [["e0", "e0 "], ["1", "2"]]),
        xlsx(tmp_path / "x.xlsx", A=[["e0", "e0 "], ["1", "2"]]),
    ):
        with pytest.raises(BankError, match="two columns of the same name, 'e0'; rename or delete one"):
            read(path)
    rows = [[*ROWS[0], "", ""], *([*row, "", ""] for row in ROWS[1:])]
    assert list(read(csv(tmp_path / "y.csv", rows)).columns) == ["label"]
    assert list(read(csv(tmp_path / "z.csv", [ROWS[0], *([*row, "", ""] for row in ROWS[1:])])).columns) == ["label"]
    rows[2][3:] = ["x", "y"]
    with pytest.raises(BankError, match="the columns 4 and 5 have values, but no name in the first row"):
        read(csv(tmp_path / "y.csv", rows))


def test_blanks_in_names_of_columns_do_not_count(tmp_path):
    bank = read_bank(csv(tmp_path / "x.csv", [[" e0", "e1 ", "\xa0label"], *ROWS[1:]]))
    assert (bank.class_names, bank.features.tolist()) == (("a", "b"), [[1, 2], [3, 4]])


def test_decimal_commas_are_read_where_they_are_clear(tmp_path):
    rows = [["e0", "e1", "label"], ["1,5", "2,25", "a"], ["-3,0", "1.234,5", "b"], ["7", "1,234", "b"]]
    for path in (csv(tmp_path / "x.csv", rows, ";"), xlsx(tmp_path / "x.xlsx", A=rows)):
        assert read(path).vectors.ravel().tolist() == pytest.approx([1.5, 2.25, -3, 1234.5, 7, 1.234])
    unclear = [rows[0], ["1,500", "2,250", "a"], ["3,000", "1,234", "b"]]  # perhaps thousands
    with pytest.raises(BankError, match="got '1,500' with a decimal comma; export the table with decimal points"):
        read(csv(tmp_path / "y.csv", unclear, ";"))


def test_columns_of_measurements(tmp_path):
    rows = [["id", "height", "width", "label"], ["7", "1,5", "20", "a"], ["8", "2,5", "", "b"], ["9", "1", "30", "a"]]
    path = csv(tmp_path / "x.csv", rows, ";")
    table = read(path)
    assert (table.measured, table.n_rows, table.skipped[0].row) == (("height", "width"), 2, 1)
    assert "line 3: it must have a number in column 'width', got ''" in str(table.skipped[0])
    assert read(path, features="height").vectors.tolist() == [[1.5], [2.5], [1]]
    assert read(csv(tmp_path / "y.csv", rows[:2], ";"), features="width,height").vectors.tolist() == [[20, 1.5]]
    with pytest.raises(BankError, match="has no column 'depth' for the features"):
        read(path, features="height,depth")
    texts = [["question", "week", "place"], ["where is it", "1", "here"]]
    with pytest.raises(BankError, match="neither vectors"):
        read(csv(tmp_path / "z.csv", texts))


def test_text_files_are_tables(tmp_path):
    for content in ("label\ttext\na\tbäh\n".encode("utf-16"), "label;text\na;bäh\n".encode()):
        (tmp_path / "x.txt").write_bytes(content)
        assert read(tmp_path / "x.txt").values("text") == ["bäh"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.txt", b"hello\n", "has no rows"),
        ("x.xls", b"", "a spreadsheet; save it as .xlsx or .csv"),
        ("x.json", b"[]", "write one object per line and call it .jsonl"),
    ],
)
def test_files_of_other_kinds_say_what_to_do(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BankError, match=sentence):
        read(tmp_path / name)


def test_usual_columns_name_the_items(tmp_path):
    from handful.extraction.items import list_items

    path = csv(tmp_path / "x.csv", [["ID", "text"], ["T1", "hello"], ["T2", "bye"]])
    assert list_items(path, labelled=False).names == ("T1", "T2")
    assert list_items(path, labelled=False, id_column="text").names == ("hello", "bye")
    path = csv(tmp_path / "y.csv", [["id", "text"], ["T1", "hello"], ["", "bye"]])
    assert list_items(path, labelled=False).names == ("row 0", "row 1")
    path = csv(tmp_path / "z.csv", [["Id", "e0", "e1"], ["T1", "1", "2"], ["T2", "1", "2"]])
    assert read(path).item_names() == ("T1", "T2")


# -- named by the caller -----------------------------------------------------------------------------------------------

# Found by itself, the names would be in line 1: it has several values.
BELOW = [["Survey", "2024"], ["", ""], ["e0", "e1", "label"], ["1", "2", "a"], ["3", "4", "b"]]


@pytest.mark.parametrize("ending", ["csv", "xlsx", "txt"])
def test_the_line_of_the_names_can_be_named(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    path = xlsx(path, A=BELOW) if ending == "xlsx" else csv(path, BELOW, ";")
    table = read(path, header_row=3)
    assert (table.vectors.tolist(), table.values("label")) == ([[1, 2], [3, 4]], ["a", "b"])
    assert table.row_name(0) == "line 4"
    with pytest.raises(BankError, match="no names of columns in line 2; count the lines from 1"):
        read(path, header_row=2)
    with pytest.raises(BankError, match="no names of columns in line 90"):
        read(path, header_row=90)
    with pytest.raises(OptionError, match="counted from 1, so header_row cannot be 0"):
        read(path, header_row=0)


def test_the_line_that_is_found_can_be_overruled(tmp_path):
    path = csv(tmp_path / "x.csv", [["Survey"], ["note", "more"], ["e0", "e1"], ["1", "2"], ["3", "4"]])
    assert read(path, header_row=3).vectors.tolist() == [[1, 2], [3, 4]]


def test_the_sheet_can_be_named(tmp_path):
    book = xlsx(tmp_path / "x.xlsx", Old=ROWS, Neu=[*ROWS, ["5", "6", "c"]])
    assert (read(book).n_rows, read(book / "Neu").n_rows) == (2, 3)
    with pytest.raises(BankError, match="no sheet 'neu'; it has Old, Neu"):
        read(book / "neu")
    with pytest.raises(OptionError, match=r"header_row is for .csv.*got what is in hand: leave it out"):
        read([[1.0, 2.0]], header_row=1)


def test_a_line_of_names_is_for_those_inputs_that_have_one(tmp_path):
    book = xlsx(tmp_path / "x.xlsx", Notes=[["a", "b"], ["c", "d"]], Daten=BELOW)
    np.save(tmp_path / "b.npy", [[1.0, 2.0], [3.0, 4.0]])
    found = classify(book / "Daten", tmp_path / "b.npy", header_row=3)
    assert class_names(found) == ("a", "b")
    with pytest.raises(OptionError, match="header_row is for"):
        classify(tmp_path / "b.npy", tmp_path / "b.npy", header_row=3)
