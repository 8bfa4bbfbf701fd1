"""run_range: draw, gather, transform, solve, score. A pure function, the same in every process.

A transform that needs the mean of the base classes takes it from the cell, if given there. Otherwise it is the mean of
the bank's split `base`, provided no class of the cell's tasks is in it. A bank without such classes has no base mean to
subtract, and using the mean of the task's own points would be a different method. The cell is then run with `l2`, that
is, without centring, and the column `transform` of its rows says so.

A task that fails has a row that says what failed. A failure of the method would happen again, so it is the result. A
failure of the machine (memory, disk, a dead worker) says nothing about the method: the row is `lost`, it is not kept,
and the task is tried again when the run is resumed.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np
import torch

from handful import FeatureBank, __version__
from handful.errors import OptionError
from handful.machine.threads import one_thread
from handful.shapes import Float, Int
from handful.workers import Shared
from handful_fewshot.benchmark.plan import PREDICTIONS, Banks, Cell, named_bank, refuse_another_file
from handful_fewshot.benchmark.score import TaskScores, score
from handful_fewshot.dispatch import solve
from handful_fewshot.gathering import gather
from handful_fewshot.numerics.fixed_point import Trace
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch
from handful_fewshot.tasks import Draw, ShotsPerClass, draw
from handful_fewshot.transforms import parameters_of, scale_name, transform

CPU = "cpu"
# Arrays of a solution that scores and rows are made of.
SCORED = ("log_assignments", "proportions", "n_iter", "converged", "query_mask", "unknown")
BASE_SPLIT = "base"
WITHOUT_BASE = "l2"
Row: TypeAlias = dict[str, Any]
# What a row is about, and its Arrow types: the cell in words, so that rows can be read without the plan. Shots are null
# for a fixed support, `n_classes` where tasks have all classes, and the unknown classes where there are none.
ABOUT = {
    **{"cell": "string", "bank": "string", "split": "string", "support_bank": "string", "shots": "int64"},
    **{"k_eff": "int64", "n_query": "int64", "n_classes": "int64", "protocol": "string"},
    **{"unknown_classes": "int64", "unknown_share": "float64"},
    **{"method": "string", "scale": "string", "transform": "string", "options": "string"},
    **{"seed": "int64", "task": "int64"},
}
# What is kept of a task if its cell asks for it: the classes of the bank (or of its split) that the task has, in the
# order of its labels and probabilities; true and predicted labels, -1 for unknown; and `Solution.unknown`.
KEPT = {
    **{"classes": "list<int32>", "query_labels": "list<int32>", "predictions": "list<int32>"},
    **{"probabilities": "list<list<float>>", "unknown": "list<float>"},
}
# Packages that rows are computed with; scikit-learn fits the logistic regression of `ici`.
COMPUTING = ("numpy", "scikit-learn", "torch")
# Methods open no files: an OSError is a failure of the machine.
MACHINE_ERRORS = (MemoryError, OSError, BrokenExecutor, torch.OutOfMemoryError)
# What torch says in a plain RuntimeError when memory runs out on the CPU.
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@dataclass(frozen=True, eq=False)
class Material:
    """What a cell's tasks are made of."""

    bank: FeatureBank  # the classes of the cell's split
    support_bank: FeatureBank | None = None  # where a fixed support is, if in another bank
    base_mean: Float[np.ndarray, "dim"] | None = None  # of the bank's base classes, if it has any besides

    @classmethod
    def of(cls, cell: Cell, banks: Banks) -> Material:
        """Look up the banks a cell names and restrict them to its split."""
        whole = named_bank(banks, cell.bank)
        other = named_bank(banks, cell.support_bank) if cell.support_bank else None
        bank = whole.split(cell.split) if cell.split else whole
        support_bank = other.split(cell.split) if other is not None and cell.split else other
        used = set(whole.splits[cell.split] if cell.split else range(whole.n_classes))
        base = set(whole.splits.get(BASE_SPLIT, ()))
        return cls(bank, support_bank, _mean(whole.split(BASE_SPLIT)) if base and not base & used else None)

    def in_memory(self) -> Material:
        """Return the same rows as arrays in memory, so that the rows are sent and not the path of their file."""

        def copied(bank: FeatureBank) -> FeatureBank:
            return FeatureBank.from_arrays(np.array(bank.features), bank.labels, bank.class_names)

        other = None if self.support_bank is None else copied(self.support_bank)
        return replace(self, bank=copied(self.bank), support_bank=other)


