import numpy as np
import pytest

from handful import read_bank
from handful.banks import Provenance, write_parquet
from handful.errors import BankError
from tests.banks_at_hand import random_bank

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_out_and_in_again_is_the_same_bank(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr("handful.reading.parquet.BLOCK_ROWS", 5)
    bank = random_bank(dtype=dtype, splits={"test": [2]}, provenance=Provenance("set", versions={"a": "1"}))
    write_parquet(bank, tmp_path / "bank.parquet")
    again = read_bank(tmp_path / "bank.parquet")
    assert again.content_hash == bank.content_hash
    assert (again.splits, again.provenance) == (bank.splits, bank.provenance)
    with pytest.raises(BankError, match="already exists"):
        write_parquet(bank, tmp_path / "bank.parquet")


def test_pandas_and_duckdb_read_it(tmp_path):
    pandas, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    bank = random_bank(dtype="float16")
    file = tmp_path / "bank.parquet"
    write_parquet(bank, file)
    frame = pandas.read_parquet(file)
    np.testing.assert_array_equal(np.stack(frame.features), bank.features)
    assert frame.class_name.tolist() == [bank.class_names[k] for k in bank.labels]
    counts = duckdb.sql(f"select label, count(*), avg(features[1]) from '{file}' group by label order by label")
    for label, count, mean in counts.fetchall():
        rows = bank.features[bank.labels == label].astype("float32")
        assert count == len(rows)
        assert mean == pytest.approx(rows[:, 0].mean(), rel=1e-5)
