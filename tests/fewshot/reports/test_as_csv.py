"""The numbers of a report as CSV are those of its tables."""

import io
import math
from dataclasses import replace

import pytest

from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.reports.as_csv import MEASURES, csv_text, differences, measures
from handful_fewshot.reports.summary import columns_of, paired_difference, results
from tests.fewshot.reports.runs_at_hand import made_up_run, noisy
from tests.optional import optional
from tests.plans_at_hand import SPEC

pd = optional("pandas")

PADDLE = Cell("toy", SPEC, "paddle", options={"max_iter": 5}, transform="published")
PLAN = (
    PADDLE,
    replace(PADDLE, transform="found"),
    Cell("toy", replace(SPEC, n_query=8), "paddle", transform="published"),
)


@pytest.fixture
def outcomes(tmp_path):
    return results(made_up_run(tmp_path / "run", PLAN, [noisy(0.6), [*noisy(0.7, 99, seed=1), None], [0.5]]))


def read(records):
    return pd.read_csv(io.StringIO(csv_text(records)), float_precision="round_trip")


def test_every_measure_of_every_cell_is_a_row(outcomes):
    frame = read(measures(outcomes))
    assert frame["scale"].tolist() == ["published scale", "found scale", "published scale"]
    assert frame["options"].tolist() == ['{"max_iter": 5}', '{"max_iter": 5}', "{}"]
    assert frame[["n_tasks", "n_failed"]].values.tolist() == [[100, 0], [99, 1], [1, 0]]
    for row, result in zip(frame.to_dict("records"), outcomes, strict=True):
        for name in MEASURES:
            estimate = result.estimate(name)
            for found, expected in ((row[name], estimate.mean), (row[f"{name}_half_width"], estimate.half_width)):
                assert math.isnan(found) if not math.isfinite(expected) else found == expected
    assert math.isnan(frame["accuracy_half_width"][2])  # one task has no interval


def test_differences_are_those_on_the_same_tasks(outcomes):
    frame = read(differences(columns_of(outcomes)))
    (row,) = frame.to_dict("records")
    expected = paired_difference(outcomes[0], outcomes[1])
    assert (row["scale"], row["scale_2"], row["n_tasks"]) == ("published scale", "found scale", 99)
    assert (row["difference"], row["difference_half_width"]) == (expected.mean, expected.half_width)


def test_nothing_to_compare_is_an_empty_file(outcomes):
    assert csv_text(differences(columns_of(outcomes[2:]))) == ""
