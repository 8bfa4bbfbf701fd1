import sys

import numpy as np
import pytest

from handful.benchmark.completion import complete
from handful.benchmark.journal import Journal
from handful.benchmark.on_ray import in_memory, on_ray
from handful.benchmark.run import Material
from handful.errors import MissingExtraError
from tests.benchmark.test_completion import undisturbed, values
from tests.clusters_at_hand import lose_a_node_then_the_driver
from tests.plans_at_hand import small_banks, small_plan


def test_the_rows_are_those_of_a_run_in_process(ray, tmp_path):
    banks = small_banks()
    journal = Journal.create(tmp_path / "there", small_plan(banks))
    complete(journal, banks, on_ray())
    assert not ray.is_initialized()
    assert values(journal) == values(undisturbed(tmp_path / "here", banks))


def test_features_travel_rather_than_the_place_of_their_file(tmp_path):
    bank = small_banks()["toy"].save(tmp_path / "bank")
    held = in_memory(Material(bank)).bank
    assert isinstance(bank.stored, np.memmap)
    assert not isinstance(held.stored, np.memmap)
    assert held.content_hash == bank.content_hash


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    banks = small_banks()
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"):
        complete(Journal.create(tmp_path / "run", small_plan(banks)), banks, on_ray())


@pytest.mark.slow
def test_a_node_dies_then_the_driver_and_the_run_is_resumed_here(ray, tmp_path):
    banks = small_banks()
    journal = Journal.create(tmp_path / "there", small_plan(banks, n_tasks=4000))
    at = lose_a_node_then_the_driver(journal, small_banks, node_dies_at=200, driver_dies_at=1000)
    assert 200 <= at[0] < 1000 <= at[1] < 3 * 4000
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "here", banks, n_tasks=4000))
