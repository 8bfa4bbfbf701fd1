"""`handful catalogue`: what is in a catalogue, what is wrong with it, and changes, which are events."""

import shutil

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.cli.main import main
from handful.items.fitting import model_at
from tests.classification.test_steps import pictures as pictures  # a fixture
from tests.clouds_at_hand import clouds


@pytest.fixture
def birds(tmp_path):
    X, y = clouds(noise=0.2)
    np.savez(tmp_path / "c.npz", features=X, labels=y)
    np.savez(tmp_path / "b.npz", features=clouds(3, 4, seed=1)[0], id=[f"item {row}" for row in range(12)])
    assert main(["catalogue", "build", str(tmp_path / "c.npz"), "--out", str(tmp_path / "birds.handful")]) == 0
    return tmp_path / "birds.handful"


def run(birds, command, *arguments):
    return main(["catalogue", command, str(birds), *map(str, arguments)])


def labels_of(birds):
    with CatalogueFile.open(birds, create=False) as file:
        return {item: one.label for item, one in file.said.answers.items()}


def test_a_catalogue_is_built_and_shown(birds, capsys):
    capsys.readouterr()
    assert run(birds, "add", birds.parent / "b.npz") == 0
    assert "b: 12 rows are new." in capsys.readouterr().out
    assert run(birds, "show") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20 classes, 92 items, 80 with an answer."
    assert "Batches: c (80), b (12)" in lines
    assert "      4  class 03" in lines
    assert any(line.startswith("Said by: ") for line in lines)


def test_a_file_that_is_there_or_of_another_ending_is_not_built(birds, capsys):
    table = str(birds.parent / "c.npz")
    before = birds.read_bytes()
    assert main(["catalogue", "build", table, "--out", str(birds)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert birds.read_bytes() == before
    assert main(["catalogue", "build", table, "--out", str(birds.parent / "c.csv")]) == 1
    assert "ends in .handful" in capsys.readouterr().err


def test_a_build_that_is_refused_leaves_nothing_behind(tmp_path):
    np.save(tmp_path / "b.npy", np.eye(3))
    assert main(["catalogue", "build", str(tmp_path / "b.npy"), "--out", str(tmp_path / "c.handful")]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b.npy"]


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


def test_a_check_names_items_by_their_numbers(birds, capsys):
    with CatalogueFile.open(birds) as file:
        file.append("named", {"label": "class 05"}, [EventItem(3)], person="Ada")  # it is a class 00
    assert run(birds, "check") == 3
    out = capsys.readouterr().out
    assert "Labels that look wrong (1):" in out
    assert "Example 3, labelled class 05, looks like class 00" in out
    assert run(birds, "remove", "--item", 3) == 0
    assert run(birds, "check") == 0
    (birds.parent / "c.npz").unlink()
    assert run(birds, "check") == 3
    assert "c.npz is gone" in capsys.readouterr().out


def test_pictures_are_checked_and_shown(pictures, capsys):
    birds = pictures / "birds.handful"
    built = ["catalogue", "build", str(pictures / "catalogue"), "--out", str(birds), "--encoder", "small"]
    assert main(built) == 0
    capsys.readouterr()
    assert run(birds, "show") == 0
    assert "embedded by small" in capsys.readouterr().out
    place = next(path for path in (pictures / "catalogue").rglob("*.png"))
    place.unlink()
    page = pictures / "page.html"
    assert run(birds, "check", "--report", page, "--fewest", 9) == 3
    assert "data:image/jpeg" in page.read_text()
    assert "1 example: its file is gone from catalogue" in capsys.readouterr().out


def test_classes_are_changed_by_events(birds, capsys):
    before = labels_of(birds)
    assert run(birds, "merge", "class 00", "class 01", "--into", "zebra", "--person", "Ada") == 0
    assert run(birds, "remove", "class 02", "--item", 13) == 0
    after = labels_of(birds)
    assert [after[item] for item in range(1, 9)] == ["zebra"] * 8
    assert not set(range(9, 13)) & set(after)
    assert (before[13], after[13]) == ("class 03", None)
    found = model_at(birds)
    assert found.n_classes == 18
    assert found.shots[found.classes == "class 03"] == 3
    assert run(birds, "remove") == 1
    assert run(birds, "remove", "class 2") == 1
    assert "did you mean 'class 12'" in capsys.readouterr().err
    assert run(birds, "rename", "class 04", "class 05") == 1
    assert "merge the two" in capsys.readouterr().err
    assert run(birds, "remove", "--item", 999) == 1
    with CatalogueFile.open(birds) as file:
        assert [event.person for event in file.history.events if event.kind == "renamed"] == ["Ada", "Ada"]
        for event in [event for event in file.history.events if event.kind in ("renamed", "removed", "open")]:
            file.take_back(event.event)
    assert labels_of(birds) == before  # nothing was lost


def test_a_batch_is_added_once_and_labels_if_they_are_a_persons(birds, capsys):
    X, y = clouds(3, 2, seed=5)
    np.savez(birds.parent / "more.npz", features=X, labels=y)
    assert run(birds, "add", birds.parent / "more.npz") == 0
    assert "more: 6 rows are new." in capsys.readouterr().out
    assert len(labels_of(birds)) == 80  # labels of a table may be those of a model
    assert run(birds, "add", birds.parent / "more.npz", "--labelled", "--person", "Ada") == 0
    assert "nothing has changed" in capsys.readouterr().out
    assert len(labels_of(birds)) == 86
    assert run(birds, "add", birds.parent / "more.npz", "--labelled") == 0
    assert len(labels_of(birds)) == 86
    np.savez(birds.parent / "other.npz", features=X[:, :5], labels=y)
    assert run(birds, "add", birds.parent / "other.npz") == 1
    assert "cannot be compared" in capsys.readouterr().err


def test_measurements_have_a_catalogue_and_no_model(tmp_path, capsys):
    (tmp_path / "m.csv").write_text("height,width,label\n1.5,2.5,a\n5.5,6.5,b\n")
    birds = tmp_path / "m.handful"
    assert main(["catalogue", "build", str(tmp_path / "m.csv"), "--out", str(birds)]) == 0
    assert "measured in 2 columns" in capsys.readouterr().out
    assert run(birds, "check") == 1
    assert "has measurements" in capsys.readouterr().err


def test_copies_that_two_people_worked_on_become_one(birds, capsys):
    copy = birds.parent / "copy.handful"
    shutil.copy(birds, copy)
    for path, name in ((birds, "fox"), (copy, "wolf")):
        with CatalogueFile.open(path) as file:
            file.append("named", {"label": name}, [EventItem(1)], person=name)
            file.append("named", {"label": name}, [EventItem(2 if path == birds else 3)], person=name)
    capsys.readouterr()
    kept = copy.read_bytes()
    assert run(birds, "join", copy) == 0
    assert f"2 events and 0 items came from {copy}. 1 item is disputed now" in capsys.readouterr().out
    assert copy.read_bytes() == kept
    assert labels_of(birds)[2] == "fox"
    assert labels_of(birds)[3] == "wolf"
    assert 1 not in labels_of(birds)
    assert run(birds, "check") == 3
    assert "was called 'fox' and 'wolf'" in capsys.readouterr().out
    assert run(birds, "join", copy) == 0
    assert "0 events and 0 items came from" in capsys.readouterr().out
    assert run(birds, "join", birds) == 1
