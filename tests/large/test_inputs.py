import io
import json
import uuid

import numpy as np
import pytest

from handful.banks import FeatureBank, write_parquet
from handful.errors import BankError, FileFormatError, OptionError, StorageError, TaskError
from handful.fitted import FittedModel
from handful.large.inputs import RemoteRows, content_hash, read_input, read_rows, rows_at
from handful.machine.folders import LocalFolder, RemoteFolder
from tests.large_at_hand import large_problem
from tests.stores_at_hand import upload


def test_a_transform_that_needs_other_rows_is_refused():
    with pytest.raises(OptionError, match="range_scale"):
        FittedModel.of_bank(large_problem().catalogue, "range_scale")


def test_a_class_without_example_is_named():
    bank = FeatureBank.from_arrays([[1.0], [2.0]], [0, 2], ["ant", "bee", "cat"])
    with pytest.raises(TaskError, match="'bee' has none"):
        FittedModel.of_bank(bank, "raw")


def test_a_row_that_is_not_finite_is_named():
    bank = FeatureBank.from_arrays([[1.0], [np.nan]], [0, 0], ["ant"])
    with pytest.raises(TaskError, match="row 1"):
        read_rows(bank, np.arange(2), "raw")


def test_queries_come_from_parquet_without_labels_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    queries = large_problem().queries
    column = pa.FixedSizeListArray.from_arrays(pa.array(queries.features.reshape(-1)), queries.dim)
    parquet.write_table(pa.table({"embedding": column}), tmp_path / "q.parquet")
    came = read_input(tmp_path / "q.parquet", role="queries", scratch=tmp_path)
    bank = came.open(LocalFolder(tmp_path))
    assert isinstance(bank.stored, np.memmap)
    np.testing.assert_array_equal(bank.features, queries.features)
    (copy,) = tmp_path.glob("queries-*.npy")
    written = copy.stat().st_mtime_ns
    came.open(LocalFolder(tmp_path))
    assert copy.stat().st_mtime_ns == written
    copy.write_bytes(copy.read_bytes()[:-40])
    with pytest.raises(FileFormatError, match=f"{copy.name} was cut short or changed"):
        came.open(LocalFolder(tmp_path))
    write_parquet(queries, tmp_path / "labelled.parquet")
    labelled = read_input(tmp_path / "labelled.parquet", role="catalogue", scratch=tmp_path)
    assert labelled.name == str(tmp_path / "labelled.parquet")
    assert labelled.open(LocalFolder(tmp_path)).n_classes == 60
    with pytest.raises(BankError, match="does not exist"):
        read_input(tmp_path / "none.parquet", role="queries", scratch=tmp_path)


def test_a_catalogue_needs_labels(tmp_path):
    with pytest.raises(TaskError, match=r"pair \(X, y\)"):
        read_input(np.eye(3), role="catalogue", scratch=tmp_path)
    assert read_input((np.eye(3), ["b", "a", "b"]), role="catalogue", scratch=tmp_path).open(
        LocalFolder(tmp_path)
    ).class_names == ("a", "b")


def test_a_hash_covers_every_byte_and_what_counts_of_the_rest(tmp_path):
    bank = large_problem(n_query=5000).queries
    hashes = {content_hash(bank, labelled=labelled) for labelled in (True, False)}
    rng = np.random.default_rng(0)
    for row in rng.integers(0, 5000, 20):
        bank.stored[row, 3] += 1
        hashes.add(content_hash(bank, labelled=True))  # of the array as it is now
        bank.stored[row, 3] -= 1
    assert len(hashes) == 22
    features, labels, names = bank.stored, bank.labels, bank.class_names
    relabelled = FeatureBank.from_arrays(features, labels[::-1], names)
    renamed = FeatureBank.from_arrays(features, labels, [f"a {name}" for name in names])
    for other in (relabelled, renamed):
        assert content_hash(other, labelled=False) == content_hash(bank, labelled=False)
        assert content_hash(other, labelled=True) != content_hash(bank, labelled=True)
    assert content_hash(bank.save(tmp_path / "bank"), labelled=True) == bank.content_hash


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
