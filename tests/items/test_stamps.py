import os
import time

import pytest

from handful.items.stamps import Stamp, Stamps, root_of


def test_a_file_that_was_written_just_now_has_no_stamp(tmp_path):
    file = tmp_path / "a.jpg"
    file.write_bytes(b"abc")
    assert Stamp.of(file) is None
    for seconds, known in ((1, False), (3, True), (-60, False)):
        then = time.time() - seconds
        os.utime(file, (then, then))
        assert (Stamp.of(file) is not None) == known, seconds
    assert Stamp.of(tmp_path / "nothing.jpg") is None


def test_a_hash_is_known_only_for_the_same_stamp():
    stamps = Stamps("here", {"a.jpg": (Stamp(3, 7), b"abc")})
    assert stamps.hash_of("a.jpg", Stamp(3, 7)) == b"abc"
    assert [stamps.hash_of("a.jpg", other) for other in (None, Stamp(3, 8), Stamp(4, 7))] == [None, None, None]
    assert stamps.hash_of("b.jpg", None) is None


@pytest.mark.parametrize(
    "cached", [None, b"", b"[]", b"{}", b'{"root": 1, "files": 2}', b'{"root": "", "files": {"a": [1]}}']
)
def test_what_is_no_cache_says_nothing(cached):
    assert Stamps.read(cached) == Stamps()


def test_folders_are_told_apart(tmp_path):
    assert root_of(tmp_path / "a") == root_of(tmp_path / "b" / ".." / "a") != root_of(tmp_path / "b")
