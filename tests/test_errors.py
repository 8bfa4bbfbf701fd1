"""Errors: a message is a sentence on one line, whatever it names."""

import pytest

from handful.errors import BankError, HandfulError, StorageError, UnknownNameError
from handful.reading import read


@pytest.mark.parametrize("kind", [HandfulError, BankError, StorageError, UnknownNameError])
def test_what_cannot_be_printed_is_escaped(kind):
    assert str(kind("a\nb\x1b[2J \u202e\ud800 Käse")) == r"a\nb\x1b[2J \u202e\ud800 Käse"


def test_a_damaged_file_is_refused_on_one_line(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    (tmp_path / "x.csv").write_text('"a\nb",c\nx,y\n')
    for name in ("x.parquet", "x.csv"):
        with pytest.raises(BankError) as caught:
            read(tmp_path / name)
        assert str(caught.value).isprintable()
