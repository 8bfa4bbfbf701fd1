import json
import random
import threading
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import MissingExtraError
from handful.machine.outputs import UNFINISHED
from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import PLAN_FILE, SUMMARISED, Journal, _checksum, remaining, rows_of_cells
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.benchmark.run import Material, run_range
from handful_fewshot.errors import PlanError
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
    assert list(columns) == list(SUMMARISED)
    for name in SUMMARISED:
        found = [None if value != value else value for value in columns[name].tolist()]  # a missing number is a NaN
        assert found == [row[name] for row in rows]
    assert journal.done(journal.plan[1]).tolist() == []


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
    with pytest.raises(MissingExtraError, match=r"\[parquet\]"):
        journal.table()


@pytest.fixture
def shards(journal, banks):
    """A run with three shards."""
    cell = journal.plan[0]
    for start in (0, 7, 14):
        journal.append(run_range(cell, Material.of(cell, banks), range(start, min(start + 7, 20))))
    assert journal.table().num_rows == 20
    return journal.shards()


def test_every_single_flipped_bit_of_a_shard_is_noticed(journal, shards):
    content = shards[1].read_bytes()
    clock = random.Random(0)
    noticed = 0
    for bit in clock.sample(range(8 * len(content)), 200):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        shards[1].write_bytes(damaged)
        with pytest.raises(PlanError, match="is damaged, or a copy of another shard"):
            journal.table()
        noticed += 1
    assert noticed == 200
    shards[1].write_bytes(content)
    assert journal.table().num_rows == 20


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: random.Random(0).randbytes(len(content)),
        lambda content: content + b"\0",
    ],
)
def test_shards_that_were_cut_or_overwritten_are_refused_by_name(journal, shards, damage):
    shards[1].write_bytes(damage(shards[1].read_bytes()))
    with pytest.raises(PlanError, match=rf"{shards[1].name} is damaged"):
        journal.table()


def renumbered(shard):
    """The name of a copy under another number, with a checksum that fits it."""
    return f"rows-000009-{_checksum(9, shard.read_bytes())}.parquet"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (lambda shard: shard.name.replace("000001", "000009"), "a copy of another shard"),
        (renumbered, r"task 0 of cell \w+ has two answers: see rows-000001-\w+.parquet and rows-000009"),
        (lambda shard: shard.name.replace(".parquet", " (copy).parquet"), "is not named like a shard"),
    ],
)
def test_a_copied_shard_doubles_nothing(journal, shards, banks, name, words):
    (journal.folder / name(shards[0])).write_bytes(shards[0].read_bytes())
    with pytest.raises(PlanError, match=words):
        journal.table()
    with pytest.raises(PlanError, match=words):
        complete(Journal(journal.folder), banks)


def test_a_changed_plan_is_refused(journal):
    place = journal.folder / PLAN_FILE
    about = json.loads(place.read_text())
    about["cells"][0]["n_tasks"] += 8
    place.write_text(json.dumps(about))
    with pytest.raises(PlanError, match="is damaged: its checksum does not fit"):
        Journal(journal.folder)
    place.write_text("[" * 100_000)
    with pytest.raises(PlanError, match="is not a run"):
        Journal(journal.folder)


def test_nothing_is_written_while_another_writes(journal, banks):
    rows = run_range(journal.plan[0], Material.of(journal.plan[0], banks), [0])
    held, leave = threading.Event(), threading.Event()

    def hold():
        with Journal(journal.folder).writing():
            held.set()
            leave.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    before = {file.name: file.read_bytes() for file in journal.folder.iterdir()}
    try:
        assert held.wait(60)
        for write in (lambda: journal.append(rows), lambda: journal.extend(journal.plan[:1])):
            with pytest.raises(PlanError, match="another process is writing"):
                write()
        with pytest.raises(PlanError, match="not empty"):
            Journal.create(journal.folder, journal.plan)
        assert {file.name: file.read_bytes() for file in journal.folder.iterdir() if file.name in before} == before
        assert len(journal.plan) == 3
    finally:
        leave.set()
        other.join()
    journal.append(rows)
    assert journal.table().num_rows == 1


def test_a_plan_with_another_bank_of_the_same_name_is_refused(journal):
    with pytest.raises(PlanError, match="the bank 'toy' is not the one this run was started with"):
        journal.extend((replace(journal.plan[0], bank_hash="another"),))
    assert len(Journal(journal.folder).plan) == 3


def test_rows_with_other_columns_are_refused(journal, shards):
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(parquet.read_table(shards[2]).drop_columns(["accuracy"]), shards[2])
    shards[2].rename(journal.folder / f"rows-000003-{_checksum(3, shards[2].read_bytes())}.parquet")
    with pytest.raises(PlanError, match=r"its columns are cell, bank, split, .*, task, macro_recall"):
        journal.table()


def test_rows_of_cells_are_those_of_a_search_for_each():
    cells = np.random.default_rng(0).choice(np.array(["a", "b", "c", "d"], object), 200)
    found = rows_of_cells({"cell": cells})
    assert set(found) == set("abcd")
    for cell, rows in found.items():
        assert rows.tolist() == np.flatnonzero(cells == cell).tolist()
    assert rows_of_cells({"cell": np.empty(0, object)}) == {}
