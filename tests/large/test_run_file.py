import json

import pytest

from handful.errors import HandfulError, OptionError
from handful.large.run_file import FORMAT, begin, refuse_another
from handful.machine.folders import LocalFolder


def about(**settings):
    inputs = {
        "catalogue": {"called": "c.npz", "content": "c0"},
        "queries": {"called": "a.parquet", "content": "a0"},
    }
    return {"format": FORMAT, "inputs": inputs, "transform": "l2", **settings}


def with_input(role, called, content):
    return about(inputs={**about()["inputs"], role: {"called": called, "content": content}})


def test_a_folder_is_resumed_with_what_it_was_begun_with(tmp_path):
    for _ in range(2):
        refuse_another(LocalFolder(tmp_path), about())
        begin(LocalFolder(tmp_path), about())
    refuse_another(LocalFolder(tmp_path), with_input("queries", "moved.parquet", "a0"))
    with pytest.raises(OptionError, match=r"differs in transform \('l2', now 'raw'\)"):
        refuse_another(LocalFolder(tmp_path), about(transform="raw"))


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
    (tmp_path / "run.json").write_text(json.dumps({"transform": "l2", "queries": "a0"}))
    with pytest.raises(OptionError, match="another version of handful"):
        refuse_another(LocalFolder(tmp_path), about())


@pytest.mark.parametrize("piece", ["sums", "answers"])
def test_pieces_of_a_run_of_which_nobody_knows_what_it_is_are_refused(tmp_path, piece):
    (tmp_path / "notes.txt").touch()
    refuse_another(LocalFolder(tmp_path), about())
    (tmp_path / piece).mkdir()
    with pytest.raises(OptionError, match=f"holds {piece} of a run but no run.json"):
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