def run_range(cell: Cell, material: Material, indices: Sequence[int], device: str = CPU) -> list[Row]:
    """Return one row for each task numbered in `indices`; tasks are drawn and scored on the CPU, solved on `device`.

    Tasks are solved together on one thread, so that a row has the same bits on any machine. If that fails,
    they are solved one by one, and a task that fails alone has a row with its error and no scores. (A task solved alone
    may differ from the same task solved in its range in the last bits.)

    Keys of a row are the columns of a journal, those of `KEPT` only if the cell keeps predictions, and `lost`.
    `seconds` is wall time in the method, `cpu_seconds` processor time of everything, both shared out equally among the
    tasks of the range.
    """
    refuse_another_file(cell.method, cell.method_hash)
    with one_thread():
        try:
            return _rows(cell, material, indices, device)
        except Exception as error:
            if len(indices) == 1:
                return [failure(cell, material, indices[0], error)]
            return [row for index in indices for row in run_range(cell, material, [index], device)]


def usable_device(name: str) -> str:
    """Return the name of a device that tensors can be made on; refuse others."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise OptionError(f"--device {name} cannot be used here ({reason}); leave it out to use the CPU") from error
    return name


def applied_transform(cell: Cell, material: Material) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the transform that the cell's tasks undergo."""
    parameters = dict(cell.parameters)
    if "base_mean" in parameters_of(cell.transform) and "base_mean" not in parameters:
        if material.base_mean is None:
            return WITHOUT_BASE, {}
        parameters["base_mean"] = material.base_mean
    return cell.transform, parameters


def trace_of(cell: Cell, material: Material, index: int) -> Trace:
    """Objective, criterion and elapsed time of every iteration on one task; for methods with the option `record`."""
    with one_thread():
        _, _, task, _ = _tasks(cell, material, [index])
        trace = solve(cell.method, task, **{**cell.options, "record": True}).trace
    assert trace is not None
    return trace


def _tasks(
    cell: Cell, material: Material, indices: Sequence[int]
) -> tuple[str, Draw, TaskBatch, Int[torch.Tensor, "task query"]]:
    """Name of the transform, the draw, its tasks after the transform, and the labels of their queries."""
    name, parameters = applied_transform(cell, material)
    drawn = draw(material.bank.labels, cell.spec, cell.seed, indices)
    task, truth = gather(material.bank, drawn, support_bank=material.support_bank)
    return name, drawn, transform(name, task, **parameters), truth


def _rows(cell: Cell, material: Material, indices: Sequence[int], device: str) -> list[Row]:
    cpu = time.thread_time()
    name, drawn, task, truth = _tasks(cell, material, indices)
    task = task.to(device)
    start = time.perf_counter()
    solution = _fetched(solve(cell.method, task, **cell.options))
    seconds = (time.perf_counter() - start) / len(indices)
    scores = score(solution, truth)
    columns: dict[str, list[Any]] = {field: _values(getattr(scores, field)) for field in TaskScores._fields}
    columns |= {"n_iter": solution.n_iter.tolist(), "converged": solution.converged.tolist()}
    columns |= {"task": list(map(int, indices)), "k_eff": cell.class_counts(indices)}
    columns |= _kept(drawn, solution) if cell.keep == PREDICTIONS else {}
    shared = {
        **identity(cell, name),
        "seconds": seconds,
        "cpu_seconds": (time.thread_time() - cpu) / len(indices),
        "error": None,
        "lost": False,
    }
    return [{**shared, **{column: values[t] for column, values in columns.items()}} for t in range(len(indices))]


