import json
import uuid

import pytest

from handful.errors import FileFormatError, OptionError
from handful.machine.folders import LocalFolder, folder_at
from handful.runs.run_file import begin, refuse_another

KINDS = ("sums", "answers")


def about(**settings):
    inputs = {
        "catalogue": {"name": "c.npz", "content": "c0"},
        "queries": {"name": "a.parquet", "content": "a0"},
    }
    return {"format": 2, "inputs": inputs, "transform": "l2", **settings}


def test_a_run_of_another_version_is_refused(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"transform": "l2", "queries": "a0"}))
    with pytest.raises(OptionError, match="another version of handful"):
        refuse_another(LocalFolder(tmp_path), about(), KINDS)


@pytest.mark.parametrize("length", [0, 3, -9])
def test_a_damaged_run_json_is_refused(tmp_path, length):
    begin(LocalFolder(tmp_path), about(), KINDS)
    file = tmp_path / "run.json"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(FileFormatError, match=r"run.json is damaged"):
        begin(LocalFolder(tmp_path), about(), KINDS)


@pytest.mark.parametrize("piece", KINDS)
def test_pieces_of_a_run_of_which_nobody_knows_what_it_is_are_refused(tmp_path, piece):
    (tmp_path / "notes.txt").touch()
    refuse_another(LocalFolder(tmp_path), about(), KINDS)
    (tmp_path / piece).mkdir()
    with pytest.raises(OptionError, match=f"contains {piece} of a run but no run.json"):
        refuse_another(LocalFolder(tmp_path), about(), KINDS)


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path):
    begin(LocalFolder(tmp_path), about(), KINDS)
    sums = tmp_path / "sums"
    sums.mkdir()
    left = [tmp_path / ".queries-1.npy.7-8.partial", sums / ".000000.npy.7-8.partial"]
    for file in [*left, sums / "000001.npy"]:
        file.touch()
    begin(LocalFolder(tmp_path), about(), KINDS)
    assert not any(file.exists() for file in left)
    assert (sums / "000001.npy").exists()


def test_a_run_that_begins_at_the_same_url_meanwhile_is_noticed(monkeypatch):
    pytest.importorskip("fsspec")
    folder = folder_at(f"memory://{uuid.uuid4().hex}")
    create = type(folder).create

    def create_late(self, name, content):
        monkeypatch.undo()
        begin(folder, about(shard_rows=2), KINDS)
        return create(self, name, content)

    monkeypatch.setattr(type(folder), "create", create_late)
    with pytest.raises(OptionError, match="differs in shard_rows"):
        begin(folder, about(shard_rows=1), KINDS)


def test_runs_have_the_same_name_wherever_their_inputs_are(tmp_path):
    moved = about()
    moved["inputs"]["queries"]["name"] = "b.parquet"
    names = [
        begin(LocalFolder(tmp_path / str(k)), one, KINDS) for k, one in enumerate((about(), moved, about(shard_rows=2)))
    ]
    assert names[0] == names[1] != names[2]
