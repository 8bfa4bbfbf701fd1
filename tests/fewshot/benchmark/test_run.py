from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful.errors import TaskError
from handful_fewshot import UniformOverPool
from handful_fewshot.benchmark import run
from handful_fewshot.benchmark.journal import COLUMNS
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.benchmark.run import Material, of_the_machine, run_range, trace_of, versions_text
from tests.banks_at_hand import random_bank
from tests.plans_at_hand import SPEC, small_banks

TIMINGS = ("seconds", "cpu_seconds")


def without_timings(rows):
    return [{name: value for name, value in row.items() if name not in TIMINGS} for row in rows]


@pytest.fixture(scope="module")
def banks():
    return small_banks()


@pytest.fixture(scope="module")
def cell(banks):
    return Cell("toy", SPEC, "paddle").bound(banks)


def test_rows_are_what_the_library_answers_step_by_step(banks, cell):
    rows = run_range(cell, Material.of(cell, banks), range(3, 7))
    drawn = fewshot.draw(banks["toy"].labels, SPEC, 0, range(3, 7))
    task, truth = fewshot.gather(banks["toy"], drawn)
    solution = fewshot.solve("paddle", fewshot.transform("found_scale", task))
    assert [row["task"] for row in rows] == [3, 4, 5, 6]
    assert all(set(row) == {*COLUMNS, "lost"} and row["cell"] == cell.content_hash for row in rows)
    assert [row["accuracy"] for row in rows] == (solution.predictions == truth).double().mean(-1).tolist()
    assert [row["n_iter"] for row in rows] == solution.n_iter.tolist()
    assert all(row["seconds"] > 0 and row["cpu_seconds"] > 0 and row["error"] is None for row in rows)


def test_the_same_range_gives_the_same_bits_whatever_the_threads(banks, cell):
    material = Material.of(cell, banks)
    first = run_range(cell, material, range(10))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert without_timings(run_range(cell, material, range(10))) == without_timings(first)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_only_the_task_that_fails_has_an_error():
    bank = random_bank(1, n_classes=6, least=4, most=9)
    cell = Cell("toy", replace(SPEC, query=UniformOverPool(2), n_query=8), "paddle").bound({"toy": bank})
    rows = run_range(cell, Material.of(cell, {"toy": bank}), range(40))
    failed = [row for row in rows if row["error"]]
    assert 0 < len(failed) < 40
    assert all("rows left, fewer than the 8 queries" in row["error"] for row in failed)
    assert all(row["accuracy"] is None and row["error"].startswith("TaskError: ") for row in failed)
    assert not any(row["lost"] for row in failed)
    assert all(0 <= row["accuracy"] <= 1 for row in rows if not row["error"])


def test_the_base_mean_is_of_classes_that_no_task_has():
    bank = random_bank(n_classes=7, least=10, splits={"base": [0, 1], "test": [2, 3, 4, 5, 6]})
    cell = Cell("toy", SPEC, "nearest_prototype", split="test").bound({"toy": bank})
    material = Material.of(cell, {"toy": bank})
    np.testing.assert_allclose(material.base_mean, bank.features[bank.labels < 2].mean(0), rtol=1e-5)
    rows = run_range(cell, material, range(20))
    assert {row["transform"] for row in rows} == {"cl2n"}
    task, truth = fewshot.gather(material.bank, fewshot.draw(material.bank.labels, SPEC, 0, range(20)))
    centred = fewshot.transform("cl2n", task, base_mean=material.base_mean)
    expected = (fewshot.solve("nearest_prototype", centred).predictions == truth).double().mean(-1)
    assert [row["accuracy"] for row in rows] == expected.tolist()
    given = replace(cell, parameters={"base_mean": material.base_mean.tolist()})
    assert [row["accuracy"] for row in run_range(given, material, range(20))] == expected.tolist()


@pytest.mark.parametrize("splits", [{}, {"base": [0, 1]}])
def test_without_base_classes_apart_the_rows_say_that_nothing_was_centred(splits):
    bank = random_bank(n_classes=5, least=10, splits=splits)
    cell = Cell("toy", SPEC, "nearest_prototype").bound({"toy": bank})
    rows = run_range(cell, Material.of(cell, {"toy": bank}), range(4))
    assert {row["transform"] for row in rows} == {"l2"}
    as_l2 = run_range(replace(cell, transform="l2"), Material.of(cell, {"toy": bank}), range(4))
    assert [row["accuracy"] for row in rows] == [row["accuracy"] for row in as_l2]


def test_a_trace_is_of_the_task_that_the_row_is_of(banks, cell):
    material = Material.of(cell, banks)
    (row,) = run_range(cell, material, [3])
    trace = trace_of(cell, material, 3)
    assert trace.change.shape == (1, row["n_iter"])
    assert len(trace.seconds) == row["n_iter"]


def wrapped(cause):
    error = TaskError("the task could not be solved")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "machine"),
    [
        (MemoryError(), True),
        (OSError(28, "No space left on device"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (BrokenProcessPool("a child process terminated abruptly"), True),
        (wrapped(MemoryError()), True),
        (wrapped(ValueError()), False),
        (RuntimeError("svd did not converge"), False),
        (TaskError("too few rows"), False),
        (ZeroDivisionError(), False),
    ],
)
def test_failures_of_the_machine_are_told_from_those_of_the_method(banks, cell, monkeypatch, error, machine):
    def fail(*_, **__):
        raise error

    assert of_the_machine(error) is machine
    monkeypatch.setattr(run, "solve", fail)
    rows = run_range(cell, Material.of(cell, banks), range(3))
    assert [row["lost"] for row in rows] == [machine] * 3


def test_a_row_says_what_made_it():
    assert [part.split()[0] for part in versions_text().split(", ")] == [
        *("handful", "numpy", "python", "scikit-learn", "torch")
    ]
