"""Vectors without labels, from every kind of file; the names of the rows come along."""

import numpy as np
import pytest

from handful.banks import Provenance, write_parquet
from handful.banks.unlabelled import read_unlabelled
from handful.errors import BankError
from tests.banks_at_hand import random_bank

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_a_bank_and_its_parquet(tmp_path):
    bank = random_bank(provenance=Provenance(backbone="net, weights 12")).save(tmp_path / "bank")
    found = read_unlabelled(tmp_path / "bank")
    np.testing.assert_array_equal(found.features, bank.features)
    assert found.names[:2] == ("row 0", "row 1")
    assert found.backbone == "net, weights 12"
    write_parquet(bank, tmp_path / "bank.parquet")
    np.testing.assert_array_equal(read_unlabelled(tmp_path / "bank.parquet").features, bank.features)


def test_folders_and_arrays(tmp_path):
    np.save(tmp_path / "features.npy", VECTORS)
    np.savez(tmp_path / "x.npz", z=VECTORS, labels=[0, 1])
    for found in (
        read_unlabelled(tmp_path),
        read_unlabelled(tmp_path / "features.npy"),
        read_unlabelled(tmp_path / "x.npz", features="z"),
    ):
        np.testing.assert_array_equal(found.features, VECTORS)
        assert found.names == ("row 0", "row 1", "row 2")


def test_names_and_sentences_come_along(tmp_path):
    columns = {"vector": VECTORS.tolist(), "id": [7, 9, 11], "text": ["a", "b", "c"]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", **columns)
    for found in (read_unlabelled(tmp_path / "x.parquet"), read_unlabelled(tmp_path / "x.npz")):
        assert found.names == ("7", "9", "11")
        assert found.texts == ("a", "b", "c")


def test_a_column_with_gaps_names_nothing(tmp_path):
    pyarrow.parquet.write_table(pa.table({"v": VECTORS.tolist(), "id": [7, None, 9]}), tmp_path / "x.parquet")
    assert read_unlabelled(tmp_path / "x.parquet").names == ("row 0", "row 1", "row 2")


def test_several_files_are_one_table(tmp_path):
    for i in range(2):
        pyarrow.parquet.write_table(
            pa.table({"v": VECTORS.tolist(), "id": [f"{i}{j}" for j in range(3)]}), tmp_path / f"{i}.parquet"
        )
    found = read_unlabelled(tmp_path)
    assert found.features.shape == (6, 2)
    assert found.names == ("00", "01", "02", "10", "11", "12")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.txt", b"words", "is not a known kind of file"),
        ("x.npz", b"PK", "cannot be read as a .npz file"),
        ("x.npy", b"", "cannot be read as a .npy file"),
        ("x.parquet", b"PAR1", "cannot be read as Parquet"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BankError, match=sentence):
        read_unlabelled(tmp_path / name)


def test_what_is_no_matrix_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(BankError, match=r"must be numbers with the axes \(row, dim\)"):
        read_unlabelled(tmp_path / "x.npy")
    with pytest.raises(BankError, match="does not exist"):
        read_unlabelled(tmp_path / "nothing.npy")


def test_columns_of_groups_come_along(tmp_path):
    columns = {"vector": VECTORS.tolist(), "id": [7, 9, 11], "site": ["a", "b", "a"], "day": [1, None, 2]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = read_unlabelled(tmp_path / "x.parquet", groups=("site", "day", "id"))
    assert found.groups == {"site": ["a", "b", "a"], "day": [1, None, 2], "id": [7, 9, 11]}
    assert found.names == ("7", "9", "11")
    np.savez(tmp_path / "x.npz", features=VECTORS, site=["a", "b", "a"])
    assert read_unlabelled(tmp_path / "x.npz", groups=("site",)).groups == {"site": ["a", "b", "a"]}
    assert read_unlabelled(tmp_path / "x.npz").groups == {}


def test_columns_of_groups_that_are_not_there_are_refused(tmp_path):
    pyarrow.parquet.write_table(pa.table({"v": VECTORS.tolist(), "id": [7, 8, 9]}), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", features=VECTORS, site=["a", "b"], box=np.zeros((2, 2)), one=3)
    np.save(tmp_path / "x.npy", VECTORS)
    random_bank().save(tmp_path / "bank")
    for name, column, sentence in (
        ("x.parquet", "site", r"no column 'site' for the groups; it has id$"),
        ("x.parquet", "v", "no column 'v' for the groups"),
        ("x.npz", "day", "no column 'day' for the groups; it has site, box, one$"),
        ("x.npz", "site", "column 'site' must have one group for each of the 3 rows"),
        ("x.npz", "one", "column 'one' must have one group for each of the 3 rows"),
        ("x.npy", "site", "holds vectors alone, so it has no column 'site'"),
        ("bank", "site", "holds vectors alone, so it has no column 'site'"),
    ):
        with pytest.raises(BankError, match=sentence):
            read_unlabelled(tmp_path / name, groups=(column,))
