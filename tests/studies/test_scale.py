"""The study of the scale: cells are as described, every way is measured on the same tasks, and the page is right."""

import numpy as np

import scale as study
from tests.banks_at_hand import random_bank


def test_twenty_examples_need_thirty_rows():
    found = {least: {cell.shots for cell in study.cells(np.arange(30).repeat(least))} for least in (11, 29, 30)}
    assert found == {11: {1}, 29: {1, 5}, 30: {1, 5, 20}}


def test_a_cell_has_every_way_on_every_task_and_other_methods_on_the_first(monkeypatch):
    monkeypatch.setattr(study, "OTHERS", {"soft K-means": ("soft_kmeans", "found_scale")})
    bank = random_bank(n_classes=24, least=20, most=20)
    rows = study.measured(bank, study.Cell(20, 5, 2), 7)
    ways = {"nearest", "published", "found", *study.FIXED}
    assert [set(row) for row in rows] == [ways | {"soft K-means"}] * study.OTHER_TASKS + [ways] * 2
    assert all(0 <= value <= 100 for row in rows for value in row.values())
    assert all(set(row) == ways for row in study.measured(bank, study.Cell(None, 5, 2), 2))


def test_the_two_aims_of_a_cell():
    fixed = dict.fromkeys(study.FIXED, 50.0)
    good = [{"found": 80.0 + n, "nearest": 70.0, **fixed, "times 6": 83.0} for n in range(4)]
    assert study.best_fixed(good) == "times 6"
    assert study.above_nearest(good)
    assert study.near_best(good)
    assert not study.above_nearest([{**row, "nearest": 82.0} for row in good])
    assert not study.near_best([{**row, "times 6": 85.0} for row in good])


def test_a_noisy_copy_has_the_same_classes_and_is_harder():
    bank = random_bank(n_classes=24, least=20, most=20)
    copy = study.noisy(bank, 1.0)
    np.testing.assert_array_equal(copy.labels, bank.labels)
    clean, hard = (
        np.mean([row["nearest"] for row in study.measured(b, study.Cell(20, 5, 5), 4, others=False)])
        for b in (bank, copy)
    )
    assert hard < clean


def test_the_found_scale_does_no_harm():
    """In no cell of any bank is the interval of the gain over the nearest prototype below zero."""
    found = study.kept(study.RESULTS, study.BANKS)
    harmed = [(name, cell) for name, of in found.items() for cell, rows in of.items() if study.below_nearest(rows)]
    assert harmed == []


def test_what_the_page_says_is_so():
    found = study.kept(study.RESULTS, study.BANKS)
    assert set(found) == set(study.BANKS)
    for of in found.values():
        for cell, rows in of.items():
            assert len(rows) == study.TASKS[None if cell.startswith("K = all") else study.FEW_CLASSES]
    for banks in study.GROUPS.values():
        some = [rows for name in banks for rows in found[name].values()]
        gains = [study.gain(rows, "nearest").mean for rows in some]
        published = [study.mean(row["published"] - row["nearest"] for row in rows) for rows in some]
        assert np.mean(gains) > 0
        assert np.mean(gains) > np.mean(published)
