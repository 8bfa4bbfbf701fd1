"""Small Ray clusters on this machine, and a run of the benchmark that loses a node and then its driver."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from handful import FeatureBank
from handful.workers import on_ray
from handful_fewshot.benchmark import completion
from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import Journal

TIMINGS = ("seconds", "cpu_seconds")
# Longest wait for rows to come, in seconds.
PATIENCE = 1800


def small_cluster(**head_settings: Any) -> Any:
    """A head with one core; nodes are to be added. A dead one is noticed after three seconds, not after thirty."""
    from ray.cluster_utils import Cluster

    quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick, **head_settings}
    return Cluster(initialize_head=True, head_node_args=head)


def drive(folder: Path, address: str, load_banks: Callable[[], Mapping[str, FeatureBank]]) -> None:
    """Drive a run over the cluster, a shard for every range; to be killed."""
    completion.WAITING_ROWS = 1
    complete(Journal(folder), load_banks(), on_ray(address))


def lose_a_node_then_the_driver(
    journal: Journal, load_banks: Callable[[], Mapping[str, FeatureBank]], *, node_dies_at: int, driver_dies_at: int
) -> tuple[int, int]:
    """Run over three nodes until both deaths; how many rows there were at each. The journal is left as it then is."""
    cluster = small_cluster()
    arguments = (journal.folder, cluster.address, load_banks)
    driver = multiprocessing.get_context("spawn").Process(target=drive, args=arguments)
    try:
        doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        driver.start()
        first = _wait_for_rows(journal, node_dies_at, driver)
        cluster.remove_node(doomed, allow_graceful=False)
        _wait_for_rows(journal, driver_dies_at, driver)
        driver.kill()
        driver.join()
        assert driver.exitcode == -9
    finally:
        driver.kill()
        cluster.shutdown()
    return first, journal.table().num_rows


def _wait_for_rows(journal: Journal, least: int, driver: Any) -> int:
    deadline = time.monotonic() + PATIENCE
    while (found := journal.table().num_rows) < least:
        assert driver.is_alive(), "the driver ended by itself"
        assert time.monotonic() < deadline, f"{found} of {least} rows after {PATIENCE} s"
        time.sleep(0.1)
    return found
