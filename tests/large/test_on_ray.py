import multiprocessing
import os
import signal
import sys
import time

import numpy as np
import pytest
import torch

from handful.errors import MissingExtraError
from handful.large import solve
from handful.large.candidates import Contenders
from handful.large.on_ray import as_arrays, as_tensors, message_bytes, on_ray
from handful.large.shard import Held
from tests.large_at_hand import large_problem

SHARDS = {"shard_rows": 100, "list_length": 12}
# Bytes around the numbers of a message, as docs/scale.md has them.
MESSAGE_HEAD = 150
# A dead node is noticed after three missed signs of life rather than after half a minute.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch:
        # Ray warns that a default of its own will change.
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield pytest.importorskip("ray")


@pytest.fixture
def banks(tmp_path):
    """A problem on disk: every process maps it."""
    problem = large_problem(n_classes=400, n_query=600, n_present=10, apart=1.2, even=True)
    return problem.catalogue, problem.queries.save(tmp_path / "queries")


def assert_same(one, other):
    assert torch.equal(one.expected_counts, other.expected_counts)
    assert torch.equal(one.prototypes, other.prototypes)
    assert one.n_iter == other.n_iter
    for part, again in zip(one.answers(), other.answers(), strict=True):
        for name, values in part.items():
            np.testing.assert_array_equal(values, again[name])


def test_tensors_travel_as_arrays_and_come_back():
    contenders = Contenders.of(torch.eye(3), torch.zeros(3))
    ones = torch.ones(3, dtype=torch.float64)
    sent = as_arrays(("all", contenders, Held(ones, 2 * ones, 0.5)))
    assert 35 * 4 * 3 < message_bytes(sent) < 35 * 4 * 3 + 1500
    name, again, held = as_tensors(sent)
    assert (name, held.confidence) == ("all", 0.5)
    assert torch.equal(again.weights, contenders.weights)
    assert again.name == contenders.name
    assert torch.equal(held.counts, ones)
    assert torch.equal(held.largest, 2 * ones)


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path, banks):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"):
        solve(*banks, tmp_path / "run", executor=on_ray())


def test_the_answer_is_that_of_a_run_in_process_and_traffic_that_of_the_model(ray, tmp_path, banks):
    here = solve(*banks, tmp_path / "here", **SHARDS)
    there = solve(*banks, tmp_path / "there", **SHARDS, executor=on_ray())
    assert not ray.is_initialized()
    assert_same(here, there)
    assert here.bytes_sent == [0] * here.n_iter
    assert there.n_iter > 4
    # Down: a tilt per class, once. Up: a count per class from each of six shards. A message has a head.
    np.testing.assert_allclose(there.bytes_sent, [4 * 400 + MESSAGE_HEAD] * there.n_iter, rtol=0.2)
    np.testing.assert_allclose(there.bytes_received, [6 * (8 * 400 + MESSAGE_HEAD)] * there.n_iter, rtol=0.2)


@pytest.mark.slow
def test_a_node_dies_then_the_driver_and_the_answer_is_that_of_an_undisturbed_run(ray, tmp_path, banks):
    from ray.cluster_utils import Cluster

    here = solve(*banks, tmp_path / "here", **SHARDS)
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    folder = tmp_path / "there"
    state = folder / "state.safetensors"
    try:
        doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        arguments = (banks, folder, cluster.address, doomed.node_id)
        driver = multiprocessing.get_context("spawn").Process(target=drive_slowly, args=arguments)
        driver.start()
        deadline = time.monotonic() + 300
        while not (folder / "iteration-2").exists() and driver.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        cluster.remove_node(doomed, allow_graceful=False)
        (folder / "node-is-dead").touch()
        driver.join(300)
        assert driver.exitcode == -signal.SIGKILL
        assert state.exists()
        seen = []
        resumed = solve(
            *banks,
            folder,
            **SHARDS,
            executor=on_ray(cluster.address),
            on_progress=lambda progress: seen.append(progress.iteration),
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert min(seen) >= 4
    assert_same(here, resumed)


def drive_slowly(banks, folder, address, doomed_node):
    """In iteration 2 wait until the node is dead, whose shards the next iteration needs; after iteration 4, die."""

    def watch(progress):
        if progress.stage != "iterate":
            return
        if progress.iteration == 2:
            # Some actor must live on the node that dies, or its death would show nothing.
            from ray._private.state import actors

            assert doomed_node in {actor["Address"]["NodeID"] for actor in actors().values()}
            (folder / "iteration-2").touch()
            while not (folder / "node-is-dead").exists():
                time.sleep(0.02)
        if progress.iteration == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    solve(*banks, folder, **SHARDS, executor=on_ray(address, actors=3), on_progress=watch)
