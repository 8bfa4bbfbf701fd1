import multiprocessing
import sys
import time

import numpy as np
import pytest

from handful.benchmark import completion
from handful.benchmark.completion import complete
from handful.benchmark.journal import Journal
from handful.benchmark.on_ray import in_memory, on_ray
from handful.benchmark.run import Material
from handful.errors import MissingExtraError
from tests.benchmark.test_completion import undisturbed, values
from tests.plans_at_hand import small_banks, small_plan


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch:
        # Ray warns that a default of its own will change.
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield pytest.importorskip("ray")


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


def drive(folder, address):
    """Drive a run over the cluster, a shard for every range; to be killed."""
    completion.WAITING_ROWS = 1
    complete(Journal(folder), small_banks(), on_ray(address))


@pytest.mark.slow
def test_a_node_dies_then_the_driver_and_the_run_is_resumed_here(ray, tmp_path):
    from ray.cluster_utils import Cluster

    banks = small_banks()
    plan = small_plan(banks, n_tasks=4000)
    journal = Journal.create(tmp_path / "there", plan)
    quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    driver = multiprocessing.get_context("spawn").Process(target=drive, args=(journal.folder, cluster.address))
    try:
        doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        driver.start()
        rows_at = []
        for least in (200, 1000):
            deadline = time.monotonic() + 300
            while journal.table().num_rows < least and time.monotonic() < deadline:
                time.sleep(0.05)
            rows_at.append(journal.table().num_rows)
            if least == 200:
                cluster.remove_node(doomed, allow_graceful=False)
        driver.kill()
        driver.join()
    finally:
        driver.kill()
        cluster.shutdown()
    assert driver.exitcode == -9
    assert 200 <= rows_at[0] < rows_at[1]
    assert journal.table().num_rows < 3 * 4000
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "here", banks, n_tasks=4000))
