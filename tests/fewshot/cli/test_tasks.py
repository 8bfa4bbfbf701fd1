import json

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.cli.main import main
from handful_fewshot import CorrelatedStream, Dirichlet, ShotsPerClass, TaskSpec, UniformOverPool, draw
from tests.banks_at_hand import random_bank


@pytest.fixture
def bank(tmp_path):
    return random_bank(n_classes=6, least=12, most=20).save(tmp_path / "bank")


def run(capsys, *arguments) -> list[str]:
    assert main(["tasks", "draw", *map(str, arguments)]) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    return streams.out.splitlines()


def test_rows_are_those_of_the_library(bank, tmp_path, capsys):
    options = ["--shots", 2, "--k-eff", 3, "--n-query", 10, "--seed", 7, "--tasks", "3:6"]
    tasks = [json.loads(line) for line in run(capsys, "--bank", tmp_path / "bank", *options)]
    drawn = draw(bank.labels, TaskSpec(ShotsPerClass(2), UniformOverPool(3), 10), 7, range(3, 6))
    assert [task["task"] for task in tasks] == [3, 4, 5]
    for t, task in enumerate(tasks):
        assert task["support"] == drawn.support[t].tolist()
        assert task["query"] == drawn.query[t].tolist()
        assert bank.labels[task["query"]].tolist() == [task["classes"][k] for k in task["query_labels"]]


def test_a_concentration_is_that_of_the_library(bank, tmp_path, capsys):
    options = ["--shots", 2, "--n-query", 10, "--tasks", "0:3", "--query", "dirichlet", "--k-eff", 4]
    lines = run(capsys, "--bank", tmp_path / "bank", *options, "--concentration", 0.5)
    drawn = draw(bank.labels, TaskSpec(ShotsPerClass(2), Dirichlet(4, 0.5), 10), 0, range(3))
    assert [json.loads(line)["query"] for line in lines] == drawn.query.tolist()


def test_a_range_and_a_stream_are_those_of_the_library(bank, tmp_path, capsys):
    options = ["--shots", 2, "--n-query", 4, "--tasks", "1:4", "--k-eff", "2-4"]
    stream = ["--query", "stream", "--concentration", 0.5, "--slots", 3, "--batches", 2]
    for more, rule in (([], UniformOverPool((2, 4))), (stream, CorrelatedStream((2, 4), 3, 0.5, 2))):
        lines = run(capsys, "--bank", tmp_path / "bank", *options, *more)
        drawn = draw(bank.labels, TaskSpec(ShotsPerClass(2), rule, 4), 0, range(1, 4))
        assert [json.loads(line)["query"] for line in lines] == drawn.query.tolist()


def test_a_preview_names_the_classes(bank, tmp_path, capsys):
    options = ["--preview", "--k-eff", 2, "--n-query", 8, "--query", "balanced", "--tasks", "0:4"]
    lines = run(capsys, "--bank", tmp_path / "bank", *options)
    assert len(lines) == 4
    assert lines[0].startswith("task 0: 30 support rows of 6 classes, 8 queries of 2: class ")
    assert lines[0].count(" x4") == 2


def test_items_of_unknown_classes_are_drawn_and_counted(bank, tmp_path, capsys):
    unknown = ["--unknown-classes", 2, "--unknown-share", 0.25, "--k-eff", 2, "--n-query", 8, "--tasks", "0:4"]
    for line in run(capsys, "--bank", tmp_path / "bank", *unknown):
        task = json.loads(line)
        strangers = [row for row, label in zip(task["query"], task["query_labels"], strict=True) if label == -1]
        assert len(strangers) == 2
        assert not set(bank.labels[strangers].tolist()) & set(task["classes"])
    preview = run(capsys, "--bank", tmp_path / "bank", *unknown, "--preview")
    assert preview[0].startswith("task 0: 20 support rows of 4 classes, 6 queries of ")
    assert preview[0].endswith("; 2 of classes without support")


def test_the_support_may_be_another_bank(bank, tmp_path, capsys):
    library = random_bank(5, n_classes=6).save(tmp_path / "library")
    options = ["--support-bank", tmp_path / "library", "--k-eff", 2, "--n-query", 6, "--query", "dirichlet"]
    options += ["--n-classes", 3]
    tasks = [json.loads(line) for line in run(capsys, "--bank", tmp_path / "bank", *options)]
    assert len(tasks) == 10
    for task in tasks:
        assert library.labels[task["support"]].tolist() == [task["classes"][k] for k in task["support_labels"]]
        assert sorted(task["support"]) == np.flatnonzero(np.isin(library.labels, task["classes"])).tolist()
    random_bank(n_classes=3).save(tmp_path / "other")
    assert main(["tasks", "draw", "--bank", str(tmp_path / "bank"), "--support-bank", str(tmp_path / "other")]) == 1
    assert "must have the same classes" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-3", "5:5", "-1:4", "a:b", "", ":"])
def test_impossible_ranges_are_refused(bank, tmp_path, capsys, text):
    assert main(["tasks", "draw", "--bank", str(tmp_path / "bank"), "--tasks", text]) == 2
    assert "FIRST:END" in capsys.readouterr().err


def test_the_shipped_bank_has_a_name_here_too(capsys):
    (line,) = run(capsys, "--bank", "clinc150", "--tasks", 1, "--preview")
    assert line.startswith("task 0: 750 support rows of 150 classes, 75 queries of ")
    assert run(capsys, "--bank", "mine=clinc150", "--tasks", 1, "--preview") == [line]


def test_tasks_are_drawn_from_a_split(tmp_path, capsys):
    random_bank(n_classes=6, least=12, most=20, splits={"test": [1, 2, 5]}).save(tmp_path / "split")
    small = ("--bank", tmp_path / "split", "--split", "test", "--k-eff", 2, "--n-query", 6)
    (line,) = run(capsys, *small, "--tasks", 1, "--preview")
    assert line.startswith("task 0: 15 support rows of 3 classes, ")
