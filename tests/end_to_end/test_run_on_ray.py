"""A run over Ray nodes that share no folder, on S3: a node is lost, then the driver is killed, and the run goes on.

`HANDFUL_KILLS=20` asks for as many of both.
"""

import os
import signal
import time

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from handful.machine.folders import file_system, folder_at
from handful.scale import label_table, run
from handful.workers import on_ray
from tests.clusters_at_hand import small_cluster
from tests.kills_at_hand import PATIENCE, PROCESSES
from tests.scale_at_hand import assert_same, world
from tests.stores_at_hand import BUCKET, s3_server

N_KILLS = int(os.environ.get("HANDFUL_KILLS", "1"))
N_PARTITIONS = 24
DATA, MODEL = f"{BUCKET}/rows", f"{BUCKET}/birds.model"
KEYS = ["site", "part"]


def labelled(place):
    with file_system(place) as (system, path):
        return pq.ParquetDataset(path, filesystem=system).read()


@pytest.mark.slow
def test_nodes_and_drivers_that_are_lost_change_no_table(ray, tmp_path):
    birds = world(tmp_path, sizes=(40,) * 2 * N_PARTITIONS)
    parts = [str(int(site.split()[1]) % N_PARTITIONS) for site in birds.sites]
    table = birds.table(part=parts)
    expected = label_table(table, birds.path, KEYS)
    with s3_server() as store:
        with file_system(MODEL) as (system, path):
            system.put_file(str(birds.path), path)
        for part in set(parts):
            with folder_at(DATA).written(f"part={part}/rows.parquet") as place:
                pq.write_table(table.filter(pc.equal(table["part"], part)).drop_columns("part"), place)
        cluster = small_cluster()
        try:
            cluster.add_node(num_cpus=1)
            for number in range(N_KILLS):
                doomed = cluster.add_node(num_cpus=1)
                cluster.wait_for_nodes()
                out = f"{BUCKET}/labelled-{number}"
                reached = PROCESSES.Event()
                driver = PROCESSES.Process(target=drive, args=(store, cluster.address, out, reached))
                driver.start()
                assert reached.wait(PATIENCE)
                cluster.remove_node(doomed, allow_graceful=False)
                time.sleep(number / N_KILLS)
                driver.kill()
                driver.join(PATIENCE)
                assert driver.exitcode == -signal.SIGKILL
                report = run(DATA, MODEL, out, group_by=KEYS, workers=on_ray(cluster.address))
                assert len(report.labelled) + len(report.unchanged) == N_PARTITIONS
                for kind, found, by in (
                    ("items", expected.items, ["id"]),
                    ("groups", expected.groups, ["site", "class"]),
                ):
                    names = [name for name in found.column_names if name != "part"]
                    assert_same(labelled(f"{out}/{kind}").select(names), found.select(names), *by)
        finally:
            ray.shutdown()
            cluster.shutdown()


def drive(settings, address, out, reached):
    """Label, and say when some partitions are done; to be killed."""
    os.environ.update(settings)

    def watch(progress):
        if progress.stage == "label" and progress.done >= 2:
            reached.set()

    run(DATA, MODEL, out, group_by=KEYS, workers=on_ray(address), on_progress=watch)
    time.sleep(PATIENCE)
