"""CSV and TSV: delimiters and encodings are told, rows that cannot be read are skipped and listed with their lines."""

import csv
import gzip
import importlib.util
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from handful.errors import BankError
from handful.reading import read, read_bank
from handful.reading.table import Columns

VECTORS = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
LABELS = ["ant", "bee", "ant", "fox", "bee"]


@pytest.fixture(params=["pyarrow", "csv"])
def reader(request, monkeypatch):
    """Both ways to read: with pyarrow, and without it."""
    if request.param == "csv":
        find = importlib.util.find_spec
        found = lambda name, *more: None if name == "pyarrow" else find(name, *more)  # noqa: E731
        monkeypatch.setattr("handful.reading.delimited.find_spec", found)
    else:
        pytest.importorskip("pyarrow")


def written(path, text, encoding="utf-8"):
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def values(table):
    return Columns(table.columns).values()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize(("name", "delimiter"), [("x.csv", ","), ("x.csv", ";"), ("x.tsv", "\t"), ("x.csv.gz", "\t")])
def test_delimiters_and_encodings(tmp_path, reader, name, delimiter, encoding):
    rows = [
        ("label", "text"),
        ("Zürich", '"where, is; my\tbag\r\n""hier"""'),
        ("007", "São Paulo – 5 €"),
    ]
    path = written(tmp_path / name, "\r\n".join(map(delimiter.join, rows)) + "\r\n", encoding)
    table = read(path)
    expected = {
        "label": ["Zürich", "007"],
        "text": ['where, is; my\tbag\r\n"hier"', "São Paulo – 5 €"],
    }
    assert values(table) == expected
    assert (table.n_rows, table.text, table.skipped) == (2, "text", ())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("writer", ["pandas", "polars"])
def test_what_pandas_and_polars_write_is_read(tmp_path, writer, ending):
    library = pytest.importorskip(writer)
    path = tmp_path / f"x.{ending}"
    if writer == "pandas":
        frame = library.DataFrame(VECTORS)
        frame.insert(0, "ticket", list("vwxyz"))
        frame["label"] = LABELS
        frame.columns = frame.columns.map(str)
        getattr(frame, f"to_{ending}")(path)
    else:
        frame = library.DataFrame(VECTORS).with_columns(
            library.Series("label", LABELS), library.Series("ticket", list("vwxyz"))
        )
        getattr(frame, f"write_{ending}")(path)
    bank = read_bank(path)
    np.testing.assert_allclose(bank.features, VECTORS, rtol=1e-6)
    assert [bank.class_names[k] for k in bank.labels] == LABELS
    table = read(path)
    np.testing.assert_allclose(table.vectors, VECTORS, rtol=1e-6)
    assert (table.item_names("ticket"), table.values("label")) == (tuple("vwxyz"), LABELS)


def test_numbers_of_other_columns_stay_the_text_they_are(tmp_path, reader):
    table = read(written(tmp_path / "x.csv", 'e0,price,e1,note\n1,1.50,2,"a, b"\n\n3,007, 4e-1,\n'))
    np.testing.assert_array_equal(table.vectors, np.array([[1, 2], [3, 0.4]], np.float32))
    assert values(table) == {"price": ["1.50", "007"], "note": ["a, b", ""]}


def test_sentences_stay_sentences_unless_vectors_are_named(tmp_path):
    path = written(tmp_path / "x.csv", "text,said,e0,e1\nhello,hi,1,2\n")
    assert (read(path).vectors, read(path).text) == (None, "text")
    both = read(path, features="e", text="said")
    assert (both.vectors.tolist(), both.text) == ([[1, 2]], "said")
    path = written(tmp_path / "y.csv", "said,e0,e1\nhello,1,2\n")
    assert read(path).vectors.tolist() == [[1, 2]]
    assert (read(path, text="said").vectors, read(path, text="said").text) == (None, "said")


