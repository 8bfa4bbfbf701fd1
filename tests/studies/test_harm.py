"""The study of harm: its cells are drawn as described, and its table has the mean and the worst cell."""

import numpy as np
import pytest

import bank_data
import harm
from tests.worlds import Clouds


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a bank of eight classes, three of them near one another, and few batches."""
    monkeypatch.setattr(harm, "BANKS", (tmp_path.name,))
    monkeypatch.setattr(harm, "BATCHES", 10)
    rng, labels = np.random.default_rng(0), np.arange(25).repeat(30)
    clouds = Clouds(25, 12, rng)
    clouds.centres[1:3] = clouds.around([0, 0], 0.4)
    np.save(tmp_path / "features.npy", clouds.around(labels, 0.8))
    np.save(tmp_path / "labels.npy", labels)
    return tmp_path


def test_cells_of_a_bank(folder):
    cells = {(part, *key.items()): measure for part, key, measure in harm.cells(folder)}
    assert {name for name, *_key in cells} == {"clean", "shots", "wrong_labels", "confusable", "stray", "sizes"}
    row = cells["clean", ("shots", 5), ("present", 5)]()
    assert row["batches"] == 10
    assert row["items"] == 75
    assert (
        row["accuracy"]["jointly"]
        > row["accuracy"][row["alone"]]
        == max(value for rule, value in row["accuracy"].items() if rule not in harm.TOGETHER)
    )
    assert row["gain_over_control"][0] == pytest.approx(
        row["accuracy"]["jointly"] - row["accuracy"]["sparse_em"], abs=0.02
    )
    assert row["accuracy"]["sparse_em"] > row["accuracy"]["head"]
    assert row["gain"][0] == pytest.approx(row["accuracy"]["jointly"] - row["accuracy"][row["alone"]], abs=0.02)
    assert 0 <= row["harmed_warned"] <= row["harmed"] <= 10
    wrong = cells["wrong_labels", ("wrong", 0.2), ("present", 5)]()
    assert wrong["accuracy"]["prototype"] < row["accuracy"]["prototype"]
    near = cells["confusable", ("present", 5)]()
    assert near["accuracy"]["jointly"] < row["accuracy"]["jointly"]
    assert cells["stray", ("present", 6)]()["accuracy"]["jointly"] in range(0, 101, 10)  # one item of each batch
    assert cells["sizes", ("present", 5), ("size", 1)]()["items"] == 1


def test_cells_are_drawn_the_same_way_again(folder):
    (again,) = {str(next(iter(harm.stray(folder)))[2]()) for _time in range(2)}
    assert "accuracy" in again
    first, other = (bank_data.rng_of("clean", "a", k).integers(1 << 30, size=4) for k in (1, 2))
    assert not np.array_equal(first, other)


def test_the_table_has_the_mean_and_the_worst_cell_of_each_condition():
    def row(points, half, harmed=0, **key):
        accuracy = {"head": 50.0, "jointly": 50.0 + points}
        return {
            "data": "made-up",
            "accuracy": accuracy,
            "alone": "head",
            "gain": [points, half],
            "harmed": harmed,
            "batches": 10,
            **key,
        }

    sizes = [row(3.0, 0.5, condition="sizes", size=5), row(1.0, 2.0, 3, condition="sizes", size=15)]
    clean = row(2.6, 1.0, condition="clean", shots=1, present="all")
    clean["accuracy"]["sparse_em"] = 51.0
    table = harm.table([*sizes, clean])
    assert (
        "| batches of 1 to 5,000 items | 50.0 | Not measured yet. | 52.0 | +1.0 ± 2.0 (made, 15 items) | 3 of 20 |"
        in table
    )
    assert (
        "| clean, all classes present | 50.0 | 51.0 | 52.6 | +2.6 ± 1.0 (made, 1 shot, all present) | 0 of 10 |"
        in table
    )
    assert harm.table([]) == harm.NOT_YET


def test_the_interval_is_over_catalogues_or_items():
    right = {"head": np.array([True, False]), "jointly": np.array([True, True])}
    outcomes = [harm.Outcome(n, np.array([0, 1]), right, np.ones(2, np.float32), False) for n in range(6)]
    assert harm.estimated(outcomes, "head", over_items=False) == harm.MeanEstimate.of(np.full(6, 50.0))
    assert harm.estimated(outcomes, "head", over_items=True) == harm.MeanEstimate.of(np.array([0.0, 100.0]))
    assert harm.calibration_error(outcomes) == 0
