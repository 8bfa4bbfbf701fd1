import json

import numpy as np
import pytest
import torch

from handful.errors import FileFormatError, HandfulError, OptionError
from handful.large.checkpoint import FORMAT, begin, load_state, refuse_another, save_state
from handful.machine.folders import LocalFolder


def test_a_state_comes_back_as_it_was(tmp_path):
    assert load_state(LocalFolder(tmp_path), "run") is None
    counts = torch.arange(3, dtype=torch.float64)
    save_state(LocalFolder(tmp_path), "run", {"counts": counts}, {"phase": "first", "factor": 0.1 + 0.2})
    save_state(LocalFolder(tmp_path), "run", {"counts": counts + 1}, {"phase": "second", "factor": 0.1 + 0.2})
    tensors, notes = load_state(LocalFolder(tmp_path), "run")
    assert torch.equal(tensors["counts"], counts + 1)
    assert notes == {"phase": "second", "factor": 0.1 + 0.2}
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_a_state_that_was_cut_or_changed_is_refused(tmp_path):
    save_state(LocalFolder(tmp_path), "run", {"counts": torch.arange(30.0), "none": torch.zeros(0)}, {"phase": "first"})
    file = tmp_path / "state.safetensors"
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [content[:length] for length in (0, 7, 40, len(content) - 1)]
    damaged += [b"garbage" * 9, (2).to_bytes(8, "little") + b"{}", (99_999).to_bytes(8, "little") + b"[" * 99_999]
    for place in rng.integers(0, len(content), 100):
        damaged.append(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    for one in damaged:
        file.write_bytes(one)
        with pytest.raises(FileFormatError, match=r"state.safetensors is damaged \(.*delete this file"):
            load_state(LocalFolder(tmp_path), "run")


def test_a_state_of_another_run_is_refused(tmp_path):
    save_state(LocalFolder(tmp_path), "another run", {"counts": torch.arange(30.0)}, {"phase": "first"})
    with pytest.raises(FileFormatError, match=r"state.safetensors is damaged \(.*exchanged for another"):
        load_state(LocalFolder(tmp_path), "run")


def about(**settings):
    inputs = {
        "catalogue": {"called": "c.npz", "content": "c0"},
        "queries": {"called": "a.parquet", "content": "a0"},
    }
    return {"format": FORMAT, "inputs": inputs, "method": "paddle", "options": {"tol": 1e-6}, **settings}


def with_input(role, called, content):
    return about(inputs={**about()["inputs"], role: {"called": called, "content": content}})


def test_a_folder_is_resumed_with_what_it_was_begun_with(tmp_path):
    for _ in range(2):
        refuse_another(LocalFolder(tmp_path), about())
        begin(LocalFolder(tmp_path), about())
    refuse_another(LocalFolder(tmp_path), with_input("queries", "moved.parquet", "a0"))
    with pytest.raises(OptionError, match=r"differs in options \(\{'tol': 1e-06\}, now \{'tol': 1e-05\}\)"):
        refuse_another(LocalFolder(tmp_path), about(options={"tol": 1e-5}))


def test_another_input_is_named(tmp_path):
    begin(LocalFolder(tmp_path), about())
    with pytest.raises(OptionError, match=r"b.parquet does not hold the queries .* was started with a.parquet"):
        refuse_another(LocalFolder(tmp_path), with_input("queries", "b.parquet", "b0"))
    with pytest.raises(OptionError, match=r"a.parquet has changed since it was given as the queries of the run in"):
        refuse_another(LocalFolder(tmp_path), with_input("queries", "a.parquet", "a1"))
    with pytest.raises(OptionError, match=r"c.npz has changed since it was given as the catalogue of the run in"):
        refuse_another(LocalFolder(tmp_path), with_input("catalogue", "c.npz", "c1"))


def test_a_cut_or_strange_run_json_is_refused_by_a_sentence(tmp_path):
    begin(LocalFolder(tmp_path), about())
    file = tmp_path / "run.json"
    content = file.read_bytes()
    damaged = [content[:length] for length in range(0, len(content), 7)]
    damaged += [b"[]", b"null", b"7", b"[" * 100_000, b"\xff\xfe", b'{"inputs": []}', b'{"inputs": {"queries": 3}}']
    damaged += [json.dumps(about(inputs={"queries": {"called": "a.parquet"}})).encode()]
    for one in damaged:
        file.write_bytes(one)
        with pytest.raises(HandfulError, match="another folder"):
            refuse_another(LocalFolder(tmp_path), about())


def test_a_run_of_another_version_is_refused(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"method": "paddle", "queries": "a0"}))
    with pytest.raises(OptionError, match="another version of handful"):
        refuse_another(LocalFolder(tmp_path), about())


@pytest.mark.parametrize("piece", ["state.safetensors", "lists-60-abc", "answers"])
def test_pieces_of_a_run_of_which_nobody_knows_what_it_is_are_refused(tmp_path, piece):
    (tmp_path / "notes.txt").touch()
    refuse_another(LocalFolder(tmp_path), about())
    (tmp_path / piece).mkdir()
    with pytest.raises(OptionError, match=f"holds {piece} of a run but no run.json"):
        refuse_another(LocalFolder(tmp_path), about())


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path):
    lists = tmp_path / "lists-60-abc"
    lists.mkdir()
    left = [tmp_path / ".queries-1.npy.7-8.partial", lists / ".000000.npy.7-8.partial"]
    for file in [*left, lists / "000001.npy"]:
        file.touch()
    begin(LocalFolder(tmp_path), about())
    assert not any(file.exists() for file in left)
    assert (lists / "000001.npy").exists()
