"""What a finished review writes: the table of an export, a page and tasks; the catalogue has the rest."""

import csv
import json
import os
import stat

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.classification import classify, write_predictions
from handful.items import bring, import_labelled
from handful.review.files import Outputs, finish
from handful.review.opening import OpenOptions, open_batch
from handful.review.server import Page
from tests.review.reviews import answer_next, say
from tests.worlds import Clouds

KNOWN, PRESENT, EACH, DIM = 24, 4, 10, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled examples, and a batch of four of their classes and one that they do not have."""
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    clouds = Clouds(KNOWN + 1, DIM, rng)
    examples = np.arange(KNOWN).repeat(2)
    names = np.array([f"kind {k:02}" for k in range(KNOWN + 1)])
    features = clouds.around(examples, 0.8).astype(np.float32)
    np.savez(place / "examples.npz", features=features, labels=names[examples])
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    np.savez(
        place / "today.npz",
        features=clouds.around(truth, 0.8).astype(np.float32),
        site=np.array(["marsh", "wood"])[np.arange(len(truth)) % 2],
    )
    (place / "truth.json").write_text(json.dumps(names[truth].tolist()))
    return place


@pytest.fixture
def file(folder, tmp_path):
    """A catalogue with the examples and the batch."""
    with CatalogueFile.open(tmp_path / "kinds.handful") as made:
        import_labelled(made, folder / "examples.npz")
        bring(made, "today", folder / "today.npz")
        yield made


@pytest.fixture
def truth(folder):
    return json.loads((folder / "truth.json").read_text())


def rows(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def answered(file, truth, n, **options):
    """Answer n requests and call one item bad; return the review."""
    review = open_batch(file, "today", OpenOptions(**options), person="Ada")
    for _ in range(n):
        answer_next(review, truth)
    review.decide(review.number, [len(truth) - 1], "bad")
    return review


@pytest.mark.parametrize("by", [None, "site"])
def test_what_is_written_is_what_classify_writes_with_what_people_said(folder, file, truth, tmp_path, by):
    outputs = Outputs(tmp_path / "labels.csv", tmp_path / "page.html", tmp_path / "tasks.json")
    review = answered(file, truth, 4, group_by=None if by is None else [by])
    done = finish(review, outputs, "today")
    names = [path.rpartition("/")[2] for path in done.written]
    assert names == [f"labels.csv: {len(truth)} rows", "tasks.json", "page.html"]
    assert done.next_batch == f"handful review {tmp_path / 'kinds.handful'} next_batch"

    given = review.session.said.given
    new = [name for name in dict.fromkeys(given.values()) if name == "kind 24"]
    again = classify(folder / "examples.npz", folder / "today.npz", group_by=by, given=given, new_classes=new or None)
    write_predictions(again, tmp_path / "again.csv")
    ours = rows(outputs.labels)
    for item, (row, wanted) in enumerate(zip(ours, rows(tmp_path / "again.csv"), strict=True)):
        decision = review.decisions.get(item)
        if decision is None:
            assert (row["person"], row["said_by"], row["said_at"]) == ("", "", "")
            assert (row["label"], row["model"]) == (wanted["label"], wanted["label"] or "none of these")
        else:
            assert row["person"] == (decision.label or "bad item")
            assert row["model"] == (decision.was or "none of these")
            assert row["said_by"] == "Ada"
            assert row["said_at"].endswith("+00:00")
    assert {row["person"] for row in ours} > {"", "bad item"}


def test_items_that_nobody_named_have_no_label_and_are_said(folder, tmp_path):
    with CatalogueFile.open() as file:
        bring(file, "today", folder / "today.npz")
        review = open_batch(file, "today", person="Ada")
        items = review.session.ask().items
        say(review, list(items), "ant")
        outputs = Outputs(tmp_path / "labels.csv")
        done = finish(review, outputs, "today")
    assert done.next_batch == ""  # a catalogue in memory has no name
    found = rows(outputs.labels)
    open_items = np.flatnonzero(review.session.not_named).tolist()
    assert open_items
    assert all(found[item]["label"] == "" and found[item]["model"] == "not named yet" for item in open_items)
    assert all(found[item]["label"] == found[item]["person"] == "ant" for item in items)


def test_finish_twice_and_after_more_was_named_loses_nothing(folder, file, truth, tmp_path):
    """W2: on 0.5.0 a second Finish wrote its own examples over a catalogue that had learned more since."""
    outputs = Outputs(tmp_path / "today.labels.csv")
    finish(answered(file, truth, 3), outputs, "today")
    file_name = file.path
    with CatalogueFile.open(file_name) as later:  # another day, another process
        import_labelled(later, (np.eye(DIM)[:2], ["lynx", "wolf"]), "more")
    review = open_batch(file, "today", person="Ada")
    file.refresh()
    n_said = len(file.said.answers)
    finish(review, outputs, "today")
    with CatalogueFile.open(file_name) as now:
        assert len(now.said.answers) == n_said
        assert {"lynx", "wolf", "kind 00", "kind 23"} <= set(now.said.classes)
        assert {"lynx", "wolf"} <= set(open_batch(now, "today").session.classes.tolist())


def test_two_outputs_of_one_stem_do_not_touch_one_another(file, truth, tmp_path):
    """W4: on 0.5.0 they shared a catalogue and a file of corrections; the second removed what the first wrote."""
    pytest.importorskip("pyarrow")
    review = answered(file, truth, 3)
    finish(review, Outputs(tmp_path / "B.csv"), "today")
    before = (tmp_path / "B.csv").read_bytes()
    say(review, review.session.ask().items[0], "fox")
    finish(review, Outputs(tmp_path / "B.parquet"), "today")
    assert (tmp_path / "B.csv").read_bytes() == before
    tables = {"B.csv", "B.kinds.csv", "B.parquet", "B.kinds.parquet"}
    assert {path.name for path in tmp_path.iterdir()} == {*tables, "kinds.handful"}
    finish(review, Outputs(tmp_path / "B.csv"), "today")
    assert "fox" in (tmp_path / "B.csv").read_text()


def test_a_group_without_a_name_gets_one_after_the_review_was_finished(file, truth, tmp_path):
    outputs = Outputs(tmp_path / "labels.csv")
    unknown = [item for item, name in enumerate(truth) if name == "kind 24"]
    review = open_batch(file, "today")
    review.decide(review.number, unknown[:3], "none")
    finish(review, outputs, "today")
    before = rows(outputs.labels)
    assert {before[item]["person"] for item in unknown[:3]} == {"none of these"}
    assert all(before[item]["label"] == "" for item in unknown[:3])
    review = open_batch(file, "today")  # the same command again
    members = review.answer.proposals[0].items.tolist()
    assert set(unknown[:3]) <= set(members)
    review.decide(review.number, [item for item in members if item in unknown], "new", "kraken")
    finish(review, outputs, "today")
    after = rows(outputs.labels)
    assert all(after[item]["label"] == "kraken" for item in unknown[:3])


@pytest.mark.parametrize("name", ["cafe\u0301", "f\u200box", "\ufeffbom", "half \ud800", "=1+1", 'a,b"c', "a\nb"])
def test_a_review_with_an_unusual_name_is_finished(folder, tmp_path, name):
    """W5: on 0.5.0 such a name was answered with 500, or Finish was."""
    with CatalogueFile.open(tmp_path / "work.handful") as file:
        bring(file, "today", folder / "today.npz")
        review = open_batch(file, "today")
        say(review, [0, 1], name)
        say(review, [2], "owl")
        (kept,) = set(review.new_classes) - {"owl"}
        outputs = Outputs(tmp_path / "labels.csv")
        finish(review, outputs, "today")
        with outputs.labels.open(encoding="utf-8", newline="") as stream:
            found = list(csv.DictReader(stream))
        assert (found[0]["label"], found[0]["person"]) == (kept, kept)
        decisions = review.decisions
    with CatalogueFile.open(tmp_path / "work.handful") as file:
        assert open_batch(file, "today").decisions == decisions
        bring(file, "next", folder / "examples.npz")
        assert set(open_batch(file, "next").session.classes.tolist()) == {kept, "owl"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_the_owner_can_read_what_is_written(file, truth, tmp_path):
    outputs = Outputs(tmp_path / "labels.csv", tmp_path / "page.html", tmp_path / "tasks.json")
    done = finish(answered(file, truth, 2), outputs, "today")
    assert len(done.written) == 3
    kept = [*filter(None, outputs.written.values()), file.path]
    assert {path: stat.S_IMODE(os.stat(path).st_mode) for path in kept} == dict.fromkeys(kept, 0o600)


def test_a_review_with_groups_says_why_an_item_has_its_label(file):
    page = Page(open_batch(file, "today", OpenOptions(group_by=["site"])), "today")
    found = [page.why(at) for at in range(len(page.review.batch.rows))]
    assert all(len(one["why"]) == 8 and one["near"] for one in found)
