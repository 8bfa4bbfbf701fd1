"""Plain text: one item per line; tables in .txt files stay tables."""

import pytest

from handful.errors import BankError
from handful.reading import read


def test_a_file_without_a_header_has_one_text_per_line(tmp_path):
    file = tmp_path / "requests.txt"
    file.write_text("wo ist mein Koffer, bitte\n\nwecke mich um sechs\n\n", encoding="utf-16")
    table = read(file)
    assert table.text == "text"
    assert table.values("text") == ["wo ist mein Koffer, bitte", "wecke mich um sechs"]
    assert [one.row for one in table.skipped] == [1]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("text\nwake me\n", ["text"]),
        ("ticket\ttext\nT1\twake me, please\n", ["ticket", "text"]),
        ("ticket,text\nT1,wake me\n", ["ticket", "text"]),
    ],
)
def test_a_table_stays_a_table(tmp_path, content, columns):
    file = tmp_path / "table.txt"
    file.write_text(content)
    assert list(read(file).columns) == columns


@pytest.mark.parametrize("content", ["ticket;question\nT1;wake me\n", "height\n1.5\n2.5\n"])
def test_columns_without_a_known_name_and_single_numbers_are_still_refused(tmp_path, content):
    file = tmp_path / "table.txt"
    file.write_text(content)
    with pytest.raises(BankError, match="neither vectors"):
        read(file)


@pytest.mark.parametrize("content", [b"one\nt\x90wo\nthree\n", "one\ntwo\n".encode("utf-16")[:-1]])
def test_a_text_that_cannot_be_decoded_is_refused(tmp_path, content):
    file = tmp_path / "texts.txt"
    file.write_bytes(content)
    with pytest.raises(BankError, match=r"texts\.txt cannot be read as text in .*; save it as UTF-8"):
        read(file)
