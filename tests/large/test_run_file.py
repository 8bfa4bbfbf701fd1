import json

import pytest

from handful.errors import OptionError
from handful.large.run_file import FORMAT, begin, refuse_another
from handful.machine.folders import LocalFolder


def about(**settings):
    inputs = {
        "catalogue": {"name": "c.npz", "content": "c0"},
        "queries": {"name": "a.parquet", "content": "a0"},
    }
    return {"format": FORMAT, "inputs": inputs, "transform": "l2", **settings}


def test_a_run_of_another_version_is_refused(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"transform": "l2", "queries": "a0"}))
    with pytest.raises(OptionError, match="another version of handful"):
        refuse_another(LocalFolder(tmp_path), about())


@pytest.mark.parametrize("piece", ["sums", "answers"])
def test_pieces_of_a_run_of_which_nobody_knows_what_it_is_are_refused(tmp_path, piece):
    (tmp_path / "notes.txt").touch()
    refuse_another(LocalFolder(tmp_path), about())
    (tmp_path / piece).mkdir()
    with pytest.raises(OptionError, match=f"contains {piece} of a run but no run.json"):
        refuse_another(LocalFolder(tmp_path), about())


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path):
    sums = tmp_path / "sums"
    sums.mkdir()
    left = [tmp_path / ".queries-1.npy.7-8.partial", sums / ".000000.npy.7-8.partial"]
    for file in [*left, sums / "000001.npy"]:
        file.touch()
    begin(LocalFolder(tmp_path), about())
    assert not any(file.exists() for file in left)
    assert (sums / "000001.npy").exists()
