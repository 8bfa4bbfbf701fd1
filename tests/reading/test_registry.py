"""What another package registers is used as what handful has: scores, sites, names and tasks."""

import json

import numpy as np
import pytest

from handful.classification import classify, rescore, write_predictions, write_tasks
from handful.errors import OptionError
from handful.reading import (
    ClassName,
    Field,
    ScoreFormat,
    SiteFormat,
    ToolScores,
    Writer,
    register_field,
)
from handful.reading.class_lists import common_names, names_of, taxa
from handful.reading.registry import FIELDS
from handful.reading.scores import read_scores
from handful.reading.sites import read_sites, site_files, write_sites


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """What is registered here is gone afterwards."""
    monkeypatch.setattr(FIELDS, "_values", dict(FIELDS))


def read_votes(path):
    rows = json.loads(path.read_text())["votes"]

    def write(answers, out):
        out.write_text(json.dumps([answer.label for answer in answers]))

    names = tuple(f"{row['shell']}.jpg" for row in rows)
    classes = [list(row["says"]) for row in rows]
    scores = [list(row["says"].values()) for row in rows]
    return ToolScores("probabilities", names, names, classes, scores, write)


def test_scores_of_another_tool_there_and_back(tmp_path):
    says = {"cowrie": 0.8, "whelk": 0.1}
    (tmp_path / "v.json").write_text(json.dumps({"votes": [{"shell": n, "says": says} for n in range(3)]}))
    with pytest.raises(Exception, match="no scores in a known format"):
        read_scores(tmp_path / "v.json")
    register_field("shells", Field(scores=(ScoreFormat("votes", lambda content: "votes" in content, read_votes),)))
    write_predictions(rescore(tmp_path / "v.json"), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == ["cowrie"] * 3


def test_sites(tmp_path):
    written = []
    register_field(
        "shells",
        Field(
            sites=(
                SiteFormat(
                    "lists of beaches",
                    lambda path: path.suffix == ".beaches",
                    lambda path: {"file": ["1.jpg", "2.jpg"], "beach": ["north", "south"]},
                    lambda source, answers, out: written.append((source, answers, out)),
                    lambda path: {"sites": path},
                    "sites",
                ),
            )
        ),
    )
    path = tmp_path / "here.beaches"
    assert read_sites(path)["beach"] == ["north", "south"]
    assert site_files(path) == {"sites": path}
    write_sites(path, ["2.jpg"], [None], tmp_path / "out")
    assert written == [(path, {1: None}, tmp_path / "out")]
    with pytest.raises(OptionError, match=r"labels go into .*lists of beaches"):
        write_sites(tmp_path / "plain.csv", [], [], tmp_path / "out")


def test_names_of_classes():
    def name_of(label):
        scientific, found, common = label.partition(" = ")
        return ClassName(scientific, common, {"genus": scientific.split()[0]}) if found else None

    register_field("shells", Field(name_of=name_of))
    assert names_of("Monetaria moneta = money cowrie") == {"monetaria moneta", "money cowrie"}
    assert common_names(["Monetaria moneta = money cowrie", "whelk"]) == ("money cowrie", "whelk")
    assert taxa(["Monetaria moneta = money cowrie", "whelk"], "genus") == {
        "Monetaria moneta = money cowrie": "Monetaria"
    }


def test_tasks(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cowrie", "whelk", "limpet"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]])
    register_field(
        "shells",
        Field(
            tasks={".tasks": Writer(lambda found, path: path.write_text(" ".join(map(str, found.labels))))},
        ),
    )
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz")
    write_tasks(found, tmp_path / "shells.tasks")
    assert (tmp_path / "shells.tasks").read_text() == "whelk whelk cowrie"
