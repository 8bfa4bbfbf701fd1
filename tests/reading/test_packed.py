import gzip

import pytest

from handful.errors import BankError
from handful.reading.packed import opened_bytes


def test_bytes_come_out_unpacked(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"abc")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"abc"))
    for name in ("x.csv", "x.csv.gz"):
        with opened_bytes(tmp_path / name) as stream:
            assert stream.read() == b"abc"


def test_what_is_missing_damaged_or_expands_too_far_is_refused(tmp_path):
    (tmp_path / "x.gz").write_bytes(b"plain")
    (tmp_path / "y.gz").write_bytes(gzip.compress(bytes(2**27)))
    for name, sentence in (("no", "does not exist"), ("x.gz", "not a complete .gz"), ("y.gz", "would expand to")):
        with pytest.raises(BankError, match=sentence):
            opened_bytes(tmp_path / name)
