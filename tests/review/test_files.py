"""A review of files: what is written in the end is what `classify` writes with the corrections, and more."""

import csv
import json
import os
import stat
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import classify, write_predictions
from handful.classification.building import build_catalogue
from handful.classification.label import embed
from handful.classification.task import check, read_inputs
from handful.errors import OptionError, StorageError
from handful.fitted import load_catalogue
from handful.fitted.changes import change, rename
from handful.review import files
from handful.review.batch_review import BatchReview
from handful.review.files import FileLabeller, Outputs, finish
from handful.review.journal import opened
from handful.review.serve import Address
from handful.review.server import Page
from tests.review.reviews import answer_next
from tests.worlds import Clouds

KNOWN, PRESENT, EACH, DIM = 24, 4, 10, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    clouds = Clouds(KNOWN + 1, DIM, rng)
    examples = np.arange(KNOWN).repeat(2)
    names = np.array([f"kind {k:02}" for k in range(KNOWN + 1)])
    np.savez(
        place / "catalogue.npz",
        features=clouds.around(examples, 0.8),
        labels=names[examples],
    )
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    np.savez(
        place / "today.npz",
        features=clouds.around(truth, 0.8),
        site=np.array(["marsh", "wood"])[np.arange(len(truth)) % 2],
    )
    build_catalogue(place / "catalogue.npz", place / "kinds.handful")
    (place / "truth.json").write_text(json.dumps(names[truth].tolist()))
    return place


def fitted(folder, tmp_path, catalogue="catalogue.npz", **known):
    return embed(check(read_inputs(folder / catalogue, folder / "today.npz"), **known), tmp_path)


