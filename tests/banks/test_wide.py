"""Tables with one column per dimension, as pandas and polars write them."""

import numpy as np
import pytest

from handful.banks import read_bank
from handful.banks.unlabelled import read_unlabelled
from handful.banks.wide import dimension_columns, is_wide_csv, read_wide_csv
from handful.errors import BankError

VECTORS = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
LABELS = ["ant", "bee", "ant", "fox", "bee"]


@pytest.mark.parametrize(
    ("names", "asked", "expected"),
    [
        (["0", "1", "2", "label"], None, ["0", "1", "2"]),
        (["label", "column_0", "column_1"], None, ["column_0", "column_1"]),
        (["PC_1", "PC_2", "PC_10"], None, ["PC_1", "PC_2"]),
        ([f"emb_{k:03}" for k in range(12)], None, [f"emb_{k:03}" for k in range(12)]),
        (["e2", "e1", "e0"], None, ["e0", "e1", "e2"]),
        (["a0", "a1", "a2", "b0", "b1"], "b", ["b0", "b1"]),
        (["a0", "label", "4711"], None, []),
        (["a0", "a1"], "b", []),
    ],
)
def test_the_longest_run_of_numbered_columns(names, asked, expected):
    assert dimension_columns(names, asked, "x") == expected


def test_two_runs_of_equal_length_are_a_question():
    with pytest.raises(BankError, match="may be a0 … a1 or b0 … b1; name the beginning"):
        dimension_columns(["a0", "a1", "b0", "b1"], None, "x")


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
    found = read_unlabelled(path, item_column="ticket", groups=("label",))
    np.testing.assert_allclose(found.features, VECTORS, rtol=1e-6)
    assert (found.names, found.groups) == (tuple("vwxyz"), {"label": LABELS})
    assert {"ticket", "label"} <= set(found.carried.columns)


def test_numbers_of_other_columns_stay_the_text_they_are(tmp_path):
    (tmp_path / "x.csv").write_text('e0,price,e1,note\n1,1.50,2,"a, b"\n3,007,4e-1,\n', encoding="utf-8")
    matrix, columns = read_wide_csv(tmp_path / "x.csv")
    np.testing.assert_array_equal(matrix, np.array([[1, 2], [3, 0.4]], np.float32))
    assert columns == {"price": ["1.50", "007"], "note": ["a, b", ""]}


def test_sentences_stay_sentences_unless_vectors_are_named(tmp_path):
    (tmp_path / "x.csv").write_text("text,e0,e1\nhello,1,2\n")
    (tmp_path / "y.csv").write_text("text,label\nhello,a\n")
    assert not is_wide_csv(tmp_path / "x.csv", None)
    assert is_wide_csv(tmp_path / "x.csv", "e")
    assert not is_wide_csv(tmp_path / "y.csv", None)
    assert not is_wide_csv(tmp_path / "z.csv", None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("e0,e1,label\n1,2,a\n1,,b\n", "row 1 of .* must have a number in column 'e1', got ''"),
        ("e0,e1,label\n1,2\n", "row 0 of .* has 2 values, its header 3"),
        ("e0,e1,label\n", "has no rows"),
        ("e0,e1,e1,label\n1,2,3,a\n", "two columns of the same name"),
        ("e0,e1,label\n1,2,\n", "has no row with a label"),
        ("e0,e1,kind_of\n1,2,a\n", "no column that looks like labels"),
        ("label,size\na,1\n", "no numbered columns"),
        ("e0,e1,label\n1,nan,a\n", "not finite"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path, text, sentence):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(BankError, match=sentence):
        read_bank(tmp_path / "x.csv").verify()


def test_a_gap_in_parquet_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pa.table({"e0": [1.0, 2.0], "e1": [1.0, None], "label": ["a", "b"]}), tmp_path / "x.parquet"
    )
    with pytest.raises(BankError, match="row 1 has no number in column 'e1'"):
        read_bank(tmp_path / "x.parquet")
