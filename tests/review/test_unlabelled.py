"""A review without a catalogue: names said are the examples, and Finish makes a catalogue of them."""

import csv
import json
import os
import shlex
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.labelled import predictions
from handful.classification.unlabelled import read_unlabelled
from handful.cli.main import main as run
from handful.errors import BankError, LabelError, OptionError
from handful.fitted import Source, add_examples, load_catalogue
from handful.fitted.changes import change, rename
from handful.review import unlabelled as module
from handful.review.batch_review import BatchReview
from handful.review.files import Outputs
from handful.review.journal import opened
from handful.review.serve import Address
from handful.review.server import Page
from handful.review.unlabelled import UnlabelledLabeller, finish_unlabelled, review_unlabelled
from tests.worlds import Clouds

CLASSES, EACH, DIM = ("ant", "bee", "cat", "dog"), 9, 16


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """A table of vectors with names of items, and the true classes."""
    place, rng = tmp_path_factory.mktemp("unlabelled"), np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(len(CLASSES)), EACH))
    clouds = Clouds(len(CLASSES), DIM, rng, apart=2)
    items = [f"item {row}" for row in range(len(truth))]
    np.savez(place / "animals.npz", features=clouds.around(truth), id=items)
    later = clouds.examples(3)
    np.savez(place / "later.npz", features=later)
    return place, [CLASSES[k] for k in truth]


@pytest.fixture
def under_review(batch, tmp_path):
    """The batch, and what opens its review, again with everything that was said."""
    found = read_unlabelled(batch[0] / "animals.npz", tmp_path)

    def opens(**options):
        with opened(tmp_path / "kept", {}) as journal:
            return BatchReview(journal, UnlabelledLabeller(found), from_nothing=True, person="Ada", **options)

    return found, opens


def say(review, items, label):
    review.decide(review.state.number, items, "new" if label else "none", label)


def see_all(review, truth):
    """Answer every request rightly; return the number of decisions."""
    while (request := review.session.ask()) is not None:
        labels = [truth[item] for item in request.items]
        label = request.label or Counter(labels).most_common(1)[0][0]
        right = [item for item in request.items if truth[item] == label]
        if right:
            say(review, right, label)
        for item in set(request.items) - set(right):
            say(review, [item], truth[item])
    return review.progress()["decisions"]


def test_from_nothing_to_labels_and_a_catalogue_for_the_next_batch(batch, under_review, tmp_path):
    found, opens = under_review
    place, truth = batch
    review = opens()
    first = Page(review, "animals").whole()
    assert first["from_nothing"]
    assert first["classes"] == []
    assert len(first["not_named"]) == len(truth)
    assert first["ask"]["asks_name"]
    assert first["map"] is not None
    assert see_all(review, truth) < len(truth) / 2
    outputs = Outputs(tmp_path / "animals.labels.csv")
    done = finish_unlabelled(review, found, outputs, "animals")
    assert done.next_batch == f"handful review {tmp_path / 'animals.handful'} next_batch"
    with outputs.labels.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["label"] for row in rows] == [row["person"] for row in rows] == truth
    catalogue = load_catalogue(outputs.catalogue)
    assert catalogue.classes.tolist() == sorted(CLASSES)
    assert {source.person for source in catalogue.record.sources.values()} == {"Ada"}
    later = classify(outputs.catalogue, place / "later.npz")
    assert predictions(later)["label"] == np.repeat(CLASSES, 3).tolist()


def test_items_that_nobody_named_have_no_label_and_are_said(batch, under_review, tmp_path):
    found, opens = under_review
    review = opens()
    items = review.session.ask().items
    say(review, list(items), "ant")
    assert "not named yet" in review.progress()["said"]
    outputs = Outputs(tmp_path / "labels.csv")
    finish_unlabelled(review, found, outputs, "animals")
    with outputs.labels.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    open_items = np.flatnonzero(review.session.not_named).tolist()
    assert open_items
    assert all(rows[item]["label"] == "" and rows[item]["model"] == "not named yet" for item in open_items)
    assert not set(items) & set(open_items)