def rows(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def reviewed(ready, outputs, truth, n):
    """Answer n questions, finish, and return the review."""
    with opened(outputs.folder, {"batch": ready.batch.fingerprint}) as journal:
        review = BatchReview(journal, FileLabeller(ready), person="Ada")
        for _ in range(n):
            answer_next(review, truth)
        review.decide(review.state.number, [max(set(range(len(truth))) - set(review.state.decisions))], "bad")
        return review


@pytest.mark.parametrize("by", [None, "site"])
def test_what_is_written_is_what_classify_writes_with_the_corrections(folder, tmp_path, by):
    truth = json.loads((folder / "truth.json").read_text())
    outputs = Outputs(tmp_path / "labels.csv", tmp_path / "page.html", tmp_path / "tasks.json")
    review = reviewed(fitted(folder, tmp_path, group_by=by), outputs, truth, 8)
    done = finish(review, outputs, "today")
    assert [path.rpartition("/")[2] for path in done.written] == [
        "labels.csv", "labels.corrections.json", "tasks.json", "page.html",
    ]  # fmt: skip
    again = classify(
        folder / "catalogue.npz", folder / "today.npz", group_by=by, given=tmp_path / "labels.corrections.json"
    )
    write_predictions(again, tmp_path / "again.csv")
    ours = rows(tmp_path / "labels.csv")
    people = [(row.pop("person"), row.pop("model")) for row in ours]
    assert ours == rows(tmp_path / "again.csv")
    for item, (person, model) in enumerate(people):
        decision = review.state.decisions.get(item)
        assert person == ("" if decision is None else decision.label or "bad item")
        assert (
            model == (ours[item]["label"] if decision is None else decision.was or "none of these") or decision is None
        )


def test_what_was_confirmed_joins_the_catalogue(folder, tmp_path, monkeypatch):
    truth = json.loads((folder / "truth.json").read_text())
    outputs, catalogue = Outputs(tmp_path / "labels.csv"), tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    ready = fitted(folder, tmp_path, "kinds.handful")
    review = reviewed(ready, outputs, truth, 8)
    offered = finish(review, outputs, "today", catalogue)
    assert offered.command.startswith(f"handful catalogue add {catalogue} --from ")
    with monkeypatch.context() as changed:
        changed.chdir(tmp_path)
        short = finish(review, outputs, "today", catalogue)
    assert short.command.startswith("handful catalogue add kinds.handful --from ")
    before = load_catalogue(catalogue)
    assert str(catalogue) in finish(review, outputs, "today", catalogue, add=True).written
    after = load_catalogue(catalogue)
    assert after.n_examples == before.n_examples + len(review.confirmed())
    added = [after.record.sources[position] for position in range(before.n_examples, after.n_examples)]
    assert {(one.person, one.session) for one in added} == {("Ada", "labels.csv.review")}


def test_a_class_that_was_renamed_during_the_review_does_not_come_back(folder, tmp_path):
    outputs, catalogue = Outputs(tmp_path / "labels.csv"), tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    ready = fitted(folder, tmp_path, "kinds.handful")
    with opened(outputs.folder, {"batch": ready.batch.fingerprint}) as journal:
        review = BatchReview(journal, FileLabeller(ready), person="Ada")
        for number, (kind, name) in enumerate([("class", "kind 01"), ("class", "kind 02"), ("new", "kraken")]):
            review.decide(number, [number], kind, name)
        rename(catalogue, "kind 01", "kind A")
        done = finish(review, outputs, "today", catalogue, add=True)
    classes = load_catalogue(catalogue).classes.tolist()
    assert "kind 01" not in classes
    assert {"kind A", "kraken"} <= set(classes)
    assert load_catalogue(catalogue).shots[classes.index("kind 02")] == 3
    assert "no class 'kind 01' any more" in done.notes[0]
    assert [row["label"] for row in rows(outputs.labels)[:3]] == ["kind 01", "kind 02", "kraken"]  # what a person said


def test_the_next_batch_starts_where_this_one_ended(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    outputs, catalogue = Outputs(tmp_path / "labels.csv"), tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    assert load_catalogue(catalogue).record.calibration == ()
    review = reviewed(fitted(folder, tmp_path, "kinds.handful"), outputs, truth, 8)
    with opened(outputs.folder, {"batch": review.batch.fingerprint}) as journal:
        review = BatchReview(journal, FileLabeller(fitted(folder, tmp_path, "kinds.handful")))
        finish(review, outputs, "today", catalogue)
        kept = load_catalogue(catalogue).record.calibration
        assert kept == review.session.calibration.rows != ()
        finish(review, outputs, "today", catalogue)  # the same answers count once
    assert load_catalogue(catalogue).record.calibration == kept
    rename(catalogue, "kind 01", "kind A")  # other changes of the catalogue keep it
    assert load_catalogue(catalogue).record.calibration == kept


def test_two_reviews_of_one_catalogue_at_once_both_teach_it(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    catalogue = tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    with opened(tmp_path / "a", {}) as one, opened(tmp_path / "b", {}) as other:
        reviews = [
            BatchReview(journal, FileLabeller(fitted(folder, tmp_path, "kinds.handful"))) for journal in (one, other)
        ]
        for review in reviews:
            for _ in range(3):
                answer_next(review, truth)
            finish(review, Outputs(tmp_path / "labels.csv"), "today", catalogue)
    alone = sum(n for _, n, _ in reviews[0].session.calibration.rows)
    assert sum(n for _, n, _ in load_catalogue(catalogue).record.calibration) == pytest.approx(2 * alone)


def test_a_review_goes_on_with_the_calibration_that_it_was_begun_with(folder, tmp_path, monkeypatch):
    catalogue = tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    seen = []

    def serve(page, finish, where):
        seen.append(page.review.session.options.first_calibration)

    monkeypatch.setattr(files, "serve", serve)
    rows = ((0.02, 40.0, 1.0), (0.3, 10.0, 4.0))
    for name, calibration in (("a.csv", ()), ("a.csv", rows), ("b.csv", rows)):
        change(catalogue, lambda at, rows=calibration: at.with_record(replace(at.record, calibration=rows)))
        ready = embed(check(read_inputs(catalogue, folder / "today.npz")), tmp_path)
        files.review_files(ready, Outputs(tmp_path / name), "today", Address())
    assert [one.rows for one in seen] == [(), (), rows]


def test_a_calibration_that_cannot_be_kept_is_said_and_nothing_is_lost(folder, tmp_path, monkeypatch):
    def refused(*_):
        raise StorageError("the disk is read-only")

    truth = json.loads((folder / "truth.json").read_text())
    outputs = Outputs(tmp_path / "labels.csv")
    catalogue = tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    monkeypatch.setattr(files, "change", refused)
    with opened(outputs.folder, {}) as journal:
        review = BatchReview(journal, FileLabeller(fitted(folder, tmp_path, "kinds.handful")))
        answer_next(review, truth)
        done = finish(review, outputs, "today", catalogue)
    assert "could not be kept for the next batch: the disk is read-only" in done.notes[0]
    assert outputs.labels.is_file()


def test_a_group_without_a_name_gets_one_after_the_review_was_finished(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    outputs, unknown = Outputs(tmp_path / "labels.csv"), [item for item, name in enumerate(truth) if name == "kind 24"]
    ready = fitted(folder, tmp_path)
    with opened(outputs.folder, {"batch": ready.batch.fingerprint}) as journal:
        review = BatchReview(journal, FileLabeller(ready))
        review.decide(0, unknown[:3], "none")
        finish(review, outputs, "today")
    before = rows(outputs.labels)
    assert {before[item]["person"] for item in unknown[:3]} == {"none of these"}
    assert all(before[item]["label"] == "" and before[item]["rejected"] == "True" for item in unknown[:3])
    group = {before[item]["proposal"] for item in unknown[:3]}
    assert group == {"1"}
    with opened(outputs.folder, {"batch": ready.batch.fingerprint}) as journal:  # the same command again
        review = BatchReview(journal, FileLabeller(ready))
        members = review.answer.proposals[0].items.tolist()
        assert set(unknown[:3]) <= set(members)
        review.decide(review.state.number, [item for item in members if item in unknown], "new", "kraken")
        finish(review, outputs, "today")
    after = rows(outputs.labels)
    assert all(after[item]["label"] == "kraken" for item in unknown[:3])


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_the_owner_can_read_what_is_written(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    outputs = Outputs(tmp_path / "labels.csv", tmp_path / "page.html", tmp_path / "tasks.json")
    done = finish(reviewed(fitted(folder, tmp_path), outputs, truth, 2), outputs, "today")
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in done.written} == {0o600}


@pytest.fixture
def start(folder, tmp_path, monkeypatch):
    """Start a review as the command does, and return it while no server runs."""
    seen = []
    monkeypatch.setattr(files, "serve", lambda page, finish, where: seen.append(page.review))

    def started(**known):
        outputs = Outputs(tmp_path / "labels.csv")
        files.review_files(fitted(folder, tmp_path, **known), outputs, "today", Address())
        return seen[-1]

    return started


def corrections(folder, tmp_path):
    """A file of corrections with every kind of answer."""
    ready = fitted(folder, tmp_path)

    def place(item):
        return {"row": item, "item": ready.batch.names[item], "content": ready.batch.content(item)}

    file = {
        "handful_corrections": 3,
        "corrections": [{**place(3), "label": "kind 03"}],
        "confirmed": [],
        "new_classes": [{"label": "kraken", "items": [place(7)]}],
        "none_of_these": [place(5), {**place(6), "bad": True}],
    }
    (tmp_path / "given.json").write_text(json.dumps(file))
    return tmp_path / "given.json"


KINDS = {3: "class", 5: "none", 6: "bad", 7: "new"}


def kinds(review):
    return {item: one.kind for item, one in review.state.decisions.items()}


def test_answers_of_an_earlier_review_are_one_step_and_taken_over_once(folder, tmp_path, start):
    given = corrections(folder, tmp_path)
    for _ in range(2):
        review = start(given=given)
        assert (kinds(review), len(review.state.steps)) == (KINDS, 1)
    review.undo(review.state.number)
    assert kinds(start(given=given)) == {}


def test_answers_of_an_earlier_review_can_come_at_any_time(folder, tmp_path, start):
    review = start()
    review.decide(0, [9], "class", "kind 01")
    review.decide(1, [3], "class", "kind 02")
    review = start(given=corrections(folder, tmp_path))
    assert kinds(review) == {**KINDS, 9: "class"}
    assert review.session.said.given[3] == "kind 03"
    assert "4 answers were taken over. Of these, 1 replace" in review.notes[0]
    review.undo(review.state.number)
    assert review.session.said.given == {3: "kind 02", 9: "kind 01"}


def test_answers_of_an_earlier_review_come_whole_or_not_at_all(folder, tmp_path, start, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    start()
    with monkeypatch.context() as patch:
        patch.setattr("handful.review.journal._write_all", full)
        with pytest.raises(StorageError):
            start(given=corrections(folder, tmp_path))
    assert kinds(start()) == {}
    assert kinds(start(given=corrections(folder, tmp_path))) == KINDS


def test_labels_by_row_are_taken_over_too(start):
    review = start(given={3: "kind 03", 5: None, 7: "kraken"}, new_classes=["kraken"])
    assert kinds(review) == {3: "class", 5: "none", 7: "new"}


def test_a_review_with_groups_says_why_an_item_has_its_label(folder, tmp_path):
    ready = fitted(folder, tmp_path, group_by="site")
    with opened(tmp_path / "review", {"batch": ready.batch.fingerprint}) as journal:
        page = Page(BatchReview(journal, FileLabeller(ready)), "today")
        found = [page.why(at) for at in range(len(ready.batch.rows))]
        assert all(len(one["why"]) == 8 and one["near"] for one in found)


def test_an_answer_whose_class_later_candidates_lack_is_refused_at_the_start(start):
    start().decide(0, [3], "class", "kind 20")
    with pytest.raises(OptionError, match="candidates is kind 01, kind 02 now"):
        start(candidates=["kind 01", "kind 02"])
    assert start().session.said.given == {3: "kind 20"}


def test_what_cannot_be_labelled_again_is_refused(folder, tmp_path):
    with pytest.raises(OptionError, match="leave --method out"):
        FileLabeller(fitted(folder, tmp_path, method="paddle"))
