import numpy as np
import pytest

pytest.importorskip("typer")
from handful.cli.main import main
from handful.fitted import load_catalogue
from tests.fitted.test_changes import clouds


@pytest.fixture
def birds(tmp_path):
    X, y = clouds(noise=0.2)
    np.savez(tmp_path / "c.npz", features=X, labels=y)
    np.savez(tmp_path / "b.npz", features=clouds(3, 4, seed=1)[0], id=[f"item {row}" for row in range(12)])
    assert main(["catalogue", "build", str(tmp_path / "c.npz"), "--out", str(tmp_path / "birds.handful")]) == 0
    return tmp_path / "birds.handful"


def run(birds, command, *arguments):
    return main(["catalogue", command, str(birds), *map(str, arguments)])


def test_a_catalogue_is_built_and_shown(birds, capsys):
    assert run(birds, "show") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20 classes, 80 examples of 16 features each."
    assert "From: c.npz (80)" in lines
    assert "      4  class 03" in lines


def test_a_file_of_another_ending_is_not_built(tmp_path, capsys):
    assert main(["catalogue", "build", "c.npz", "--out", str(tmp_path / "c.csv")]) == 1
    assert "ends in .handful" in capsys.readouterr().err


def test_a_check_ends_with_a_status(birds, capsys):
    assert run(birds, "check") == 0
    assert "Nothing looks wrong." in capsys.readouterr().out
    assert run(birds, "rename", "class 00", "Class 01") == 0
    page = birds.parent / "page.html"
    assert run(birds, "check", "--report", page, "--fewest", 5) == 3
    out = capsys.readouterr().out
    assert "'Class 01' (4) and 'class 01' (4) look alike" in out
    assert "and 10 more\n" in out
    assert "Few examples (20)" in page.read_text()
    assert run(birds, "check", "--report", birds) == 1


def test_classes_are_changed(birds, capsys):
    assert run(birds, "merge", "class 00", "class 01", "--into", "zebra") == 0
    assert run(birds, "remove", "class 02", "--example", 12) == 0
    there = load_catalogue(birds)
    assert there.n_classes == 18
    assert there.classes[-1] == "zebra"
    assert there.shots[there.classes == "class 03"] == 3
    assert run(birds, "remove") == 1
    assert run(birds, "remove", "class 2") == 1
    assert "did you mean 'class 12'" in capsys.readouterr().err


def test_what_a_person_said_is_added(birds, capsys):
    (birds.parent / "labels.csv").write_text("item,label\nitem 0,class 00\nitem 1,new one\n")
    arguments = ["--from", birds.parent / "labels.csv", birds.parent / "b.npz", "--person", "Ada"]
    assert run(birds, "add", *arguments) == 0
    assert "2 examples added. The catalogue has 21 classes, 1 of them new: new one." in capsys.readouterr().out
    assert run(birds, "add", *arguments) == 0
    assert "0 examples added; 2 were there already." in capsys.readouterr().out
    assert load_catalogue(birds).record.sources[80].person == "Ada"
    assert run(birds, "show") == 0
    assert "Said by: Ada (2)" in capsys.readouterr().out
    (birds.parent / "labels.csv").write_text("item,label\nitem 0,class 03\n")
    assert run(birds, "add", *arguments) == 1
    assert "is in the catalogue as 'class 00'" in capsys.readouterr().err


def test_encoders_are_compared(tmp_path, capsys):
    X, y = clouds(noise=0.2)
    np.savez(tmp_path / "c.npz", good=X, bad=X + 5 * np.random.default_rng(0).normal(size=X.shape), labels=y)
    assert main(["catalogue", "compare", str(tmp_path / "c.npz"), "--features", "good", "--features", "bad"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("20 classes, 80 examples; 80 were left out once")
    assert any(line.startswith("bad has") and line.endswith("than good: worse.") for line in lines)
    assert main(["catalogue", "compare", str(tmp_path / "c.npz")]) == 1
    assert "name the encoders to compare" in capsys.readouterr().err
