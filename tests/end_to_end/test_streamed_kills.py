"""A streamed run is killed with SIGKILL and resumed: its answer is that of an undisturbed run, bit for bit.

The long versions, with the counts printed:

    python -m pytest tests/end_to_end/test_streamed_kills.py -m slow -s
"""

import os
import random
import shutil
import time
from collections import Counter

import pytest

from handful.runs.executors import on_ray
from tests.clusters_at_hand import small_cluster
from tests.kills_at_hand import (
    PATIENCE,
    PROCESSES,
    Setting,
    differences,
    drive_on_ray,
    killed_after,
    killed_after_file,
    killed_at_report,
    seconds_of,
)
from tests.large_at_hand import large_problem

# After that many kills a run is timed again: other work on the machine comes and goes.
TIMED_EVERY = 5


@pytest.fixture
def no_fsync(monkeypatch):
    """What is written survives a killed process without waiting for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def small_setting(place):
    problem = large_problem(n_classes=50, n_query=200, n_present=6, shots=(3, 4), apart=1.2, even=True)
    return Setting.of(problem, place, shard_rows=100)


def killed_at_every_place(kill, setting, place):
    """Number of places, and what differs after each."""
    whole = setting.solve(place / "whole")
    different = {}
    number = 1
    while kill(setting, place / "killed", number):
        found = differences(setting.solve(place / "killed"), whole)
        if found:
            different[number] = found
        shutil.rmtree(place / "killed")
        number += 1
    return number - 1, different


def test_killed_at_every_report_of_progress(tmp_path, no_fsync):
    places, different = killed_at_every_place(killed_at_report, small_setting(tmp_path), tmp_path)
    print(f"killed at each of {places} reports, {places - len(different)} answers equal")
    assert places >= 3
    assert different == {}


@pytest.mark.slow
def test_killed_after_every_file(tmp_path, no_fsync):
    """What is on disk changes only when a file appears under its name, so these are all states a kill can leave."""
    places, different = killed_at_every_place(killed_after_file, small_setting(tmp_path), tmp_path)
    print(f"killed after each of {places} files, {places - len(different)} answers equal")
    assert places >= 5
    assert different == {}


def killed_at_random(setting, place, times, seed):
    """Outcomes of that many kills, uniform over the time of a run, by the stage that was reported last."""
    whole, seconds = setting.solve(place / "whole"), []
    moments, outcomes = random.Random(seed), Counter()
    while outcomes.total() < times:
        if outcomes.total() == TIMED_EVERY * len(seconds):
            seconds.append(seconds_of(setting, place / f"timed-{len(seconds)}"))
        stage = killed_after(setting, place / "killed", moments.uniform(0, seconds[-1]))
        if stage is not None:  # else it was faster than the one that was timed
            different = differences(setting.solve(place / "killed"), whole)
            outcomes[stage, "equal" if not different else f"differs in {different}"] += 1
        shutil.rmtree(place / "killed", ignore_errors=True)
    print(f"\n{times} kills in runs of {min(seconds):.1f} to {max(seconds):.1f} s")
    for (stage, outcome), count in sorted(outcomes.items()):
        print(f"{count:4d} after a report of {stage!r}: {outcome}")
    return sum(count for (_, outcome), count in outcomes.items() if outcome == "equal")


def large_setting(place, workers=1):
    problem = large_problem(n_classes=2000, n_query=20_000, n_present=20, dim=64, apart=1.6, even=True)
    return Setting.of(problem, place, workers, shard_rows=2000)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_fifty_random_moments(workers, tmp_path):
    setting = large_setting(tmp_path, workers)
    assert killed_at_random(setting, tmp_path, 50, seed=workers) == 50


def test_killed_at_some_random_moments(tmp_path):
    problem = large_problem(n_classes=100, n_query=2000, n_present=10, apart=1.2, even=True)
    setting = Setting.of(problem, tmp_path, 2, shard_rows=250)
    assert killed_at_random(setting, tmp_path, 4, seed=0) == 4


@pytest.mark.slow
def test_ten_times_a_node_is_removed_and_the_driver_killed(tmp_path, monkeypatch):
    # Ray warns that a default of its own will change.
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    pytest.importorskip("ray")
    setting = large_setting(tmp_path)
    whole = setting.solve(tmp_path / "whole")
    moments, outcomes = random.Random(0), Counter()
    cluster = small_cluster()
    drivers = []
    try:
        cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        for folder in ("cold", "warm"):
            driver, began, ended = driver_on(cluster, setting, tmp_path / folder)
            drivers.append(driver)
            assert began.wait(PATIENCE)
            start = time.monotonic()
            assert ended.wait(PATIENCE)
            seconds = time.monotonic() - start
            driver.join()
        while outcomes["the driver was killed, the run resumed", "equal"] < 10:
            folder = tmp_path / f"run-{len(drivers)}"
            driver, began, ended = driver_on(cluster, setting, folder)
            drivers.append(driver)
            assert began.wait(PATIENCE)
            killed = moments.uniform(0, seconds)
            removed = moments.uniform(0, killed)
            time.sleep(removed)
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
            survived = ended.wait(killed - removed)
            driver.kill()
            driver.join()
            found = setting.solve(folder, executor=on_ray(cluster.address))
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


def driver_on(cluster, setting, folder):
    began, ended = PROCESSES.Event(), PROCESSES.Event()
    driver = PROCESSES.Process(target=drive_on_ray, args=(setting, folder, cluster.address, began, ended))
    driver.start()
    return driver, began, ended
