"""A streamed run over Ray loses a node, then its driver is killed; resumed, its answer has the same bits."""

import random
import time
from collections import Counter

import pytest

from handful.executors.executor import connected, on_ray
from handful.large import solve
from tests.clusters_at_hand import small_cluster
from tests.kills_at_hand import PATIENCE, PROCESSES, differences
from tests.large_at_hand import large_problem


def drive(catalogue, queries, folder, address, began, ended):
    """Solve over a cluster, in a process of its own; `began` is set once it is connected."""

    def hire(*work):
        with connected(address):
            began.set()
            yield from on_ray()(*work)

    solve(catalogue, queries, folder, shard_rows=2000, executor=hire)
    ended.set()


@pytest.mark.slow
def test_ten_times_a_node_is_removed_and_the_driver_killed(tmp_path, monkeypatch):
    # Ray warns that a default of its own will change.
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    pytest.importorskip("ray")
    problem = large_problem(n_classes=2000, n_query=20_000, n_present=20, dim=64, apart=1.6, even=True)
    problem.catalogue.save(tmp_path / "catalogue")
    problem.queries.save(tmp_path / "queries")
    inputs = str(tmp_path / "catalogue"), str(tmp_path / "queries")
    whole = solve(*inputs, tmp_path / "whole", shard_rows=2000)
    moments, outcomes = random.Random(0), Counter()
    cluster = small_cluster()
    drivers = []
    try:
        cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        for folder in ("cold", "warm"):
            driver, began, ended = driver_on(cluster, inputs, tmp_path / folder)
            drivers.append(driver)
            assert began.wait(PATIENCE)
            start = time.monotonic()
            assert ended.wait(PATIENCE)
            seconds = time.monotonic() - start
            driver.join()
        while outcomes["the driver was killed, the run resumed", "equal"] < 10:
            folder = tmp_path / f"run-{len(drivers)}"
            driver, began, ended = driver_on(cluster, inputs, folder)
            drivers.append(driver)
            assert began.wait(PATIENCE)
            killed = moments.uniform(0, seconds)
            removed = moments.uniform(0, killed)
            time.sleep(removed)
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
            survived = ended.wait(killed - removed)
            driver.kill()
            driver.join()
            found = solve(*inputs, folder, shard_rows=2000, executor=on_ray(cluster.address))
            different = differences(found, whole)
            event = "the driver had finished" if survived else "the driver was killed, the run resumed"
            outcomes[event, "equal" if not different else f"differs in {different}"] += 1
            assert different == []
            cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
    finally:
        for driver in drivers:
            driver.kill()
        cluster.shutdown()
    print(f"\n{outcomes.total()} runs of {seconds:.1f} s, from each of which a node was removed")
    for (event, outcome), count in sorted(outcomes.items()):
        print(f"{count:4d} times {event}: {outcome}")


def driver_on(cluster, inputs, folder):
    began, ended = PROCESSES.Event(), PROCESSES.Event()
    driver = PROCESSES.Process(target=drive, args=(*inputs, folder, cluster.address, began, ended))
    driver.start()
    return driver, began, ended
