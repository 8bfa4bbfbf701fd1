"""Tables that people made: what stands in the place of the header is named, and what to do about it."""

import pytest

from handful.errors import BankError
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
def test_a_title_is_named(tmp_path, title, delimiter):
    rows = [title, ["Department of bees"], [""], *ROWS]
    path = xlsx(tmp_path / "x.xlsx", A=rows) if delimiter == "xlsx" else csv(tmp_path / "x.csv", rows, delimiter)
    with pytest.raises(
        BankError, match="line 1 seems to be a title, 'Survey 2024', and line 4 to have the names of the"
    ):
        read(path)


def test_a_title_with_another_separator_in_it_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("Survey, May 2024\ne0;e1;label\n1;2;a\n3;4;b\n")
    with pytest.raises(BankError, match="line 1 seems to be a title, 'Survey, May 2024', and line 2 to have the names"):
        read(path)
    path.write_text("text,label\nwhere; here,\nwho; me,\n")
    assert read(path).n_rows == 2


def test_one_column_of_texts_is_no_title(tmp_path):
    with pytest.raises(BankError, match="it has 2 values, the header has 1; put values that contain ',' in quotes"):
        read(csv(tmp_path / "x.csv", [["text"], ["where is it", " here"], ["who", " me"]]))
    table = read(csv(tmp_path / "y.csv", [["Frage"], ["wo"], ["wann"]]), text="Frage")
    assert table.values("Frage") == ["wo", "wann"]


def test_data_on_another_sheet_are_named(tmp_path):
    notes = [["Made by", "the office"], ["on", "Monday"]]
    for first in ([], notes, [["read me"]]):
        with pytest.raises(
            BankError, match="Only the first sheet is read, 'Info', and 'Daten' has a table too; if that"
        ):
            read(xlsx(tmp_path / "x.xlsx", Info=first, Daten=ROWS))
    assert read_bank(xlsx(tmp_path / "y.xlsx", Daten=ROWS, Info=notes)).class_names == ("a", "b")


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


def test_decimal_commas_are_named(tmp_path):
    rows = [["e0", "e1", "label"], ["1,5", "2,25", "a"], ["-3,0", "1.234,5", "b"]]
    for path in (csv(tmp_path / "x.csv", rows, ";"), xlsx(tmp_path / "x.xlsx", A=rows)):
        with pytest.raises(BankError, match="got '1,5' with a decimal comma; export the table with decimal points"):
            read(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.txt", "label\ttext\na\tb\n".encode("utf-16"), "a table separated by tabs; rename it to x.tsv"),
        ("x.txt", b"label;text\na;b\n", "a table separated by semicolons; rename it to x.csv"),
        ("x.txt", b"hello\n", "a table has the names of its columns in the first line and ends in .csv or .tsv"),
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
