"""A review of files: what is written in the end is what `classify` writes with the corrections, and more."""

import csv
import json

import numpy as np
import pytest

from handful.catalogue import load_catalogue
from handful.classification import classify, write_predictions
from handful.classification.building import build_catalogue
from handful.classification.label import embed
from handful.classification.task import check, read_inputs
from handful.errors import OptionError
from handful.review import files
from handful.review.batch_review import BatchReview
from handful.review.files import FileLabeller, Outputs, finish
from handful.review.journal import opened
from handful.review.serve import Address
from tests.review.reviews import answer_next

KNOWN, PRESENT, EACH, DIM = 24, 4, 10, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    centres = rng.normal(size=(KNOWN + 1, DIM))
    examples = np.arange(KNOWN).repeat(2)
    names = np.array([f"kind {k:02}" for k in range(KNOWN + 1)])
    np.savez(
        place / "catalogue.npz",
        features=centres[examples] + 0.8 * rng.normal(size=(len(examples), DIM)),
        labels=names[examples],
    )
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    np.savez(
        place / "today.npz",
        features=centres[truth] + 0.8 * rng.normal(size=(len(truth), DIM)),
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
        review.decide(review.state.number, [max(set(range(len(truth))) - set(review.state.decisions))], "bad", [None])
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


def test_what_was_confirmed_joins_the_catalogue(folder, tmp_path):
    truth = json.loads((folder / "truth.json").read_text())
    outputs, catalogue = Outputs(tmp_path / "labels.csv"), tmp_path / "kinds.handful"
    catalogue.write_bytes((folder / "kinds.handful").read_bytes())
    ready = fitted(folder, tmp_path, "kinds.handful")
    review = reviewed(ready, outputs, truth, 8)
    offered = finish(review, outputs, "today", catalogue)
    assert offered.command.startswith(f"handful catalogue add {catalogue} --from ")
    before = load_catalogue(catalogue)
    assert str(catalogue) in finish(review, outputs, "today", catalogue, add=True).written
    after = load_catalogue(catalogue)
    assert after.n_examples == before.n_examples + len(review.confirmed())
    added = [after.record.sources[position] for position in range(before.n_examples, after.n_examples)]
    assert {(one.person, one.session) for one in added} == {("Ada", "labels.csv.review")}


def test_answers_of_an_earlier_run_are_taken_over(folder, tmp_path, monkeypatch):
    given, seen = {3: "kind 03", 5: None, 7: "kraken"}, []
    ready = fitted(folder, tmp_path, given=given, new_classes=["kraken"])
    monkeypatch.setattr(files, "serve", lambda page, finish, where: seen.append(page.review.state))
    for _ in range(2):  # only once
        files.review_files(ready, Outputs(tmp_path / "labels.csv"), "today", Address(), most_wrong=0.05)
    assert [state.given() for state in seen] == [given, given]
    assert seen[0].number == seen[1].number == 3


def test_what_cannot_be_labelled_again_is_refused(folder, tmp_path):
    with pytest.raises(OptionError, match="leave --method out"):
        FileLabeller(fitted(folder, tmp_path, method="paddle"))