def test_merge_split_undo_and_a_second_start_give_the_same_state(batch, under_review):
    _, opens = under_review
    _, truth = batch
    review = opens()
    page = Page(review, "animals")
    rows = {name: [item for item, label in enumerate(truth) if label == name] for name in CLASSES}
    for name in CLASSES:
        say(review, rows[name], name)
    before = json.dumps(page.state(), sort_keys=True)

    review.merge(review.state.number, "ant", "bee")
    assert {one.label for one in review.state.decisions.values()} == {"bee", "cat", "dog"}
    assert set(review.session.result.labels[rows["ant"]]) == {"bee"}
    review.split(review.state.number, "bee")
    split = review.state.steps[-1].items
    assert set(split) in (set(rows["ant"]), set(rows["bee"]))
    assert not set(split) & set(review.state.decisions)
    assert set(review.session.ask().items) <= set(split)
    after = page.state()

    again = Page(opens(), "animals").state()
    assert again | {"notes": []} == after | {"notes": [], "changed": []}
    review.undo(review.state.number)
    review.undo(review.state.number)
    assert json.loads(before) | {"number": 0} == json.loads(json.dumps(page.state())) | {"number": 0}


def test_a_class_is_renamed_by_a_name_that_nobody_has_said(batch, under_review):
    _, opens = under_review
    review = opens()
    say(review, list(review.session.ask().items), "foks")
    review.merge(review.state.number, "foks", "fox")
    assert review.new_classes == ["fox"]
    assert review.session.names == ["fox"]
    for label, into in (("foks", "owl"), ("fox", "fox"), ("fox", "none of these")):
        with pytest.raises((OptionError, LabelError)):
            review.merge(review.state.number, label, into)


def test_names_that_may_occur_are_offered_and_rule_nothing_out(under_review):
    _, opens = under_review
    review = opens(candidates=("owl", "elk"))
    assert Page(review, "animals").state()["offered"] == ["owl", "elk"]
    say(review, list(review.session.ask().items), "fox")
    assert Page(review, "animals").state()["offered"] == ["fox", "owl", "elk"]
    assert review.session.result.classes.tolist() == ["fox"]


def test_a_catalogue_that_is_there_is_not_replaced(batch, under_review, tmp_path):
    found, _ = under_review
    outputs = Outputs(tmp_path / "animals.labels.csv")
    outputs.catalogue.write_bytes(b"mine")
    with pytest.raises(OptionError, match=r"animals\.handful is there already"):
        review_unlabelled(found, outputs, "animals", Address())


def test_a_finished_review_can_be_finished_again(batch, under_review, tmp_path, monkeypatch):
    found, _ = under_review
    outputs = Outputs(tmp_path / "animals.labels.csv")

    def served(page, finish, where):
        say(page.review, list(page.review.session.ask().items), f"name {page.review.state.number}")
        return finish(page.review, False)

    monkeypatch.setattr(module, "serve", served)
    for n_classes in (1, 2):
        review_unlabelled(found, outputs, "animals", Address())
        assert load_catalogue(outputs.catalogue).n_classes == n_classes


@pytest.fixture
def finished_again(batch, under_review, tmp_path, monkeypatch):
    """Finish the review as the command does; each time one more name is given."""
    found, _ = under_review

    def served(page, finish, where):
        say(page.review, list(page.review.session.ask().items), f"name {page.review.state.number}")
        return page, finish(page.review, False)

    monkeypatch.setattr(module, "serve", served)
    return lambda name="animals.labels.csv": review_unlabelled(found, Outputs(tmp_path / name), "animals", Address())


def added(catalogue, batch):
    rows = np.load(batch[0] / "animals.npz")["features"][:2] + 0.1
    add_examples(catalogue, rows, ["lynx", "wolf"], [Source("a", "more", "1"), Source("b", "more", "2")])


@pytest.mark.parametrize(
    "learn",
    [
        added,
        lambda file, _: rename(file, "name 0", "ant"),
        lambda file, _: change(file, lambda old: old.with_record(replace(old.record, calibration=((0.1, 9.0, 1.0),)))),
        lambda file, _: file.write_bytes(b"of another program"),
    ],
    ids=["added", "renamed", "calibrated", "replaced"],
)
def test_what_a_catalogue_has_learned_since_stays(learn, batch, finished_again, tmp_path):
    catalogue = tmp_path / "animals.handful"
    finished_again()
    learn(catalogue, batch)
    since = catalogue.read_bytes()
    page, done = finished_again()
    assert catalogue.read_bytes() == since
    assert page.catalogue == ""  # what Finish asks does not promise it
    assert page.review.notes == done.notes
    assert f"{catalogue} is not as this review wrote it" in done.notes[0]
    assert done.written == [str(tmp_path / "animals.labels.csv"), str(tmp_path / "animals.labels.corrections.json")]
    assert "name 1" in (tmp_path / "animals.labels.csv").read_text()

    # What the sentence says can be done.
    catalogue.rename(tmp_path / "elsewhere.handful")
    page, done = finished_again()
    assert (done.notes, page.review.notes, page.catalogue) == ((), [], str(catalogue))
    assert load_catalogue(catalogue).classes.tolist() == ["name 0", "name 1", "name 2"]