def _kept(drawn: Draw, solution: Solution) -> dict[str, list[Any]]:
    """Return the columns of `KEPT`, one entry for each task."""
    n_tasks = drawn.n_tasks
    return {
        "classes": np.broadcast_to(drawn.classes, (n_tasks, drawn.classes.shape[-1])).tolist(),
        "query_labels": drawn.query_labels.tolist(),
        "predictions": solution.predictions.tolist(),
        "probabilities": solution.log_assignments.exp().tolist(),
        "unknown": [None] * n_tasks if solution.unknown is None else solution.unknown.tolist(),
    }


def _fetched(solution: Solution) -> Solution:
    """Return what is scored of a solution, on the CPU."""
    values = {name: getattr(solution, name) for name in SCORED}
    return replace(solution, **{name: value.cpu() for name, value in values.items() if value is not None})


def _values(scores: torch.Tensor) -> list[float | None]:
    """Return the scores as numbers, None where a task cannot have one."""
    return [None if math.isnan(value) else value for value in scores.tolist()]


def failure(cell: Cell, material: Material, index: int, error: Exception) -> Row:
    """Return the row of a task that ended with an error."""
    nothing = dict.fromkeys((*TaskScores._fields, "n_iter", "converged", "seconds", "cpu_seconds"))
    name, _ = applied_transform(cell, material)
    found = {"error": f"{type(error).__name__}: {error}", "lost": of_the_machine(error)}
    about = {**identity(cell, name), "task": int(index), "k_eff": cell.class_counts([index])[0]}
    return {**about, **nothing, **found}


def lost_range(task: tuple[Cell, Shared, Sequence[int], str], error: Exception) -> list[Row]:
    """Return the rows of a range whose workers died on every attempt."""
    cell, material, indices, _ = task
    died = BrokenExecutor(str(error).partition("\n")[0])
    return [failure(cell, material.value, index, died) for index in indices]


def of_the_machine(error: BaseException) -> bool:
    """Whether an error, or what caused it, is a failure of the machine and not of the method."""
    if isinstance(error, MACHINE_ERRORS):
        return True
    if isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY):
        return True
    return error.__cause__ is not None and of_the_machine(error.__cause__)


def identity(cell: Cell, transform_name: str) -> Row:
    """Return what the rows of a cell are about: `ABOUT` but for the task, and what made them.

    `k_eff` is null if each task has its own.
    """
    spec = cell.spec
    return {
        "cell": cell.content_hash,
        "bank": cell.bank,
        "split": cell.split,
        "support_bank": cell.support_bank,
        "shots": spec.support.shots if isinstance(spec.support, ShotsPerClass) else None,
        "k_eff": spec.query.k_eff if isinstance(spec.query.k_eff, int) else None,
        "n_query": spec.n_query,
        "n_classes": spec.n_classes,
        "protocol": cell.protocol,
        "unknown_classes": None if spec.unknown is None else spec.unknown.count,
        "unknown_share": None if spec.unknown is None else spec.unknown.share,
        "method": cell.method,
        "scale": scale_name(transform_name, cell.parameters),
        "transform": transform_name,
        "options": json.dumps(dict(cell.options), sort_keys=True),
        "seed": cell.seed,
        "versions": versions_text(),
    }


@cache
def versions_text() -> str:
    """Versions of handful, Python and the packages that rows are computed with, as one line."""
    versions = {"handful": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in COMPUTING}
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _mean(bank: FeatureBank) -> Float[np.ndarray, "dim"]:
    total = sum((block.sum(0, dtype=np.float64) for block in bank.blocks()), np.zeros(bank.dim))
    mean: np.ndarray = (total / bank.n_rows).astype(np.float32)
    return mean
