"""Three Ray nodes that share no folder, input and output on S3; a node is removed, then the driver is killed."""

import os
import signal
import tempfile

import numpy as np
import pytest

from handful.executors.executor import on_ray
from handful.large import solve
from handful.machine.folders import folder_at
from tests.clusters_at_hand import small_cluster
from tests.kills_at_hand import PATIENCE, PROCESSES, differences
from tests.large_at_hand import large_problem
from tests.stores_at_hand import BUCKET, s3_server, upload

N_CLASSES, N_QUERY, N_SHARDS = 400, 2400, 24
SHARDS = {"shard_rows": N_QUERY // N_SHARDS}
INPUTS = f"{BUCKET}/catalogue", f"{BUCKET}/queries"
RUN = f"{BUCKET}/run"


@pytest.mark.slow
def test_a_node_is_lost_then_the_driver_and_no_bit_of_the_answer_changes(ray, tmp_path):
    problem = large_problem(n_classes=N_CLASSES, n_query=N_QUERY, n_present=10, apart=1.2, even=True)
    here = solve(problem.catalogue, problem.queries, tmp_path / "here", **SHARDS)
    disks = [tmp_path / name for name in ("head", "doomed", "third", "driver")]
    for disk in disks:
        disk.mkdir()
    with s3_server() as store, pytest.MonkeyPatch.context() as patch:
        for name, url in zip(("catalogue", "queries"), INPUTS, strict=True):
            getattr(problem, name).save(tmp_path / name)
            upload(tmp_path / name, url)
            (tmp_path / name).rename(tmp_path / f"{name}-put-away")
        cluster = small_cluster(env_vars={"TMPDIR": str(disks[0])})
        reached, removed = PROCESSES.Event(), PROCESSES.Event()
        try:
            doomed = cluster.add_node(num_cpus=1, env_vars={"TMPDIR": str(disks[1])})
            cluster.add_node(num_cpus=1, env_vars={"TMPDIR": str(disks[2])})
            cluster.wait_for_nodes()
            settings = {**store, "TMPDIR": str(disks[3])}
            driver = PROCESSES.Process(target=drive, args=(settings, cluster.address, reached, removed))
            driver.start()
            assert reached.wait(PATIENCE)
            cluster.remove_node(doomed, allow_graceful=False)
            removed.set()
            driver.join(PATIENCE)
            assert driver.exitcode == -signal.SIGKILL
            patch.setattr(tempfile, "tempdir", str(disks[3]))
            there = len(folder_at(f"{RUN}/answers").names())
            resumed = solve(*INPUTS, RUN, **SHARDS, executor=on_ray(cluster.address))
        finally:
            ray.shutdown()
            cluster.shutdown()
        assert 4 <= there < N_SHARDS
        assert differences(resumed, here) == []
        rows = np.concatenate([part["row"] for part in resumed.answers()])
        np.testing.assert_array_equal(rows, np.arange(N_QUERY))
    assert resumed.folder == RUN


def drive(settings, address, reached, removed):
    """After shard 2 wait until a node is removed; after shard 4, die."""
    os.environ.update(settings)
    tempfile.tempdir = None

    def watch(progress):
        if (progress.stage, progress.done) == ("label", 2):
            reached.set()
            assert removed.wait(PATIENCE)
        if (progress.stage, progress.done) == ("label", 4):
            os.kill(os.getpid(), signal.SIGKILL)

    solve(*INPUTS, RUN, **SHARDS, executor=on_ray(address), on_progress=watch)
