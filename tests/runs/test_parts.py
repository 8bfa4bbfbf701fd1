import numpy as np
import pytest

from handful.errors import FileFormatError
from handful.runs.parts import CHECKSUM_BYTES, append_checksum, open_checked, verify_checksum


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "words.npy"
    np.save(path, np.arange(600_000, dtype=np.int32))  # more than one block
    append_checksum(path, "shard 3")
    return path


def test_a_sealed_array_is_mapped_as_it_was(file):
    verify_checksum(file, "shard 3")
    words = open_checked(file)
    assert isinstance(words, np.memmap)
    np.testing.assert_array_equal(words, np.arange(600_000))


def test_every_flipped_bit_is_noticed(file):
    content = bytearray(file.read_bytes())
    rng = np.random.default_rng(0)
    places = [0, len(content) - 1, len(content) - CHECKSUM_BYTES, *rng.integers(0, len(content), 20).tolist()]
    for place in places:
        content[place] ^= 1 << (place % 8)
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"words.npy was cut short or changed .* delete this file"):
            verify_checksum(file, "shard 3")
        content[place] ^= 1 << (place % 8)


@pytest.mark.parametrize("length", [0, 5, 31, 32, 100, 1_000_000])
def test_a_cut_file_is_noticed_when_it_is_checked(file, length):
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(FileFormatError, match="cut short"):
        verify_checksum(file, "shard 3")
    with pytest.raises(FileFormatError, match="cut short"):
        open_checked(file)


def test_another_file_of_the_kind_is_noticed(file):
    with pytest.raises(FileFormatError, match="exchanged for another"):
        verify_checksum(file, "shard 4")
