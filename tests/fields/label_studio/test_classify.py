"""A labelled batch to Label Studio and back: what people chose there counts as corrections."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.files import write_tasks
from handful.cli.main import main
from handful.datasets import load_clinc150
from handful.errors import LabelError
from handful.extraction.items import FolderFiles


@pytest.fixture
def files(tmp_path):
    bank = load_clinc150()
    names = np.array(bank.class_names)[bank.labels]
    known = np.concatenate([np.flatnonzero(bank.labels == k)[:5] for k in range(30)])
    batch = np.concatenate([np.flatnonzero(bank.labels == k)[10:22] for k in (3, 17)])
    np.savez(tmp_path / "c.npz", features=bank.take(known), labels=names[known])
    text = [f"sentence {i}" for i in range(24)]
    np.savez(tmp_path / "b.npz", features=bank.take(batch), text=text, shop=["a", "b"] * 12)
    return tmp_path


def test_there_and_back_by_two_commands(files, capsys):
    arguments = ["classify", str(files / "c.npz"), str(files / "b.npz")]
    assert main([*arguments, "--out", str(files / "p.csv"), "--out", str(files / "tasks.json")]) == 0
    assert "tasks for Label Studio" in capsys.readouterr().out
    tasks = json.loads((files / "tasks.json").read_text())
    assert len(tasks) == 24
    data = {"shop": "b", "text": "sentence 3", "row": 3, "item": "row 3"}
    assert tasks[3]["data"] == {**data, "handful_content": tasks[3]["data"]["handful_content"]}
    assert '<Text name="item" value="$text"/>' in (files / "tasks.xml").read_text()
    first = tasks[0]["predictions"][0]["result"][0]
    said = [{**tasks[0], "annotations": [{"result": [{**first, "value": {"choices": ["a class of its own"]}}]}]}]
    (files / "export.json").write_text(json.dumps(said))
    given = [*arguments, "--out", str(files / "p.csv"), "--given", str(files / "export.json")]
    assert main(given) == 0, "a choice that is no class is a new one"
    with (files / "p.csv").open() as stream:
        assert next(csv.DictReader(stream))["label"] == "a class of its own"
    said[0]["data"]["handful_content"] = "another"
    (files / "export.json").write_text(json.dumps(said))
    with pytest.raises(LabelError, match="another batch"):
        classify(files / "c.npz", files / "b.npz", given=files / "export.json")


@pytest.mark.parametrize("command", ["classify", "review"])
def test_an_ending_that_no_tool_has_is_refused_before_the_work(files, capsys, command):
    paths = [str(files / name) for name in ("c.npz", "b.npz")]
    assert main([command, *paths, "--out", str(files / "p.csv"), "--out", str(files / "tasks.txt")]) == 1
    assert "tasks are .json" in " ".join(capsys.readouterr().err.split())
    assert not (files / "p.csv").exists()


def test_an_unknown_item_is_none_of_these_there_too(files):
    found = classify(files / "c.npz", files / "b.npz")
    rejected = np.arange(24) == 5
    chances = np.where(rejected, 0.9, 0.1)
    told = replace(found, unknown=chances, rejected=rejected)
    write_tasks(told, files / "tasks.json")
    tasks = json.loads((files / "tasks.json").read_text())
    results = [one["predictions"][0]["result"][0] for one in tasks]
    assert [place for place, one in enumerate(results) if one["value"]["choices"] == ["none of these"]] == [5]
    assert tasks[5]["predictions"][0]["score"] == 0.9
    assert (files / "tasks.xml").read_text().count('<Choice value="none of these"/>') == 1
    said = [{**tasks[0], "annotations": [{"result": [{**results[0], "value": {"choices": ["none of these"]}}]}]}]
    (files / "export.json").write_text(json.dumps(said))
    after = classify(files / "c.npz", files / "b.npz", given=files / "export.json")
    assert (after.rejected[0], after.about.given, after.about.n_named) == (True, {0: None}, 0)


def test_groups_images_and_bare_vectors(files):
    grouped = classify(files / "c.npz", files / "b.npz", group_by="shop")
    write_tasks(grouped, files / "g.json")
    assert len(json.loads((files / "g.json").read_text())) == 24
    np.save(files / "b.npy", np.load(files / "b.npz")["features"])
    bare = classify(files / "c.npz", files / "b.npy")
    write_tasks(bare, files / "v.json")
    assert 'value="$item"' in (files / "v.xml").read_text()
    object.__setattr__(bare.about.batch, "contents", FolderFiles(files, bare.about.batch.names))
    write_tasks(bare, files / "i.json")
    assert json.loads((files / "i.json").read_text())[0]["data"]["image"] == "/data/local-files/?d=row%200"