def test_the_command_adds_what_was_named_to_a_catalogue_that_has_learned_since(batch, finished_again, tmp_path):
    finished_again()
    added(tmp_path / "animals.handful", batch)
    _, done = finished_again()
    run(shlex.split(done.command)[1:])
    assert load_catalogue(tmp_path / "animals.handful").classes.tolist() == ["lynx", "name 0", "name 1", "wolf"]


def test_a_catalogue_that_changes_while_the_page_is_open_stays(batch, under_review, tmp_path):
    found, opens = under_review
    outputs = Outputs(tmp_path / "animals.labels.csv")
    review = opens()
    with opened(tmp_path / "kept", {}):
        say(review, list(review.session.ask().items), "ant")
        finish_unlabelled(review, found, outputs, "animals")
        added(outputs.catalogue, batch)
        done = finish_unlabelled(review, found, outputs, "animals")
    assert "is not as this review wrote it" in done.notes[0]
    assert load_catalogue(outputs.catalogue).classes.tolist() == ["ant", "lynx", "wolf"]


@pytest.mark.parametrize("of_second", [False, True])
def test_a_review_that_was_killed_around_the_rename_of_its_catalogue_goes_on(
    of_second, finished_again, tmp_path, monkeypatch
):
    class Killed(BaseException):
        pass

    replace_file = os.replace

    def killed(place, path):
        if path == tmp_path / "animals.handful" and of_second:
            raise Killed
        replace_file(place, path)
        if path == tmp_path / "animals.handful":
            raise Killed

    if of_second:
        finished_again()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            finished_again()
    assert load_catalogue(tmp_path / "animals.handful").n_classes == 1
    _, done = finished_again()
    assert done.notes == ()
    assert load_catalogue(tmp_path / "animals.handful").n_classes == 2 + of_second


def test_a_second_output_of_the_same_stem_is_refused_and_both_can_go_on(finished_again, tmp_path):
    finished_again("animals.csv")
    before = (tmp_path / "animals.corrections.json").read_bytes()
    with pytest.raises(OptionError, match=r"animals\.csv\.review would write answers to one file, animals\.corr"):
        finished_again("animals.parquet")
    assert (tmp_path / "animals.corrections.json").read_bytes() == before
    finished_again("animals.csv")
    (tmp_path / "animals.csv.review").rename(tmp_path / "others.csv.review")
    finished_again("others.csv")
    assert load_catalogue(tmp_path / "others.handful").n_classes == 3
    (tmp_path / "animals.handful").unlink()
    finished_again("animals.parquet")
    assert load_catalogue(tmp_path / "animals.handful").n_classes == 1


def test_nothing_named_is_no_catalogue(batch, under_review, tmp_path):
    found, opens = under_review
    review = opens()
    say(review, list(review.session.ask().items), None)
    done = finish_unlabelled(review, found, Outputs(tmp_path / "animals.labels.csv"), "animals")
    assert "no catalogue" in done.notes[0]
    assert not (tmp_path / "animals.handful").exists()


def test_a_table_of_measurements_becomes_a_table_of_examples(tmp_path):
    rng = np.random.default_rng(1)
    truth = np.repeat(["iris", "rose"], 20)
    height = np.where(truth == "iris", 20.0, 60.0) + rng.normal(size=40)
    width = np.where(truth == "iris", 0.5, 0.2) + 0.02 * rng.normal(size=40)
    table = tmp_path / "flowers.csv"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["height", "width", "garden"])
        writer.writerows(zip(height, width, ["a"] * 40, strict=True))
    found = read_unlabelled(table, tmp_path)
    with opened(tmp_path / "kept", {}) as journal:
        review = BatchReview(journal, UnlabelledLabeller(found), from_nothing=True)
        see_all(review, truth.tolist())
        done = finish_unlabelled(review, found, Outputs(tmp_path / "flowers.labels.csv"), "flowers")
    examples = tmp_path / "flowers.examples.csv"
    assert str(examples) in done.written
    assert done.next_batch == f"handful review {examples} next_batch"
    assert predictions(classify(examples, table))["label"] == truth.tolist()


