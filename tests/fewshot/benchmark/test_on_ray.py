import os
import sys

import numpy as np
import pytest

from handful.errors import HandfulWarning, MissingExtraError
from handful.workers import cluster, on_ray
from handful_fewshot.benchmark import completion
from handful_fewshot.benchmark.completion import complete, progress
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.run import Material, run_range
from tests.clusters_at_hand import lose_a_node_then_the_driver
from tests.fewshot.benchmark.test_completion import undisturbed, values
from tests.plans_at_hand import small_banks, small_plan


@pytest.mark.beyond
def test_the_rows_are_those_of_a_run_in_process(ray, tmp_path):
    banks = small_banks()
    journal = Journal.create(tmp_path / "there", small_plan(banks))
    complete(journal, banks, on_ray())
    assert not ray.is_initialized()
    assert values(journal) == values(undisturbed(tmp_path / "here", banks))


def test_features_travel_rather_than_the_place_of_their_file(tmp_path):
    bank = small_banks()["toy"].save(tmp_path / "bank")
    held = Material(bank).in_memory().bank
    assert isinstance(bank.stored, np.memmap)
    assert not isinstance(held.stored, np.memmap)
    assert held.content_hash == bank.content_hash


@pytest.mark.slow
def test_a_range_whose_worker_dies_is_a_failure_of_the_machine_and_the_run_goes_on(ray, tmp_path, monkeypatch):
    def dies(cell, material, indices):
        if cell.method == "paddle" and 3 in indices:
            os._exit(1)
        return run_range(cell, material, indices)

    banks = small_banks()
    journal = Journal.create(tmp_path / "there", small_plan(banks))
    monkeypatch.setattr(cluster, "RETRIES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(completion, "run_range", dies)
        with pytest.warns(HandfulWarning, match="the machine failed on 3 tasks, first with BrokenExecutor: "):
            complete(journal, banks, on_ray())
    assert [s.done for s in progress(journal)] == [17, 20, 20]
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "here", banks))


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    banks = small_banks()
    with pytest.raises(MissingExtraError, match=r"\[ray\]"):
        complete(Journal.create(tmp_path / "run", small_plan(banks)), banks, on_ray())


@pytest.mark.slow
def test_a_node_dies_then_the_driver_and_the_run_is_resumed_here(ray, tmp_path):
    banks = small_banks()
    journal = Journal.create(tmp_path / "there", small_plan(banks, n_tasks=4000))
    at = lose_a_node_then_the_driver(journal, small_banks, node_dies_at=200, driver_dies_at=1000)
    assert 200 <= at[0] < 1000 <= at[1] < 3 * 4000
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "here", banks, n_tasks=4000))
