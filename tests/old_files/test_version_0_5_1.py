"""Files of version 0.5.1: catalogues and reviews become catalogues of their own, with all that was said."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handful import classify
from handful.catalogue.file import CatalogueFile
from handful.cli.main import make_app
from handful.items.earlier import is_earlier
from tests.old_files.opening import review_of, said_in

KEPT = Path(__file__).parent / "v0_5_1"
TRUTH = json.loads((KEPT / "truth.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a copy, in which the commands run."""
    place = Path(shutil.copytree(KEPT, tmp_path / "kept"))
    monkeypatch.chdir(place)
    return place


def opened_twice(catalogue, batch, labels):
    """Open a review twice; return what was said, and the notes of both."""
    catalogue = None if catalogue is None else Path(catalogue)
    notes = []
    for _ in range(2):
        with review_of(catalogue, Path(batch), labels) as review:
            notes.append(review.notes)
            said = said_in(review), review.n_steps, review.session.from_nothing
    return *said, notes


def test_a_fitted_catalogue_labels_a_batch(folder):
    found = classify(folder / "kinds.handful", folder / "monday.npz")
    known = [row for row, label in enumerate(TRUTH["monday"]) if label != "kind 6"]
    assert sum(found.labels[row] == TRUTH["monday"][row] for row in known) >= len(known) - 2


def test_an_unfinished_review_goes_on_with_answers_of_every_kind(folder):
    said, n_steps, from_nothing, (first, second) = opened_twice("kinds.handful", "monday.npz", "monday.labels.csv")
    assert said == {
        **{0: "kind 1", 1: "kind 3", 2: "kind 2", 3: "kind 6", 4: "none", 5: "none", 6: "bad", 7: "skip"},
        **{9: "skip", 10: "kind 5", 11: "none", 12: "bad"},
    }
    assert (n_steps, from_nothing, second) == (12, False, [])
    assert first == [
        "kinds.handful was of an earlier version: it is kinds.old.handful now, and its examples are in the new "
        "kinds.handful. What earlier reviews taught about certainties is learnt again.",
        "The answers about 12 items in monday.labels.csv.review, a review of version 0.5, were taken over. That folder "
        "is not needed any more.",
    ]
    assert (folder / "kinds.old.handful").read_bytes() == (KEPT / "kinds.handful").read_bytes()
    assert (folder / "monday.labels.csv.review" / "journal.jsonl").is_file()


def test_people_times_and_what_the_model_said_are_kept(folder):
    with review_of(Path("kinds.handful"), Path("monday.npz"), "monday.labels.csv") as review:
        lines = (folder / "monday.labels.csv.review" / "journal.jsonl").read_text().splitlines()
        first = next(event for line in lines if "items" in (event := json.loads(line.partition(" ")[2])))
        event = review.session.events[0]
        assert (event.time, event.person, event.items[0].offered) == (first["at"], "ada", first["was"][0])
        review.decide(review.number, [13], "class", "kind 0")
        assert review.session.events[-1].person == "bob"
        review.undo(review.number)
        review.undo(review.number)
        assert 12 not in said_in(review)
    with review_of(Path("kinds.handful"), Path("monday.npz"), "monday.labels.csv") as review:
        assert 12 not in said_in(review), "what was taken back is not taken over again"


def test_a_finished_review_with_its_catalogue_goes_on(folder):
    said, _, _, (_, second) = opened_twice("grown.handful", "tuesday.npz", "tuesday.labels.csv")
    assert said == dict(enumerate(TRUTH["tuesday"][:12]))
    assert not second
    with CatalogueFile.open("grown.handful") as file:
        assert "kind 6" in file.said.classes


def test_a_review_without_a_catalogue_keeps_merged_and_split_classes(folder):
    said, n_steps, from_nothing, (first, second) = opened_twice(None, "patterns", "patterns.labels.csv")
    named = {item: label for item, label in said.items() if label != "skip"}
    assert named == {item: TRUTH["patterns"][item] for item in named}
    assert sorted(named.values()).count("stripes") == 5
    assert list(said.values()).count("skip") == 1
    assert (n_steps, from_nothing, len(first), second) == (8, True, 1, [])


@pytest.mark.parametrize(("batch", "n_said"), [("tiles", 9), ("friday.npz", 12)])
def test_a_catalogue_that_a_review_wrote_is_the_same_work(folder, batch, n_said):
    name = Path(batch).stem
    said, _, from_nothing, (first, second) = opened_twice(None, batch, f"{name}.labels.csv")
    assert said == dict(enumerate(TRUTH[name][:n_said]))
    assert from_nothing, "its examples are items of the batch, and count once"
    assert (len(first), second) == (2, [])
    with CatalogueFile.open(f"{name}.handful") as file:
        assert list(file.said.places) == [name]
        assert sum(one.label is not None for one in file.said.answers.values()) == n_said


def test_texts_and_measurements_are_found_again(folder):
    assert opened_twice(None, "calls.csv", "calls.labels.csv")[0] == {0: "red", 6: "red"}
    assert opened_twice(None, "sizes.csv", "sizes.labels.csv")[0] == {0: "oak", 3: "oak"}


def test_photographs_that_came_went_and_moved_since(folder):
    shutil.move("patterns/00.png", "patterns/first.png")
    Path("patterns/01.png").unlink()
    with review_of(None, Path("patterns"), "patterns.labels.csv") as review:
        said = {review.batch.names[item]: label for item, label in said_in(review).items()}
        assert said["first.png"] == TRUTH["patterns"][0]
        assert len(said) == 11
        assert review.notes[-1].startswith("The answers about 13 items in patterns.labels.csv.review")
        assert "; 1 other item of it is not in this batch as then. " in review.notes[-1]


@pytest.mark.parametrize("out", [[], ["--out", "kept/monday.labels.csv"]])
def test_the_command_finds_it_beside_the_labels_and_says_so(folder, tmp_path, monkeypatch, out):
    if out:
        monkeypatch.chdir(tmp_path)
    served = []

    def serve(page, finish, where, *, catalogue, watching):
        watching.start(60)
        watching.stop()
        served.append(page.review)

    monkeypatch.setattr("handful.review.serve.serve", serve)
    given = [str(folder / "kinds.handful"), str(folder / "monday.npz"), *out]
    found = CliRunner().invoke(make_app(), ["review", *given])
    assert found.exit_code != 0, "nobody pressed Finish"
    (review,) = served
    assert review.n_steps == 12
    assert "were taken over" in review.notes[-1]


def test_every_old_catalogue_is_told_from_a_new_one(folder):
    assert all(is_earlier(file) for file in folder.glob("*.handful"))
