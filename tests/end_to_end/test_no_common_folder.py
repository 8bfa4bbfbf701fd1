"""Three Ray nodes that share no folder, input and output on S3; a node is removed, then the driver is killed."""

import os
import signal
import tempfile

import numpy as np
import pytest

from handful.large import solve
from handful.large.on_ray import on_ray
from tests.clusters_at_hand import small_cluster
from tests.kills_at_hand import PATIENCE, PROCESSES, differences
from tests.large_at_hand import large_problem
from tests.stores_at_hand import BUCKET, s3_server, upload

N_CLASSES, N_QUERY, N_SHARDS = 400, 2400, 24
SHARDS = {"shard_rows": N_QUERY // N_SHARDS, "list_length": 12, "method": "paddle"}
INPUTS = f"{BUCKET}/catalogue", f"{BUCKET}/queries"
RUN = f"{BUCKET}/run"


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
            lists = {disk.name: lists_on(disk) for disk in disks}
            cluster.remove_node(doomed, allow_graceful=False)
            removed.set()
            driver.join(PATIENCE)
            assert driver.exitcode == -signal.SIGKILL
            # Every node made the lists of its own shards, on its own disk.
            assert lists["driver"] == {}
            assert {name: len(files) for name, files in lists.items() if files} == dict.fromkeys(
                ("head", "doomed", "third"), N_SHARDS // 3
            )
            assert len({file.name for files in lists.values() for file in files}) == N_SHARDS

            patch.setattr(tempfile, "tempdir", str(disks[3]))
            seen, kept = [], {}

            def watch(progress):
                seen.append((progress.stage, progress.iteration))
                if progress.stage == "iterate":
                    kept.update(lists_on(disks[0]) | lists_on(disks[2]))

            resumed = solve(*INPUTS, RUN, **SHARDS, executor=on_ray(cluster.address), on_progress=watch)
            rows = {"shard_rows": SHARDS["shard_rows"]}
            labelled = solve(*INPUTS, f"{BUCKET}/labelled", **rows, executor=on_ray(cluster.address))
            expected = solve(problem.catalogue, problem.queries, tmp_path / "labelled", **rows)
            assert differences(labelled, expected) == []
        finally:
            ray.shutdown()
            cluster.shutdown()
        # The lists of living nodes were used as they were; those of the lost node were made again elsewhere.
        assert min(iteration for stage, iteration in seen if stage == "iterate") >= 4
        assert {**lists["head"], **lists["third"]}.items() <= kept.items()
        assert len(kept) == N_SHARDS
        assert differences(resumed, here) == []
        rows = np.concatenate([part["row"] for part in resumed.answers()])
        np.testing.assert_array_equal(rows, np.arange(N_QUERY))
    assert resumed.folder == RUN
    assert not any(lists_on(disk) for disk in (disks[0], disks[2], disks[3]))


def lists_on(disk):
    """Shortlists on a disk, and when they were written."""
    return {file: file.stat().st_mtime_ns for file in disk.glob("handful-*/lists-*/*.npy")}


def drive(settings, address, reached, removed):
    """In iteration 2 wait until the node is removed, whose shards the next iteration needs; after iteration 4, die."""
    os.environ.update(settings)
    tempfile.tempdir = None

    def watch(progress):
        if progress.stage != "iterate":
            return
        if progress.iteration == 2:
            reached.set()
            assert removed.wait(PATIENCE)
        if progress.iteration == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    solve(*INPUTS, RUN, **SHARDS, executor=on_ray(address), on_progress=watch)
