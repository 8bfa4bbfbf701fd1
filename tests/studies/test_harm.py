"""Requirements and pages of the study of harm, on made-up rows."""

import numpy as np
import pytest

import harm_bars
import harm_data
import harm_page
import pages


def row(points, half=1.0, **more):
    """Make a cell in which the default is ahead of everything by that much."""
    rules = ("prototype", "head", "logistic", "head_emq", "prototype_emq")
    counts = {"harmed": [0, 0], "others": [10, 0]}
    return {
        "data": "made-up",
        "catalogues": 5,
        "batches": 10,
        "items": 75.0,
        "accuracy": {**dict.fromkeys(rules, 50.0), "roll_call": 50.0 + points},
        "ahead": {rule: [points, half] for rule in rules},
        "alone": "head",
        "warnings": {"cell": counts, "batch": counts, "diagnostics": {}},
        **more,
    }


def reached(found):
    """Whether each requirement is reached, by its name."""
    return {bar.requirement: bar.reached for bar in harm_bars.bars(found)}


def clean(points, half=1.0, error=3.0, loss=0.1, there=50.0, cases=30):
    """Make all clean cells of a bank alike."""
    sure = {
        "calibration_error": {"roll_call": error, "prototype_emq": 9.0, "head_emq": 9.0},
        "log_loss": {"roll_call": loss, "prototype_emq": 0.5, "head_emq": 0.5},
        "presence": [{"bin": 5, "cases": cases, "said": 55.0, "there": there}],
        "fit_seconds": 1.0,
    }
    return [row(points, half, shots=s, present=p, **sure) for s in (1, 5, 10) for p in (5, 20, "all")]


def test_all_is_reached_where_all_is_well():
    judged = reached({"clean": clean(2.6)})
    assert len(judged) == 10
    assert all(judged.values())


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"points": -1.5}, 4),  # below alone by an interval in two lines, below both of the field
        ({"points": -0.5}, 0),  # within the interval
        ({"points": 2.6, "error": 4.1}, 2),
        ({"points": 2.6, "loss": 0.5}, 2),
        ({"points": 2.6, "there": 44.0}, 2),
        ({"points": 2.6, "there": 44.0, "cases": 29}, 0),
    ],
)
def test_requirements_on_clean_data_can_be_missed(changed, missed):
    assert sum(not ok for ok in reached({"clean": clean(**changed)}).values()) == missed


@pytest.mark.parametrize(
    ("condition", "points", "half", "expected"),
    [
        ("shots", -0.9, 1.0, [True]),
        ("shots", -1.1, 1.0, [False]),
        ("requests", 0.1, 1.0, [True, True]),
        ("requests", -0.1, 1.0, [True, False]),
        ("requests", -1.1, 1.0, [False, False]),
        ("laboratories", -1.1, 1.0, [False, False]),
        ("shifted", -0.9, 1.0, [True]),
        ("shifted", -1.1, 1.0, [False]),
        ("wrong_labels", -1.0, 0.1, [True, False]),
        ("wrong_labels", -1.1, 9.0, [False, False]),
        ("confusable", 0.1, 9.0, [True, True]),
        ("stray", 10.0, 9.0, [True]),
        ("stray", 9.9, 9.0, [False]),
        ("sizes", -1.1, 1.0, [False]),
    ],
)
def test_requirements_under_stress_can_be_missed(condition, points, half, expected):
    assert list(reached({condition: [row(points, half)]}).values()) == expected


@pytest.mark.parametrize(
    ("harmed", "others", "expected"), [((10, 7), (90, 9), (True, True)), ((10, 6), (90, 10), (False, False))]
)
def test_warnings_are_judged_over_all_stress_conditions(harmed, others, expected):
    nothing = {"harmed": [0, 0], "others": [0, 0]}
    counts = {"harmed": list(harmed), "others": list(others)}
    found = {
        condition: [row(0.0, warnings={"cell": nothing, "batch": nothing, "diagnostics": {}})]
        for condition in harm_bars.STRESS
    }
    found["sizes"] = [row(0.0, warnings={"cell": counts, "batch": nothing, "diagnostics": {}})]
    judged = [ok for name, ok in reached(found).items() if "best rule of the cell" in name]
    assert judged == list(expected)
    del found["unknown"]
    assert not any("stress conditions" in name for name in reached(found))


def test_results_are_kept_part_by_part_and_shown(tmp_path, monkeypatch):
    parts = {"one": {"by": "handful", "seconds": 60, "rows": [row(1.2, size=75, present=5)]}}
    pages.keep(tmp_path / "confirmation" / "sizes.json", parts)
    assert harm_data.read(tmp_path / "confirmation" / "sizes.json") == parts
    assert harm_data.read(tmp_path / "confirmation" / "stray.json") == {}
    monkeypatch.setattr(harm_page, "RESULTS", tmp_path)
    page = harm_page.page()
    assert "Measured with handful, in 1 minutes on one thread." in page.made
    assert (
        "| batches of 1 to 5,000 items | 50.0 | 51.2 | +1.2 ± 1.0 (made, 75 items, 5 present) | 0 of 10 |" in page.table
    )
    assert page.rows[0] | {"group": "confirmation", "condition": "sizes", "size": 75} == page.rows[0]
    assert page.more["requirements"][0]["verdict"] == "reached"


def test_the_table_has_the_mean_and_the_worst_cell_of_each_condition():
    harmed = {"harmed": [3, 1], "others": [7, 0]}
    found = {
        "clean": clean(2.6),
        "sizes": [
            row(3.0, 0.5, size=5),
            row(1.0, 2.0, size=15, warnings={"cell": harmed, "batch": harmed, "diagnostics": {}}),
        ],
        "unknown": [row(1.0), {"data": "made-up", "unknown": 1.0, "batches": 10}],
    }
    short = harm_page.table(found)
    assert "| batches of 1 to 5,000 items | 50.0 | 52.0 | +1.0 ± 2.0 (made, 15 items) | 3 of 20 |" in short
    assert "| clean, all classes present | 50.0 | 52.6 | +2.6 ± 1.0 (made, 1 shot, all present) | 0 of 30 |" in short
    assert short.count("\n| ") == 1 + 3 + 2
    assert harm_page.IN_SHORT["stray"] not in short
    assert "1 of 3 had one, as had 0 of the 27 others" in harm_page.shows(found)
    assert harm_page.table({}) == harm_page.NOT_YET


def test_batches_are_shared_out_evenly():
    assert harm_data.shared_out(12, 5) == [3, 3, 2, 2, 2]
    assert harm_data.shared_out(3, 5) == [1, 1, 1]


def test_groups_have_no_data_in_common():
    tuning, confirmation = harm_data.GROUPS["tuning"], harm_data.GROUPS["confirmation"]
    assert not set(tuning.banks) & set(confirmation.banks)
    assert not set(tuning.laboratory_batches) & set(confirmation.laboratory_batches)
    assert tuning.requests != confirmation.requests
    assert tuning.changed[0] in tuning.banks
    assert confirmation.changed[0] in confirmation.banks


def test_a_cell_is_drawn_the_same_way_again():
    first, again, other = (harm_data.rng_of("clean", "a", k).integers(1 << 30, size=4) for k in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
