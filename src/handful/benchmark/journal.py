"""The journal of a run: a folder with the plan and append-only Parquet shards of rows. Resuming is subtraction.

A shard is written under another name, flushed to disk and renamed, so it is there whole or not at all. Whoever appends
holds a lock that the system releases when the process ends, however it ends. So rows are never lost once appended, and
never there twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from handful.benchmark.plan import Cell, Plan
from handful.benchmark.run import Row
from handful.errors import PlanError
from handful.features.extras import import_pyarrow
from handful.shapes import Int
from handful.whole_file import UNFINISHED, written_whole

# Columns of the journal and their Arrow types.
COLUMNS = {
    "cell": "string",
    "task": "int64",
    "method": "string",
    "transform": "string",
    "accuracy": "float64",
    "macro_recall": "float64",
    "n_predicted": "int64",
    "presence_precision": "float64",
    "presence_recall": "float64",
    "proportion_error": "float64",
    "negative_log_likelihood": "float64",
    "n_iter": "int64",
    "converged": "bool",
    "seconds": "float64",
    "cpu_seconds": "float64",
    "error": "string",
}
# Columns that rows of earlier versions lack; there they are read as missing, and whoever averages leaves them out.
ADDED_LATER = frozenset({"proportion_error"})
PLAN_FILE, LOCK_FILE = "plan.json", ".lock"
# Most tasks of a cell in one range; smaller where there are few tasks, so that several workers have something to do.
MOST_IN_RANGE, RANGES_PER_CELL = 64, 8
# Tasks in a range of a cell with a budget: it can only end between ranges.
BUDGETED_RANGE = 2


class Journal:
    """Plan and rows of a run, in a folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from handful import ShotsPerClass, TaskSpec, UniformOverPool
    >>> cell = Cell("clinc150", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "paddle", n_tasks=3)
    >>> with TemporaryDirectory() as folder:
    ...     journal = Journal.create(folder + "/run", (cell,))
    ...     journal.plan == (cell,), remaining(cell, journal.done(cell))
    (True, [[0], [1], [2]])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self._about = json.loads((self.folder / PLAN_FILE).read_text(encoding="utf-8"))
            self.plan: Plan = tuple(map(Cell.from_mapping, self._about["cells"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PlanError(
                f"{folder} is not a run: its {PLAN_FILE} cannot be read ({error}); start one with `handful bench run`"
            ) from error

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], plan: Plan, bank_places: Mapping[str, str] = MappingProxyType({})
    ) -> Journal:
        """Start a run of a bound plan in a new or empty folder; note where its banks are, for whoever resumes it."""
        place = Path(folder)
        if place.exists() and any(not file.name.startswith(".") for file in place.iterdir()):
            raise PlanError(f"{folder} already exists and is not empty; resume it, or choose another name")
        place.mkdir(parents=True, exist_ok=True)
        cells = [cell.to_mapping() for cell in plan]
        about = {"cells": cells, "versions": versions(), "bank_places": dict(bank_places)}
        _write_json(place / PLAN_FILE, about)
        return cls(place)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the run was started with."""
        return dict(self._about["versions"])

    @property
    def bank_places(self) -> dict[str, str]:
        """Where the banks of the plan were when the run was started, as far as that was said."""
        return dict(self._about["bank_places"])

    def extend(self, plan: Plan) -> None:
        """Make this the plan: cells may be new or ask for more tasks, rows of cells left out stay in the journal."""
        self._about["cells"] = [cell.to_mapping() for cell in plan]
        _write_json(self.folder / PLAN_FILE, self._about)
        self.plan = plan

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the run for one writer, and clear away what a killed one left half written."""
        with (self.folder / LOCK_FILE).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PlanError(f"another process is writing to the run {self.folder}; wait until it ends") from error
            for left in self.folder.glob(f".*{UNFINISHED}"):
                left.unlink()
            yield

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows as the next shard; call it while `writing`."""
        if not rows:
            return
        pa, parquet = import_pyarrow()
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})
        number = 1 + max((int(shard.stem.split("-")[1]) for shard in self.shards()), default=0)
        with written_whole(self.folder / f"rows-{number:06d}.parquet") as place:
            parquet.write_table(table, place)

    def shards(self) -> list[Path]:
        """Files of rows, in the order they were written."""
        return sorted(self.folder.glob("rows-*.parquet"))

    def table(self) -> Any:
        """All rows as one `pyarrow.Table`."""
        pa, _ = import_pyarrow()
        schema = pa.schema(list(COLUMNS.items()))
        return pa.concat_tables([schema.empty_table(), *map(_read_shard, self.shards())])

    def columns(self, cell: Cell | None = None) -> dict[str, np.ndarray]:
        """Rows as arrays by column, of one cell or of all, ordered by task; text columns hold objects."""
        table = self.table()
        arrays = {name: table[name].to_numpy() for name in COLUMNS}
        if cell is not None:
            chosen = arrays["cell"] == cell.content_hash
            arrays = {name: values[chosen] for name, values in arrays.items()}
        order = np.argsort(arrays["task"], kind="stable")
        return {name: values[order] for name, values in arrays.items()}

    def done(self, cell: Cell) -> Int[np.ndarray, "task"]:
        """Numbers of the tasks of a cell that have a row."""
        return self.columns(cell)["task"]


def remaining(cell: Cell, done: Int[np.ndarray, "done"]) -> list[list[int]]:
    """Tasks of a cell that have no row yet, in ranges.

    Ranges begin at multiples of their size, whatever is done, so a resumed run solves the very ranges that an
    undisturbed one would have.

    Examples
    --------
    >>> from handful import ShotsPerClass, TaskSpec, UniformOverPool
    >>> cell = Cell("mine", TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5)), "paddle", n_tasks=4)
    >>> remaining(cell, np.array([0, 2]))
    [[1], [3]]
    """
    size = min(MOST_IN_RANGE, -(-cell.n_tasks // RANGES_PER_CELL))
    if cell.cpu_budget is not None:
        size = min(size, BUDGETED_RANGE)
    missing = np.setdiff1d(np.arange(cell.n_tasks), done)
    return [part.tolist() for part in np.split(missing, np.flatnonzero(np.diff(missing // size)) + 1) if len(part)]


def versions() -> dict[str, str]:
    """Versions of Python, of handful and of the packages that compute."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in ("torch", "numpy")}}


def _read_shard(shard: Path) -> Any:
    pa, parquet = import_pyarrow()
    table = parquet.read_table(shard)
    missing, unknown = COLUMNS.keys() - set(table.column_names), set(table.column_names) - COLUMNS.keys()
    if unknown or missing - ADDED_LATER:
        raise PlanError(
            f"{shard} does not have the columns of a journal: missing are {', '.join(sorted(missing)) or 'none'}, "
            f"unknown are {', '.join(sorted(unknown)) or 'none'}; read it with the version of handful that wrote it"
        )
    for name in missing:
        table = table.append_column(name, pa.nulls(table.num_rows, COLUMNS[name]))
    return table.select(list(COLUMNS))


def _write_json(path: Path, content: Any) -> None:
    with written_whole(path) as place:
        place.write_text(json.dumps(content, indent=1), encoding="utf-8")
