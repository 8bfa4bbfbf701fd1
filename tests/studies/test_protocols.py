"""The study of protocols: what it draws, that cells are resumed, and what the page leaves out."""

import numpy as np
import pytest

import handful_fewshot as fewshot
import protocols as study
from tests.banks_at_hand import random_bank

QUICK = ["nearest_prototype", "prototype_threshold"]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A bank of twelve classes, and protocols that it has rows for."""
    bank = random_bank(n_classes=12, least=30, most=40)
    monkeypatch.setattr(study, "RESULTS", tmp_path)
    monkeypatch.setattr(study, "BANKS", {"toy": "toy"})
    monkeypatch.setattr(study.handful, "read_bank", lambda path: bank)
    specs = {
        "2-4 of 16": fewshot.TaskSpec(study.SHOTS, fewshot.UniformOverPool((2, 4)), 16),
        "open": fewshot.TaskSpec(study.SHOTS, fewshot.UniformOverPool(3), 20, unknown=study.OPEN),
    }
    monkeypatch.setattr(study, "protocols", lambda sizes: specs)
    return tmp_path


def test_a_bank_has_the_protocols_that_it_has_rows_for():
    every = study.protocols(np.full(study.ENOUGH, study.ENOUGH))
    assert len(every) == 12
    few = study.protocols(np.full(60, 41))
    assert set(every) - set(few) == {"1-4 of 64", "25-50 of 1,000", "50-100 of 1,000"}
    labels = np.repeat(np.arange(60), 41)
    for spec in few.values():
        assert fewshot.draw(labels, spec, 0, range(12)).query.shape == (12, spec.n_query)


def test_every_method_has_a_row_or_a_reason():
    rows = list(study.rows_of_methods())
    assert {row.method for row in rows} | set(study.EXCLUDED) == set(fewshot.METHODS)
    assert len({row.title for row in rows}) == len(rows)
    assert not {row.method for row in rows} & set(study.EXCLUDED)
    assert all(study.EXCLUDED.values())


def test_cells_are_kept_and_measured_again_only_for_more(small, capsys):
    study.measure(small, "toy", 3, 100.0, QUICK)
    assert len(capsys.readouterr().out.splitlines()) == 6
    study.measure(small, "toy", 3, 100.0, QUICK)
    assert capsys.readouterr().out == ""
    study.measure(small, "toy", 6, 100.0, QUICK)
    assert len(capsys.readouterr().out.splitlines()) == 6
    cells = study.kept(small, ["toy"])["toy"]["prototype_threshold (unit length)"]
    assert {name: set(cell) - {"tasks", "asked", "seconds", "cpu_seconds"} for name, cell in cells.items()} == {
        "2-4 of 16": {"accuracy"},
        "open": {"accuracy", "unknown_auroc", "known_rejected"},
    }
    assert all(cell["tasks"] == 6 for cell in cells.values())


def test_a_budget_ends_a_cell_after_one_task_and_such_cells_are_not_shown(small):
    study.measure(small, "toy", 50, 1e-9, QUICK)
    found = study.kept(small, ["toy"])
    assert {cell["tasks"] for cells in found["toy"].values() for cell in cells.values()} == {1}
    assert study.over_banks(found, "nearest_prototype (unit length)", "open") is None
    study.measure(small, "toy", 50, 1e-9, QUICK)
    assert study.kept(small, ["toy"]) == found
    study.measure(small, "toy", 8, 100.0, QUICK)
    text = study.page().text()
    assert "prototype_threshold (unit length)" in text
    assert "†" in study.page().table


def test_the_mean_over_banks_and_its_interval():
    cells = {"one": [80.0, 3.0], "two": [60.0, 4.0]}
    found = {
        bank: {"m": {"open": {"accuracy": of, "tasks": n}}}
        for (bank, of), n in zip(cells.items(), (200, 20), strict=True)
    }
    estimate = study.over_banks(found, "m", "open")
    assert estimate is not None
    assert (estimate.mean, estimate.half_width, estimate.n) == (70.0, 2.5, 20)
    del found["two"]["m"]["open"]
    found["two"]["other"] = {"open": {"accuracy": [1.0, 1.0], "tasks": 20}}
    assert study.over_banks(found, "m", "open") is None
