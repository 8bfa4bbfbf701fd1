"""Same answers: what moved between two versions, by kind of batch, and what is kept of it."""

import importlib
import json
import subprocess

import numpy as np
import pytest

study = importlib.import_module("same_answers")


def written(file, about, **changes):
    """Write answers about three batches of two kinds, as a version would."""
    table = {study.ABOUT: np.array(about)}
    for batch in ("bank|closed|0000", "bank|closed|0001", "bank|method paddle|0002"):
        fields = {"labels": np.arange(4), "rejected": np.zeros(4, bool), "unknown": np.zeros(4)}
        fields |= {"probabilities": np.full((4, 2), 0.5), "presence": np.ones(2)}
        table |= {f"{batch}|{field}": changes.get(field, value) for field, value in fields.items()}
    with file.open("wb") as output:
        np.savez(output, **table)
    return file


BEFORE = ("1.2.0", "a" * 40, "all")
AFTER = ("1.2.1", "b" * 40, "all")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"probabilities": np.full((4, 2), 0.5 + 9e-6)}, []),
        ({"probabilities": np.full((4, 2), 0.5 + 2e-5)}, ["all", "closed", "method paddle"]),
        ({"labels": np.array([0, 1, 2, 9])}, ["all", "closed", "method paddle"]),
        ({"rejected": np.ones(4, bool)}, ["all", "closed", "method paddle"]),
        ({"presence": np.ones(3)}, ["all", "closed", "method paddle"]),
    ],
)
def test_kinds_that_moved_are_named_and_kept(tmp_path, changes, expected):
    one = written(tmp_path / "one.npz", BEFORE)
    other = written(tmp_path / "other.npz", AFTER, **changes)
    kinds = study.compare(one, other)
    assert study.moved(kinds) == expected
    study.keep_comparison(one, other, kinds, tmp_path / "kept.json")
    (kept,) = json.loads((tmp_path / "kept.json").read_text()).values()
    assert (kept["before"], kept["after"]["version"]) == ({"version": "1.2.0", "commits": ["a" * 40]}, "1.2.1")
    assert (kept["batches"], kept["moved"], kept["kinds"]["all"]["items"]) == ("all", expected, 12)
    study.keep_comparison(one, other, kinds, tmp_path / "kept.json")
    assert len(json.loads((tmp_path / "kept.json").read_text())) == 1


def test_a_batch_of_one_version_alone_has_moved(tmp_path):
    one = written(tmp_path / "one.npz", BEFORE)
    with np.load(one) as table:
        fewer = {key: table[key] for key in table.files if "0002" not in key}
    with (tmp_path / "other.npz").open("wb") as output:
        np.savez(output, **fewer)
    kinds = study.compare(one, tmp_path / "other.npz")
    assert (study.moved(kinds), kinds["method paddle"]["missing"]) == (["all", "method paddle"], 1)


@pytest.mark.parametrize("about", [("1.2.1", "", "all"), ("1.2.1", "b" * 40, "some"), ("1.2.1", "b" * 40, "methods")])
def test_what_cannot_be_traced_or_compares_too_little_is_not_kept(tmp_path, about):
    one = written(tmp_path / "one.npz", BEFORE)
    other = written(tmp_path / "other.npz", about)
    with pytest.raises(SystemExit, match="not kept"):
        study.keep_comparison(one, other, study.compare(one, other), tmp_path / "kept.json")
    assert not (tmp_path / "kept.json").exists()


def test_studies_of_a_commit_with_the_same_source_are_covered(monkeypatch, tmp_path):
    def commit(message):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run([*words, "add", "."], cwd=tmp_path, check=True)
        subprocess.run([*words, "commit", "-q", "-m", message], cwd=tmp_path, check=True)
        return study.git("rev-parse", "HEAD", at=tmp_path)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1\n")
    first = commit("one")
    (tmp_path / "page.md").write_text("text\n")
    second = commit("two")
    (tmp_path / "src" / "a.py").write_text("2\n")
    third = commit("three")
    record = tmp_path / "measured.json"
    record.write_text(json.dumps({str(n): {"commit": one} for n, one in enumerate((first, second, third, "f" * 40))}))
    monkeypatch.setattr(study, "VERSIONS", record)
    monkeypatch.setattr(study, "__file__", str(tmp_path / "same_answers.py"))
    assert study.same_source(second) == [second, first]
    assert study.same_source("e" * 40) == ["e" * 40]
