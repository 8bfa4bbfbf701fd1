import multiprocessing
import random
import time

import numpy as np
import pytest

from handful.benchmark import completion
from handful.benchmark.completion import complete, progress
from handful.benchmark.journal import COLUMNS, Journal
from handful.benchmark.local import in_process
from handful.benchmark.plan import Cell, bound_plan
from handful.benchmark.run import Material, run_range
from handful.errors import PlanError
from tests.banks_at_hand import random_bank
from tests.plans_at_hand import SPEC, small_banks, small_plan

COMPARED = [name for name in COLUMNS if name not in ("seconds", "cpu_seconds")]


def values(journal):
    """Rows without timings, as a list in order of cell and task."""
    columns = journal.columns()
    return sorted(zip(*(columns[name].tolist() for name in COMPARED), strict=True), key=str)


@pytest.fixture(scope="module")
def banks():
    return small_banks()


def undisturbed(folder, banks, n_tasks=20):
    journal = Journal.create(folder, small_plan(banks, n_tasks))
    complete(journal, banks)
    return journal


def test_every_task_of_every_cell_has_a_row_and_progress_says_so(tmp_path, banks):
    seen = []
    journal = Journal.create(tmp_path / "run", small_plan(banks))
    complete(journal, banks, on_progress=lambda state: seen.append((state.cell.method, state.done)))
    assert [(state.done, state.wanted, state.failed) for state in progress(journal)] == [(20, 20, 0)] * 3
    assert seen[-1] == ("soft_kmeans", 20)
    assert len(seen) == 3 * 7  # ranges of three tasks
    before = values(journal)
    complete(journal, banks)
    assert values(journal) == before


class Killed(BaseException):
    pass


def test_what_came_before_an_interruption_is_kept(tmp_path, banks):
    def interrupted(jobs):
        for n, rows in enumerate(in_process()(jobs)):
            if n == 4:
                raise Killed
            yield rows

    journal = Journal.create(tmp_path / "run", small_plan(banks))
    with pytest.raises(Killed):
        complete(journal, banks, interrupted)
    assert journal.table().num_rows == 12
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "other", banks))


def run_slowly(folder):
    """Run with a shard for every range, so that a kill falls between shards as well as into one."""
    completion.WAITING_ROWS = 1

    def slow(jobs):
        for rows in in_process()(jobs):
            time.sleep(0.002)
            yield rows

    complete(Journal(folder), small_banks(), slow)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_again_and_again_a_run_has_every_row_once(tmp_path, banks, kills):
    journal = Journal.create(tmp_path / "run", small_plan(banks, n_tasks=20 * kills))
    # Forked, so that a kill falls into the run and not into imports.
    context = multiprocessing.get_context("fork")
    clock = random.Random(0)
    interrupted = 0
    for _ in range(kills):
        process = context.Process(target=run_slowly, args=(journal.folder,))
        process.start()
        time.sleep(clock.uniform(0.05, 0.35))
        process.kill()
        process.join()
        interrupted += process.exitcode == -9
        rows = journal.table()  # every shard can be read
        assert rows.group_by(["cell", "task"]).aggregate([]).num_rows == rows.num_rows
    assert interrupted > 0
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "other", banks, n_tasks=20 * kills))


def test_a_budget_leaves_the_first_tasks_of_the_list(tmp_path, banks):
    cells = [Cell("toy", SPEC, "paddle", n_tasks=5000, cpu_budget=0.2), Cell("toy", SPEC, "soft_kmeans", n_tasks=4)]
    journal = Journal.create(tmp_path / "run", bound_plan(cells, banks))
    complete(journal, banks, in_process(2))
    done = journal.done(journal.plan[0])
    assert 0 < len(done) < 5000
    assert done.tolist() == list(range(len(done)))
    states = progress(journal)
    assert (states[0].wanted, states[0].over_budget) == (len(done), True)
    assert states[0].cpu_seconds >= 0.2
    assert states[1].done == 4
    complete(journal, banks)
    assert journal.done(journal.plan[0]).tolist() == done.tolist()


def test_gaps_are_filled_even_when_the_budget_is_used_up(tmp_path, banks):
    cells = [Cell("toy", SPEC, "paddle", n_tasks=5000, cpu_budget=0.2)]
    journal = Journal.create(tmp_path / "run", bound_plan(cells, banks))
    cell = journal.plan[0]
    rows = run_range(cell, Material.of(cell, banks), [0, 1, 10, 11])
    with journal.writing():
        journal.append([{**row, "cpu_seconds": 0.1} for row in rows])
    assert journal.done(journal.plan[0]).tolist() == [0, 1, 10, 11]
    complete(journal, banks)
    assert np.array_equal(journal.done(journal.plan[0]), np.arange(12))


def test_another_bank_under_the_same_name_is_refused(tmp_path, banks):
    journal = Journal.create(tmp_path / "run", small_plan(banks))
    with pytest.raises(PlanError, match="content hash differs"):
        complete(journal, {"toy": random_bank(9, n_classes=5, least=10)})
    assert journal.table().num_rows == 0
