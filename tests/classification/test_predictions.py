"""A labelled batch: what is read off a table of probabilities, and what the file of predictions says."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import Answers, Batch, Classified, Unknown, check_ending, predictions, write_predictions
from handful.classification.predictions import label_counts
from handful.errors import OptionError
from handful.estimators import Proposal

TABLE = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6], [0.1, 0.8, 0.1]])


def labelled(table=TABLE, names=("ant", "bee", "cat")) -> Classified:
    return Classified(
        batch=Batch([0, 2, 3], ("a.png", "c.png", "d.png"), None, ("b.png: no picture",)),
        answers=Answers.of(table),
        expected_counts=table.sum(0),
        presence=1 - np.prod(1 - table, axis=0),
        joint_weight=1.0,
        diagnostics=(),
        class_names=names,
        n_examples=9,
        backbone="",
        streamed=False,
    )


def test_the_two_likeliest_are_read_off_the_table():
    found = Answers.of(TABLE)
    assert found.labels.tolist() == [0, 2, 1]
    assert found.probabilities.tolist() == [0.7, 0.6, 0.8]
    assert found.runners_up.tolist() == [1, 1, 0]
    assert found.runner_up_probabilities.tolist() == [0.2, 0.4, 0.1]


def test_one_class_has_no_runner_up():
    table = labelled(np.ones((3, 1)), ("ant",)).predictions()
    assert (table["label"], table["runner_up"], table["runner_up_probability"]) == (["ant"] * 3, [None] * 3, [None] * 3)


def test_predictions_of_some_items():
    assert labelled().predictions([2, 0]) == {
        "row": [3, 0],
        "item": ["d.png", "a.png"],
        "label": ["bee", "ant"],
        "probability": [0.8, 0.7],
        "runner_up": ["ant", "bee"],
        "runner_up_probability": [0.1, 0.2],
        "unknown": [None, None],
        "rejected": [None, None],
        "proposal": [None, None],
    }


def unknown(rejected, *groups) -> Unknown:
    proposals = tuple(Proposal(np.array(items), 0.9, "bee", 1.0) for items in groups)
    return Unknown(np.array([0.1, 0.9, 0.8]), np.array(rejected), (0.1, 0.9), proposals)


def test_unknown_items_and_their_groups_are_columns():
    found = replace(labelled(), unknown=unknown([False, True, True], [2]))
    assert found.proposals.tolist() == [0, 0, 1]
    table = found.predictions([2, 1])
    assert (table["unknown"], table["proposal"]) == ([0.8, 0.9], [1, None])
    assert found.predictions()["rejected"] == [False, True, True]


def test_rejected_items_count_for_no_class():
    assert label_counts(labelled()).tolist() == [1, 1, 1, 0]
    assert label_counts(replace(labelled(), unknown=unknown([False, True, True]))).tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize(
    ("rejected", "groups", "said"),
    [
        (
            [False, False, False],
            [],
            "Up to 90% of the items may be like none of the classes; this batch does not tell.",
        ),
        ([False, True, False], [], "1 item looks like none of your 24 classes."),
        ([True, True, True], [[0, 1, 2]], "3 items look like none of your 24 classes; they fall into 1 group."),
        (
            [True, True, True],
            [[0], [1]],
            "3 items look like none of your 24 classes; 2 of them fall into 2 groups.",
        ),
    ],
)
def test_it_is_said_in_one_sentence(rejected, groups, said):
    assert unknown(rejected, *groups).said(24) == said


def test_a_small_share_of_unknown_items_goes_without_saying():
    assert replace(unknown([False, False, False]), interval=(0.0, 0.1)).said(24) == ""


def test_present_classes_come_largest_first():
    few = replace(labelled(), expected_counts=np.array([0.7, 1.2, 1.7]), presence=np.array([0.4, 0.5, 0.9]))
    assert few.present == [2, 1]


def test_a_file_has_one_line_per_item_however_it_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "ROWS_AT_ONCE", 2)
    write_predictions(labelled(), tmp_path / "deep" / "p.csv")
    with (tmp_path / "deep" / "p.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == list(predictions.PREDICTION_COLUMNS)
    assert lines[1:] == [
        ["0", "a.png", "ant", "0.7", "bee", "0.2", "", "", ""],
        ["2", "c.png", "cat", "0.6", "bee", "0.4", "", "", ""],
        ["3", "d.png", "bee", "0.8", "ant", "0.1", "", "", ""],
    ]


def test_an_ending_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    check_ending(tmp_path / "p.CSV")
    with pytest.raises(OptionError, match=r"written as \.parquet or \.csv"):
        check_ending(tmp_path / "p.xlsx")
