import tempfile
from pathlib import Path

import pytest

from handful.errors import StorageError
from handful.machine.scratch import scratch_folder


def test_a_run_finds_its_folder_again_and_nobody_else_can_read_it(tmp_path, monkeypatch):
    place = scratch_folder("monday", tmp_path / "new")
    (place / "list").touch()
    assert (scratch_folder("monday", tmp_path / "new") / "list").exists()
    assert scratch_folder("tuesday", tmp_path / "new") != place
    assert place.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert scratch_folder("monday") == tmp_path / "handful-monday"


def test_a_folder_that_another_put_there_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "handful-monday").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="belongs to another user"):
        scratch_folder("monday", Path(tmp_path))
