import numpy as np
import pytest

from handful.errors import HandfulWarning
from handful.workers import here
from handful_fewshot.benchmark import completion, run
from handful_fewshot.benchmark.completion import CellProgress, complete, progress, time_left
from handful_fewshot.benchmark.journal import SUMMARISED, Journal
from handful_fewshot.benchmark.plan import Cell, bound_plan
from handful_fewshot.benchmark.run import Material, run_range
from handful_fewshot.errors import PlanError
from tests.banks_at_hand import random_bank
from tests.plans_at_hand import SPEC, small_banks, small_plan

COMPARED = [name for name in SUMMARISED if name not in ("seconds", "cpu_seconds")]


def values(journal):
    """Rows without timings, as a list in order of cell and task; NaN, of scores that do not apply, as None."""
    columns = journal.columns()
    rows = zip(*(columns[name].tolist() for name in COMPARED), strict=True)
    return sorted((tuple(None if value != value else value for value in row) for row in rows), key=str)


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


def test_a_budget_leaves_the_first_tasks_of_the_list(tmp_path, banks):
    cells = [Cell("toy", SPEC, "paddle", n_tasks=5000, cpu_budget=0.2), Cell("toy", SPEC, "soft_kmeans", n_tasks=4)]
    journal = Journal.create(tmp_path / "run", bound_plan(cells, banks))
    complete(journal, banks, here(2))
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


def one_cell(tmp_path, banks, n_tasks=4):
    cell = Cell("toy", SPEC, "nearest_prototype", n_tasks=n_tasks)
    return Journal.create(tmp_path / "run", bound_plan([cell], banks))


def raising(error):
    def fail(*arguments, **options):
        raise error

    return fail


def test_what_the_machine_failed_on_has_no_row_and_is_tried_again(tmp_path, banks, monkeypatch):
    journal, seen = one_cell(tmp_path, banks), []
    with monkeypatch.context() as patch:
        patch.setattr(run, "solve", raising(MemoryError("full for a moment")))
        with pytest.warns(HandfulWarning, match="failed on 4 tasks, first with MemoryError: full for a moment; resume"):
            complete(journal, banks, on_progress=lambda state: seen.append(len(state.lost)))
    assert seen == [1, 2, 3, 4]
    assert [(state.done, state.wanted) for state in progress(journal)] == [(0, 4)]
    complete(Journal(journal.folder), banks)
    assert journal.columns()["error"].tolist() == [None] * 4


def test_what_the_method_failed_on_is_kept(tmp_path, banks, monkeypatch):
    journal = one_cell(tmp_path, banks)
    with monkeypatch.context() as patch:
        patch.setattr(run, "solve", raising(ValueError("no answer")))
        complete(journal, banks)
    complete(journal, banks)
    assert [(state.done, state.failed) for state in progress(journal)] == [(4, 4)]
    assert journal.columns()["error"].tolist() == ["ValueError: no answer"] * 4


def test_a_run_that_would_mix_versions_is_refused(tmp_path, banks, monkeypatch):
    journal = Journal.create(tmp_path / "run", small_plan(banks))

    def half(*work):
        for n, rows in enumerate(here()(*work)):
            if n == 10:
                raise Killed
            yield rows

    with monkeypatch.context() as patch:
        for module in (run, completion):
            patch.setattr(module, "versions_text", lambda: "handful 0.0.9, torch 2.0")
        with pytest.raises(Killed):
            complete(journal, banks, half)
    before = values(journal)
    with pytest.raises(PlanError, match=r"different versions: rows were made with handful 0.0.9, torch 2.0, but this "):
        complete(journal, banks)
    assert values(journal) == before


def test_rows_of_a_worker_with_other_versions_are_refused(tmp_path, banks):
    def elsewhere(*work):
        for rows in here()(*work):
            yield [{**row, "versions": "handful 9"} for row in rows]

    journal = Journal.create(tmp_path / "run", small_plan(banks))
    with pytest.raises(PlanError, match="a worker has other versions than this process: handful 9"):
        complete(journal, banks, elsewhere)
    assert journal.table().num_rows == 0


def test_a_shard_that_was_written_when_the_interruption_came_is_not_written_again(tmp_path, banks, monkeypatch):
    append, calls = Journal.append, []

    def interrupted(self, rows):
        append(self, rows)
        calls.append(len(rows))
        if len(calls) == 1:
            raise KeyboardInterrupt

    journal = Journal.create(tmp_path / "run", small_plan(banks))
    with monkeypatch.context() as patch:
        patch.setattr(completion, "WAITING_ROWS", 6)
        patch.setattr(Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            complete(journal, banks)
    assert journal.table().num_rows == 6
    complete(journal, banks)
    assert values(journal) == values(undisturbed(tmp_path / "other", banks))


def state(method, done, wanted, seconds, *, failed=0, budget=None):
    cell = Cell("toy", SPEC, method, n_tasks=wanted, cpu_budget=budget)
    return CellProgress(cell, done, failed, wanted, seconds)


def test_each_cell_is_judged_by_its_own_tasks():
    quick, slow = state("paddle", 900, 1000, 0.9), state("tim", 10, 1000, 20.0)
    assert time_left([quick]) == (pytest.approx(0.1), 0)
    assert time_left([slow]) == (pytest.approx(1980.0), 0)
    assert time_left([quick, slow]) == (pytest.approx(1980.1), 0)


def test_a_cell_that_has_not_begun_is_judged_by_others_of_its_method_or_counted():
    begun, later, unknown = state("paddle", 10, 10, 5.0), state("paddle", 0, 10, 0.0), state("tim", 0, 10, 0.0)
    assert time_left([begun, later]) == (5.0, 0)
    assert time_left([begun, later, unknown]) == (5.0, 1)
    assert time_left([unknown]) == (0.0, 1)


def test_a_budget_bounds_what_is_left_and_failures_have_no_time():
    assert time_left([state("tim", 10, 1000, 20.0, budget=50.0)]) == (30.0, 0)
    assert time_left([state("tim", 10, 1000, 60.0, budget=50.0)]) == (0.0, 0)
    assert time_left([state("tim", 10, 20, 10.0, failed=5)]) == (20.0, 0)
    assert time_left([state("tim", 10, 20, 0.0, failed=10)]) == (0.0, 1)
    assert time_left([state("tim", 20, 20, 10.0)]) == (0.0, 0)
