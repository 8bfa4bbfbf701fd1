"""Workers and drivers of a run that are killed: the same tables, nothing twice, and no process left behind.

`HANDFUL_KILLS=20` asks for as many of each.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from handful.scale import label_table, run
from handful.workers import here
from tests.scale_at_hand import assert_same, world
from tests.work_at_hand import process_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
N_KILLS = int(os.environ.get("HANDFUL_KILLS", "1"))
ROOT = Path(__file__).resolve().parents[2]
N_PARTITIONS = 30
# Longest wait for a run, and for processes to end. [seconds]
PATIENCE, ENDED = 300, 10
DRIVER = """
import sys
from handful.scale import run
from handful.workers import here
run(sys.argv[1], sys.argv[2], sys.argv[3], group_by=["site", "part"], workers=here(2))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of many partitions, its model and the tables that memory gives about it."""
    birds = world(tmp_path_factory.mktemp("world"), sizes=(40,) * 2 * N_PARTITIONS)
    place = birds.path.parent / "data"
    parts = [str(int(site.split()[1]) % N_PARTITIONS) for site in birds.sites]
    table = birds.table(part=parts)
    by_part = ds.partitioning(table.select(["part"]).schema, flavor="hive")
    ds.write_dataset(table, place, format="parquet", partitioning=by_part)
    return place, birds.path, label_table(table, birds.path, ["site", "part"])


def driver(place, model, out):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(place), str(model), str(out)], cwd=ROOT, env=environment)


def below(pid):
    """Processes that this one started, and those that these started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def workers_of(process):
    """Processes of loky that label."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8") for pid in below(process.pid)}
    return [pid for pid, command in commands.items() if "popen_loky" in command]


def done(out):
    """Partitions that are committed."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in out.glob("_handful/*.jsonl"))


def wait_until(true, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def assert_labelled(out, expected):
    for kind, by in (("items", ["id"]), ("groups", ["site", "class"])):
        table = ds.dataset(out / kind, partitioning=ds.partitioning(flavor="hive")).to_table()
        names = [name for name in getattr(expected, kind).column_names if name != "part"]
        assert_same(table.select(names), getattr(expected, kind).select(names), *by)


def test_workers_that_are_killed_cost_nothing(data, tmp_path):
    moments = random.Random(0)
    for number in range(N_KILLS):
        out = tmp_path / f"run {number}"
        process = driver(*data[:2], out)
        after = moments.randrange(N_PARTITIONS - 5)
        wait_until(lambda out=out, after=after, process=process: done(out) >= after and workers_of(process))
        workers = below(process.pid)
        os.kill(moments.choice(workers_of(process)), signal.SIGKILL)
        assert process.wait(PATIENCE) == 0
        assert_labelled(out, data[2])
        assert done(out) == N_PARTITIONS
        wait_until(lambda workers=workers: not any(map(process_alive, workers)), ENDED)


def test_a_driver_that_is_killed_leaves_no_process_and_the_run_goes_on(data, tmp_path):
    moments = random.Random(1)
    for number in range(N_KILLS):
        out = tmp_path / f"run {number}"
        process = driver(*data[:2], out)
        after = moments.randrange(1, N_PARTITIONS - 5)
        wait_until(lambda out=out, after=after: done(out) >= after)
        workers = below(process.pid)
        process.kill()
        process.wait()
        wait_until(lambda workers=workers: not any(map(process_alive, workers)), ENDED)
        before = done(out)
        report = run(*data[:2], out, group_by=["site", "part"], workers=here())
        assert len(report.labelled) == N_PARTITIONS - before
        assert_labelled(out, data[2])


def test_two_drivers_at_once_harm_nothing(data, tmp_path):
    both = [driver(*data[:2], tmp_path / "out") for _ in range(2)]
    assert [one.wait(PATIENCE) for one in both] == [0, 0]
    assert_labelled(tmp_path / "out", data[2])
    assert run(*data[:2], tmp_path / "out", group_by=["site", "part"], workers=here()).labelled == ()