def test_rows_that_cannot_be_read_are_skipped_and_listed_with_their_lines(tmp_path, reader):
    rows = [f'"two\nlines",{k},{k}' for k in range(60)]
    rows[2], rows[40], rows[50] = "", '"x",1', "x,1,one"
    table = read(written(tmp_path / "x.csv", "\n".join(["note,e0,e1", *rows]) + "\n"))
    assert table.n_rows == 57
    assert [str(one) for one in table.skipped] == [
        "line 81: it has 2 values, the header has 3",
        "line 100: it must have a number in column 'e1', got 'one'",
    ]
    assert table.vectors[:, 0].astype(int).tolist() == [k for k in range(60) if k not in (2, 40, 50)]
    assert [table.rows[k] for k in (0, 2, 38, 39)] == [0, 2, 38, 40]
    texts = [f"s{k}," for k in range(40)]
    texts[7], texts[9] = ",a", "s9"
    table = read(written(tmp_path / "y.csv", "\n".join(["text,label", *texts]) + "\n"))
    assert [(one.row, one.name) for one in table.skipped] == [(7, "line 9"), (9, "line 11")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "e0,e1,label\n1,2,a\n1,,b\n1,,b\n",
            "2 of 3 rows cannot be read, more than 5%; .* line 3: .* in column 'e1', got ''; .*--skip-bad",
        ),
        ("e0,e1,label\n1,2\n", "line 2: it has 2 values, the header has 3"),
        ("e0,e1,label\n", "has no rows"),
        ("\n\n", "has no rows"),
        ("e0,e1,e1,label\n1,2,3,a\n", "two columns of the same name"),
        ("e0,e1,label\n1,2,\n", "has no row with a label"),
        ("e0,e1,kind_of\n1,2,a\n", "no column that looks like labels"),
        ("label,size\na,1\n", "has neither vectors .* nor a column of texts"),
        ("e0,e1,label\n1,nan,a\n", "must have a number in column 'e1', got 'nan'"),
        ("e0,e1,label\n1,-inf,a\n", "must have a number in column 'e1', got '-inf'"),
        ("e0,e1,label\n1,1_0,a\n", "must have a number in column 'e1', got '1_0'"),
        ("e0,e1,label\n1,1e400,a\n", "must have a number in column 'e1', got '1e400'"),
        ("text,label\na,b\n", "contains texts and no vectors"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path, reader, text, sentence):
    with pytest.raises(BankError, match=sentence):
        read_bank(written(tmp_path / "x.csv", text)).verify()


def test_wide_tables_are_read_in_little_time(tmp_path, reader):
    usual = csv.field_size_limit()
    names = [f"emb_{k}" for k in range(30_000)]
    assert len(",".join(names)) > usual
    rows = [",".join(["1"] * len(names)) + ",a,b"] * 3
    written(tmp_path / "x.csv", "\n".join([",".join([*names, "label", "x" * 2 * usual]), *rows]) + "\n")
    begun = time.process_time()
    table = read(tmp_path / "x.csv")
    assert time.process_time() - begun < 10  # it was 60
    assert table.vectors.shape == (3, 30_000)
    assert list(table.columns) == ["label", "x" * 2 * usual]
    assert csv.field_size_limit() == usual


def test_hostile_files_are_refused(tmp_path, reader):
    (tmp_path / "x.csv").write_bytes(b"text,label\n\x81\x8d,a\n")
    with pytest.raises(BankError, match="cannot be read as a table separated by"):
        read(tmp_path / "x.csv")
    os.mkfifo(tmp_path / "y.csv")
    with pytest.raises(BankError, match="not a regular file"):
        read(tmp_path / "y.csv")


WIDE = """
import resource, sys
import handful, pyarrow.csv
from handful.reading import delimited
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table = handful.read(sys.argv[1])
print(table.vectors.shape[1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.beyond
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes on Linux only")
def test_a_table_of_very_many_columns_takes_little_memory(tmp_path):
    pytest.importorskip("pyarrow")
    n_columns = 100_000
    lines = [",".join(f"f{k}" for k in range(n_columns)), *[",".join(["1.25"] * n_columns)] * 3]
    path = written(tmp_path / "wide.csv", "\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", WIDE, path], capture_output=True, text=True, check=True, env=os.environ
    )
    n_read, kilobytes = map(int, done.stdout.split())
    assert n_read == n_columns
    assert kilobytes < 100_000


def test_a_table_of_many_columns_is_read_alike_row_by_row(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    numbers = np.random.default_rng(0).integers(0, 100, (7, 4_000)) / 4
    lines = [",".join(["label", *(f"f{k}" for k in range(4_000))])]
    lines += [",".join(["ant", *map(str, row)]) for row in numbers]
    path = written(tmp_path / "wide.csv", "\n".join(lines))
    monkeypatch.setattr("handful.reading.delimited.BLOCK_NUMBERS", 10_000)  # three rows
    wide = read(path)
    assert isinstance(wide.columns["label"], list)  # pyarrow was not asked
    assert np.array_equal(wide.vectors, numbers)
    monkeypatch.setattr("handful.reading.delimited.ARROW_ALWAYS_ALLOWED", 2**40)
    assert np.array_equal(read(path).vectors, numbers)
