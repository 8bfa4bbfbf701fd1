"""`handful bench run` killed at random moments and resumed: no row is lost, doubled or different.

50 kills: `pytest -m slow -s tests/end_to_end/test_bench_killed.py`, which prints what it found.
"""

import random
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("typer")
from handful.fewshot.benchmark.journal import COLUMNS, PLAN_FILE, Journal

# Rows are written often, so that kills fall into the writing as well.
PROGRAM = """
import sys
from handful.fewshot.benchmark import completion
completion.WAITING_SECONDS = 0.1
from handful.cli.main import main
sys.exit(main())
"""
METHODS = ("nearest_prototype", "paddle")
TIMINGS = ("seconds", "cpu_seconds")


def begin(out, n_tasks):
    """Start the command, or go on with it."""
    methods = [word for method in METHODS for word in ("--method", method)]
    plan = ["--bank", "clinc150", *methods, "--k-eff", "2", "--k-eff", "10", "--tasks", str(n_tasks)]
    command = [sys.executable, "-c", PROGRAM, "bench", "run", *plan, "--resume", "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process):
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()


def rows_of(folder):
    """Rows by cell and task, each as a tuple; two of one task are an error of the journal."""
    columns = Journal(folder).columns()
    names = [name for name in COLUMNS if name not in ("cell", "task")]
    listed = [columns[name].tolist() for name in names]
    keys = zip(columns["cell"].tolist(), columns["task"].tolist(), strict=True)
    found = {key: dict(zip(names, values, strict=True)) for key, *values in zip(keys, *listed, strict=True)}
    assert len(found) == len(columns["task"]), "a task has two rows"
    return found


def same(a, b, *, timings):
    """Whether two rows have the same bits; times are only compared where it is one row, read twice."""
    names = [name for name in a if timings or name not in TIMINGS]
    return all(np.array_equal(a[name], b[name], equal_nan=isinstance(a[name], float)) for name in names)


@pytest.mark.parametrize(
    ("kills", "n_tasks"), [(1, 20), pytest.param(50, 100, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_a_run_that_is_killed_at_random_moments_has_every_row_once(tmp_path, kills, n_tasks):
    begun = time.monotonic()
    finish(begin(tmp_path / "undisturbed", n_tasks))
    takes = time.monotonic() - begun
    expected = rows_of(tmp_path / "undisturbed")
    assert len(expected) == 2 * len(METHODS) * n_tasks

    clock = random.Random(0)
    killed, before_the_plan, with_rows, finished, shards = 0, 0, 0, 0, 0
    lost, different, doubled = 0, 0, 0
    while killed < kills:
        folder, there = tmp_path / f"run{finished}", {}
        while True:
            process, begun, fresh = begin(folder, n_tasks), time.monotonic(), not there
            try:
                process.wait(clock.uniform(0, takes) if killed < kills else None)
                # The load of the machine may have fallen; most moments would then lie after the end.
                takes = min(takes, time.monotonic() - begun) if fresh else takes
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
            process.stderr.close()
            if not (folder / PLAN_FILE).exists():
                assert process.returncode == -9
                before_the_plan += 1
                continue
            now = rows_of(folder)
            lost += len(there.keys() - now.keys())
            different += sum(not same(row, now[key], timings=True) for key, row in there.items() if key in now)
            there = now
            with_rows += process.returncode == -9 and 0 < len(now) < len(expected)
            if process.returncode != -9:
                assert process.returncode == 0
                break
        finished += 1
        shards += len(Journal(folder).shards())
        lost += len(expected.keys() - there.keys())
        doubled += len(there.keys() - expected.keys())
        different += sum(not same(row, expected[key], timings=False) for key, row in there.items() if key in expected)
    print(
        f"\n{killed} kills, {before_the_plan} of them before the run was there, {with_rows} with some of its rows "
        f"there; {finished} runs ended, of {len(expected)} rows in {shards / finished:.0f} shards each: "
        f"{lost} rows lost, {doubled} doubled, {different} different; undisturbed a run takes {takes:.1f} s"
    )
    assert killed >= kills
    assert (lost, doubled, different) == (0, 0, 0)