@pytest.mark.parametrize("rows", [np.ones((1, 4)), np.ones((5, 4)), np.eye(4)[:2], np.zeros((3, 4))])
def test_a_batch_of_one_item_of_equal_items_and_of_two(rows, tmp_path):
    np.save(tmp_path / "few.npy", rows)
    found = read_unlabelled(tmp_path / "few.npy", tmp_path)
    with opened(tmp_path / "kept", {}) as journal:
        review = BatchReview(journal, UnlabelledLabeller(found), from_nothing=True)
        assert len(Page(review, "few").whole()["map"]["items"]) == len(rows)
        see_all(review, ["fox"] * len(rows))
        finish_unlabelled(review, found, Outputs(tmp_path / "few.labels.csv"), "few")
    assert load_catalogue(tmp_path / "few.handful").classes.tolist() == ["fox"]


def test_what_cannot_be_compared_is_refused_with_a_sentence(batch, tmp_path):
    place, _ = batch
    with pytest.raises(OptionError, match="an encoder is for images and sentences"):
        read_unlabelled(place / "animals.npz", tmp_path, encoder="minilm")
    with pytest.raises(OptionError, match="leave skip_bad out"):
        read_unlabelled(place / "animals.npz", tmp_path, skip_bad=True)
    (tmp_path / "labels.csv").write_text("name,colour\nfox,red\n")
    with pytest.raises(BankError):
        read_unlabelled(tmp_path / "labels.csv", tmp_path)


def test_items_without_a_catalogue_have_a_map_before_and_after_names(batch, under_review):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    _, opens = under_review
    review = opens()
    for name in (None, *CLASSES):
        if name is not None:
            say(review, [item for item, label in enumerate(batch[1]) if label == name], name)
        ax = review.session.result.plot_map()
        drawn = sum(len(points.get_offsets()) for points in ax.collections)
        assert drawn >= len(batch[1])
    found = [text.get_text().split()[-1] for text in ax.get_legend().get_texts()]
    assert sorted(found) == sorted(CLASSES)


def test_before_the_first_name_nothing_is_said_about_labels(under_review):
    review = under_review[1]()
    assert review.progress()["said"] == "0 of 36 items seen. 36 items are not named yet."
    say(review, review.session.ask().items, "ant")
    said = review.progress()["said"]
    assert " items seen in 1 decision. About " in said
    assert "are expected to be right" in said


def test_where_one_may_stop_the_page_says_that_small_classes_may_have_no_name(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(6), [40, 30, 30, 20, 2, 1]))
    np.save(tmp_path / "many.npy", Clouds(6, 24, rng, apart=2).around(truth))
    found = read_unlabelled(tmp_path / "many.npy", tmp_path)
    told = []
    with opened(tmp_path / "kept", {}) as journal:
        review = BatchReview(journal, UnlabelledLabeller(found), from_nothing=True)
        while (request := review.session.ask()) is not None:
            progress = review.progress()
            told.append(progress["may_stop"])
            assert progress["said"].endswith(" A class with one or two items may still have no name.") == told[-1]
            for k in dict.fromkeys(truth[list(request.items)].tolist()):
                say(review, [item for item in request.items if truth[item] == k], f"name {k}")
    assert set(told) == {False, True}
    assert "one or two" not in review.progress()["said"]  # everything has been seen


@pytest.mark.parametrize("name", ["cafe\u0301", "f\u200box", "\ufeffbom", "half \ud800"])
def test_a_review_with_an_unusual_name_is_finished(batch, under_review, tmp_path, name):
    found, opens = under_review
    review = opens()
    say(review, [0, 1], name)
    say(review, [2], "owl")
    (kept,) = set(review.new_classes) - {"owl"}
    outputs = Outputs(tmp_path / "animals.labels.csv")
    finish_unlabelled(review, found, outputs, "animals")
    with outputs.labels.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert (rows[0]["label"], rows[0]["person"]) == (kept, kept)
    assert load_catalogue(outputs.catalogue).classes.tolist() == sorted([kept, "owl"])
    assert opens().state.decisions == review.state.decisions


def test_names_in_an_older_journal_are_read_as_they_are_kept_now(batch, under_review, tmp_path):
    _, opens = under_review
    say(opens(), [0], "fox")
    with opened(tmp_path / "kept", {}) as journal:
        journal.append({**journal.events[-1], "items": [[1, "item 1", ""]], "labels": ["f\u200box"]})
        journal.append({"step": "merge", "names": ["f\u200box", "cafe\u0301"]})
    review = opens()
    assert (review.notes, review.new_classes) == ([], ["café"])
    assert review.session.said.given == {0: "café", 1: "café"}
