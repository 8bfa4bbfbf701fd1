import multiprocessing

import numpy as np
import pytest

from handful.benchmark.completion import complete
from handful.benchmark.journal import COLUMNS, Journal, remaining
from handful.benchmark.plan import Cell
from handful.benchmark.run import Material, run_range
from handful.errors import MissingExtraError, PlanError
from handful.whole_file import UNFINISHED
from tests.plans_at_hand import SPEC, small_banks, small_plan


@pytest.fixture
def banks():
    return small_banks()


@pytest.fixture
def journal(tmp_path, banks):
    return Journal.create(tmp_path / "run", small_plan(banks))


def test_rows_come_back_as_they_went(journal, banks):
    cell = journal.plan[0]
    rows = run_range(cell, Material.of(cell, banks), range(20))
    with journal.writing():
        journal.append(rows[10:])
        journal.append(rows[:10])
        journal.append([])
    assert len(journal.shards()) == 2
    columns = Journal(journal.folder).columns(cell)
    assert list(columns) == list(COLUMNS)
    for name in COLUMNS:
        assert columns[name].tolist() == [row[name] for row in rows]
    assert journal.done(journal.plan[1]).tolist() == []


def test_a_run_is_described_by_its_folder(journal):
    again = Journal(journal.folder)
    assert again.plan == journal.plan
    assert again.versions == journal.versions
    assert set(again.versions) == {"python", "torch", "numpy"}


@pytest.mark.parametrize(
    ("n_tasks", "budget", "sizes"), [(8, None, {1}), (200, None, {25}), (1024, None, {64}), (1024, 9.0, {2})]
)
def test_ranges_suit_the_number_of_tasks(n_tasks, budget, sizes):
    ranges = remaining(Cell("toy", SPEC, "paddle", n_tasks=n_tasks, cpu_budget=budget), np.array([], dtype=int))
    assert {len(part) for part in ranges} == sizes
    assert [index for part in ranges for index in part] == list(range(n_tasks))


def test_what_remains_is_what_is_not_done_in_the_same_ranges():
    cell = Cell("toy", SPEC, "paddle", n_tasks=40)
    whole = remaining(cell, np.array([], dtype=int))
    done = np.array(whole[1] + whole[4])
    assert remaining(cell, done) == [part for k, part in enumerate(whole) if k not in (1, 4)]
    assert remaining(cell, np.arange(40)) == []
    assert remaining(cell, np.array([0, 2])) == [[1, 3, 4], *whole[1:]]


def test_half_written_shards_are_not_rows_and_are_cleared_away(journal):
    half = journal.folder / f".rows-000001.parquet.4711{UNFINISHED}"
    half.write_bytes(b"PAR1 and then the power went")
    assert journal.table().num_rows == 0
    with journal.writing():
        assert not half.exists()


def rewrite(shard, change):
    """Replace a shard by a changed one, as another version would have written it."""
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(change(parquet.read_table(shard)), shard)


def test_rows_written_before_a_column_was_are_read_as_missing_it(journal, banks):
    complete(journal, banks)
    first, *_ = journal.shards()
    before = journal.columns()
    rewrite(first, lambda table: table.drop_columns(["proportion_error"]))
    after = journal.columns()
    assert np.isnan(after["proportion_error"]).any()
    assert after["accuracy"].tolist() == before["accuracy"].tolist()
    complete(journal, banks)  # nothing is left to do
    assert len(journal.columns()["task"]) == len(before["task"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop_columns(["accuracy"]), "missing are accuracy, unknown are none"),
        (lambda table: table.append_column("mood", table["task"]), "missing are none, unknown are mood"),
    ],
)
def test_rows_of_another_kind_are_refused(journal, banks, change, words):
    complete(journal, banks)
    rewrite(journal.shards()[0], change)
    with pytest.raises(PlanError, match=words):
        journal.table()


def hold(folder, ready, leave):
    with Journal(folder).writing():
        ready.set()
        leave.wait(30)


def test_one_writer_at_a_time_and_a_killed_one_lets_go(journal):
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=hold, args=(journal.folder, ready, leave))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(PlanError, match="another process is writing"), journal.writing():
            pass
    finally:
        other.kill()
        other.join()
    with journal.writing():
        pass


def test_a_longer_plan_continues_the_run(journal, banks):
    complete(journal, banks)
    journal.extend(small_plan(banks, n_tasks=30))
    complete(Journal(journal.folder), banks)
    table = journal.table()
    assert table.num_rows == 90
    assert table.group_by(["cell", "task"]).aggregate([]).num_rows == 90


def test_folders_that_are_no_run_are_refused(tmp_path, journal, monkeypatch):
    with pytest.raises(PlanError, match="is not a run"):
        Journal(tmp_path)
    with pytest.raises(PlanError, match="not empty"):
        Journal.create(journal.folder, journal.plan)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"handful\[parquet\]"):
        journal.table()
