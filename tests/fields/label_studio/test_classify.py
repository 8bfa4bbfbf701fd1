"""A labelled batch to Label Studio and back: what people chose there are answers in a catalogue."""

import json
from dataclasses import replace

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.classification import classify
from handful.classification.files import write_tasks
from handful.cli.main import main
from handful.datasets import load_clinc150
from handful.extraction.items import FolderFiles
from tests.items.photographs import VOWELS, register


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


def test_tasks_are_written_beside_labels(files, capsys):
    arguments = ["classify", str(files / "c.npz"), str(files / "b.npz")]
    assert main([*arguments, "--out", str(files / "p.csv"), "--out", str(files / "tasks.json")]) == 0
    assert "tasks for Label Studio" in capsys.readouterr().out
    tasks = json.loads((files / "tasks.json").read_text())
    assert len(tasks) == 24
    assert tasks[3]["data"] == {"shop": "b", "text": "sentence 3", "row": 3, "item": "row 3"}
    assert '<Text name="item" value="$text"/>' in (files / "tasks.xml").read_text()


def test_what_people_chose_joins_a_catalogue(tmp_path, capsys):
    register()
    calls = tmp_path / "calls.csv"
    calls.write_text("text,label\nwake me at eight,alarm\nwhere is my bag,luggage\n")
    (tmp_path / "today.csv").write_text("text\nwake me\nmy bag is gone\nhello\n")
    work = str(tmp_path / "calls.handful")
    assert main(["catalogue", "build", str(calls), "--out", work, "--encoder", VOWELS]) == 0
    out = ["--out", str(tmp_path / "o.csv"), "--out", str(tmp_path / "tasks.json")]
    assert main(["classify", work, str(tmp_path / "today.csv"), *out]) == 0
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    for one, choice in zip(tasks, ("alarm", "luggage", "a class of its own"), strict=True):
        result = {**one["predictions"][0]["result"][0], "value": {"choices": [choice]}}
        one["annotations"] = [{"result": [result]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    added = ["catalogue", "add", work, str(tmp_path / "export.json"), "--labelled", "--person", "Ada"]
    assert main(added) == 0
    with CatalogueFile.open(tmp_path / "calls.handful") as file:
        said = [one.label for one in file.said.answers.values()]
        assert said == ["alarm", "luggage", "alarm", "luggage", "a class of its own"]
        assert file.history.events[-1].person == "Ada"
    revision = _revision(work)
    assert main(added) == 0
    assert _revision(work) == revision


def _revision(work):
    with CatalogueFile.open(work) as file:
        return file.revision


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
