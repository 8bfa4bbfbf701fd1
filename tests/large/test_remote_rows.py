import io
import json
import uuid

import numpy as np
import pytest

from handful.errors import BankError, StorageError
from handful.large.inputs import content_hash
from handful.large.remote_rows import RemoteRows, rows_at
from handful.machine.folders import RemoteFolder
from tests.large_at_hand import large_problem
from tests.stores_at_hand import upload

pytest.importorskip("fsspec")


@pytest.fixture
def folder():
    return RemoteFolder(f"memory://{uuid.uuid4().hex}/bank")


def put_array(folder, name, array):
    content = io.BytesIO()
    np.save(content, array)
    folder.create(name, content.getvalue())
    return f"{folder.url}/{name}"


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_at_a_url_are_those_of_the_bank(folder, tmp_path, dtype):
    queries = large_problem().queries
    bank = type(queries).from_arrays(queries.features.astype(dtype), queries.labels, queries.class_names)
    bank.save(tmp_path / "bank")
    rows = rows_at(upload(tmp_path / "bank", folder.url))
    assert (rows.n_rows, rows.dim, rows.dtype) == (bank.n_rows, bank.dim, bank.dtype)
    for wanted in (range(5, 60), [3, 4, 5, 99, 0, 1], [7], []):
        np.testing.assert_array_equal(rows.take(list(wanted)), bank.take(np.array(wanted, dtype=np.int64)))
    assert content_hash(rows, labelled=False) == content_hash(bank, labelled=False)
    with pytest.raises(BankError, match="rows must lie in 0 … 399, got 400 … 400"):
        rows.take([400])


def test_what_is_no_bank_is_refused(folder):
    with pytest.raises(BankError, match=r"has no manifest.json .* Parquet file whose name ends with .parquet"):
        rows_at(folder.url)
    folder.create("manifest.json", b"[]")
    with pytest.raises(BankError, match="does not describe a bank"):
        rows_at(folder.url)
    for name, shape, message in (("../x", [3, 2], "names the file"), ("f.npy", [4, 2], "its manifest says float32")):
        other = RemoteFolder(f"{folder.url}-{len(name)}")
        entry = {"file": name, "shape": shape, "dtype": "float32"}
        other.create("manifest.json", json.dumps({"format": "handful feature bank", "features": entry}).encode())
        put_array(other, "f.npy", np.zeros((3, 2), np.float32))
        with pytest.raises(BankError, match=message):
            rows_at(other.url)


def test_arrays_that_are_cut_short_or_of_another_kind_are_refused(folder):
    folder.create("x.npy", b"not an array")
    with pytest.raises(BankError, match=r"is not a \.npy file"):
        RemoteRows.of(f"{folder.url}/x.npy")
    for name, array in (("a", np.zeros(3, np.float32)), ("b", np.zeros((2, 2))), ("c", np.zeros((2, 2), ">f4"))):
        with pytest.raises(BankError, match="must contain rows of float16 or float32"):
            RemoteRows.of(put_array(folder, name, array))
    content = io.BytesIO()
    np.save(content, np.zeros((30, 2), np.float32))
    folder.create("short", content.getvalue()[:-8])
    rows = RemoteRows.of(f"{folder.url}/short")
    assert rows.take(range(29)).shape == (29, 2)
    with pytest.raises(StorageError, match="shorter than its header says"):
        rows.take(range(30))
