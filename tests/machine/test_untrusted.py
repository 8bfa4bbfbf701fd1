import os

import pytest

from handful.errors import BankError
from handful.machine.untrusted import ALWAYS_UNFOLDED, parse_json, refuse_irregular, refuse_unfolding


def test_pipes_devices_and_folders_are_refused_and_files_are_not(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/null"):
        with pytest.raises(BankError, match="is not a regular file"):
            refuse_irregular(path, BankError)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "missing", "null\0character"):
        refuse_irregular(path, BankError)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000, "9" * 5000, "{", b"\xff", ""]
)
def test_whatever_is_wrong_with_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - Python says what is wrong in its own words
        parse_json(text)


def test_small_files_and_honest_ones_may_unfold():
    refuse_unfolding("it", packed=1, unfolded=ALWAYS_UNFOLDED)
    refuse_unfolding("it", packed=10**9, unfolded=10**10)
    with pytest.raises(ValueError, match="would expand to 67108865"):
        refuse_unfolding("it", packed=1, unfolded=ALWAYS_UNFOLDED + 1)
