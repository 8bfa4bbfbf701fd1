"""A labelled batch: what is read off a table of probabilities, and what the file of predictions says."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import About, Batch, check_ending, classify, files, write_predictions
from handful.classification.labelled import PREDICTION_TYPES, label_counts, predictions, present_codes, unknown_summary
from handful.errors import OptionError
from handful.estimators import Answer, Proposal
from tests.answers_at_hand import answer_of

TABLE = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6], [0.1, 0.8, 0.1]])


def labelled(table=TABLE, names=("ant", "bee", "cat"), **about) -> Answer:
    batch = Batch([0, 2, 3], ("a.png", "c.png", "d.png"), None, ("b.png: no picture",))
    return replace(answer_of(table, names, **about), about=About(batch, n_examples=9, encoder=""))


def test_one_class_has_no_runner_up():
    table = predictions(labelled(np.ones((3, 1)), ("ant",)))
    assert (table["label"], table["runner_up"], table["runner_up_certainty"]) == (["ant"] * 3, [None] * 3, [None] * 3)


def test_predictions_of_some_items():
    assert predictions(labelled(), [2, 0]) == {
        "row": [3, 0],
        "item": ["d.png", "a.png"],
        "label": ["bee", "ant"],
        "certainty": [0.8, 0.7],
        "runner_up": ["ant", "bee"],
        "runner_up_certainty": [0.1, 0.2],
        "doubtful": [False, False],
        "unknown": [None, None],
        "rejected": [None, None],
        "proposal": [None, None],
    }


def unknown(rejected, *groups, interval=(0.1, 0.9)):
    return {
        "unknown": np.array([0.1, 0.9, 0.8]),
        "rejected": np.array(rejected),
        "unknown_interval": interval,
        "proposals": tuple(Proposal(np.array(items), 0.9, "bee", 1.0) for items in groups),
    }


def test_unknown_items_and_their_groups_are_columns():
    found = labelled(**unknown([False, True, True], [2]))
    table = predictions(found, [2, 1])
    assert (table["unknown"], table["proposal"]) == ([0.8, 0.9], [1, None])
    assert predictions(found)["rejected"] == [False, True, True]


@pytest.mark.parametrize("said", [{}, unknown([False, True, True], [2]), unknown([False, False, False])])
def test_a_frame_says_the_same_with_and_without_names_of_items(said):
    named = labelled(**said).to_frame()
    plain = answer_of(TABLE, ("ant", "bee", "cat"), **said).to_frame()
    assert list(named.columns)[2:] == list(plain.columns)
    for column in plain.columns:
        assert [None if value != value else value for value in plain[column]] == named[column].tolist()


def test_rejected_items_count_for_no_class():
    assert label_counts(labelled()).tolist() == [1, 1, 1, 0]
    assert label_counts(labelled(**unknown([False, True, True]))).tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize(
    ("rejected", "groups", "said"),
    [
        (
            [False, False, False],
            [],
            "About 60% of the items may belong to none of the classes, and the batch does not tell which; a few "
            "answers do (handful review).",
        ),
        ([False, True, False], [], "1 item looks like none of your 3 classes."),
        ([True, True, True], [[0, 1, 2]], "3 items look like none of your 3 classes; they fall into 1 group."),
        (
            [True, True, True],
            [[0], [1]],
            "3 items look like none of your 3 classes; 2 of them fall into 2 groups.",
        ),
    ],
)
def test_it_is_said_in_one_sentence(rejected, groups, said):
    assert unknown_summary(labelled(**unknown(rejected, *groups))) == said


def test_a_small_share_of_unknown_items_goes_without_saying():
    few = unknown([False, False, False]) | {"unknown": np.array([0.1, 0.1, 0.2])}
    assert unknown_summary(labelled(**few)) == ""


def test_present_classes_come_largest_first():
    few = labelled(expected_counts=np.array([0.7, 1.2, 1.7]), presence=np.array([0.4, 0.5, 0.9]))
    assert present_codes(few) == [2, 1]


def test_a_file_has_one_line_per_item_however_it_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 2)
    write_predictions(labelled(), tmp_path / "deep" / "p.csv")
    with (tmp_path / "deep" / "p.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == list(PREDICTION_TYPES)
    assert lines[1:] == [
        ["0", "a.png", "ant", "0.7", "bee", "0.2", "False", "", "", ""],
        ["2", "c.png", "cat", "0.6", "bee", "0.4", "True", "", "", ""],
        ["3", "d.png", "bee", "0.8", "ant", "0.1", "False", "", "", ""],
    ]


def test_an_ending_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    check_ending(tmp_path / "p.CSV")
    with pytest.raises(OptionError, match=r"written as \.parquet, \.csv"):
        check_ending(tmp_path / "p.ods")


def test_a_labelled_batch_goes_through_its_items(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(2), labels=["a", "b"])
    np.save(tmp_path / "b.npy", np.eye(2))
    found = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    assert [item.label for item in found] == ["a", "b"] == [found[0].label, found[1].label]
