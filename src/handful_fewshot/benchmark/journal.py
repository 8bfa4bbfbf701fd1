"""The journal of a run: a folder with the plan and append-only Parquet shards of rows. Resuming is subtraction.

A shard is written under another name, flushed to disk and renamed, so it exists complete or not at all. A writer of
plan or rows holds a lock that the system releases when the process ends, however it ends. So rows are never lost once
appended, and never appear twice.

A row says what it is about in columns, see `ABOUT`, so that any reader of Parquet can use the shards without the plan.

The name of a shard ends with a hash of its number and of all its bytes. A shard that was cut, changed by a single bit
or copied under another number is refused, not read as other numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from handful import __version__
from handful.machine.extras import import_pyarrow
from handful.machine.lock import only_writer, remove_unfinished
from handful.machine.outputs import refuse_overwriting, written_whole
from handful.machine.untrusted import read_bytes, read_json
from handful.shapes import Int
from handful_fewshot.benchmark.plan import Cell, Plan
from handful_fewshot.benchmark.run import ABOUT, KEPT, Row, versions_text
from handful_fewshot.benchmark.score import TaskScores
from handful_fewshot.errors import PlanError

# Columns of the journal and their Arrow types; a task that the method failed on has an error and no scores.
COLUMNS = {
    **ABOUT,
    **{name: "int64" if name == "n_predicted" else "float64" for name in TaskScores._fields},
    **{"n_iter": "int64", "converged": "bool", "seconds": "float64", "cpu_seconds": "float64"},
    **{"error": "string", "versions": "string"},
}
# What `columns` returns: all but what the plan says of a cell, which would be as many texts as there are rows.
SUMMARISED = tuple(name for name in COLUMNS if name in ("cell", "task", "transform") or name not in ABOUT)
PLAN_FILE = "plan.json"
# Counts up when plan or rows change so that older runs cannot be read.
FORMAT = 2
SHARD = re.compile(r"rows-(\d{6,})-([0-9a-f]{16})\.parquet")
# Most tasks of a cell in one range; ranges are smaller if there are few tasks, so that several workers can share them.
MOST_IN_RANGE = 64
RANGES_PER_CELL = 8


class Journal:
    """Plan and rows of a run, in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._writer: int | None = None  # the thread that holds the lock
        self._rows: tuple[list[tuple[Path, int]], Any] | None = None  # shards with the times of change, and their rows
        self._read_plan()

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], plan: Plan, bank_places: Mapping[str, str] = MappingProxyType({})
    ) -> Journal:
        """Start a run of a bound plan in a new or empty folder; note where its banks are, so that it can be resumed."""
        place = Path(folder)
        refuse_overwriting(banks_at(bank_places), {"run": place})
        _refuse_used(place)  # before anything is written there, including the lock
        place.mkdir(parents=True, exist_ok=True)
        with only_writer(place, PlanError):
            _refuse_used(place)
            versions = dict(part.split() for part in versions_text().split(", "))
            about = {"format": FORMAT, "cells": _entries(plan), "versions": versions}
            _write_plan(place, {**about, "bank_places": dict(bank_places)})
        return cls(place)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the run was started with; those that made a row are in its column `versions`."""
        return dict(self._about["versions"])

    @property
    def bank_places(self) -> dict[str, str]:
        """Where the banks of the plan were when it was given, if known."""
        return dict(self._about["bank_places"])

    def extend(self, plan: Plan, bank_places: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make this the plan: cells may be new or ask for more tasks; rows of removed cells stay in the journal."""
        with self.writing():
            before = {(cell.bank, cell.support_bank): cell.bank_hash for cell in self.plan}
            for cell in plan:
                if before.get((cell.bank, cell.support_bank), cell.bank_hash) != cell.bank_hash:
                    raise PlanError(
                        f"the bank {cell.bank!r} is not the one this run was started with: its content hash differs; "
                        "give that bank, give this one another name, or start another run"
                    )
            self._refuse_another_keep(plan)
            about = {**self._about, "cells": _entries(plan)}
            about["bank_places"] = {**self.bank_places, **bank_places}
            _write_plan(self.folder, about)
            self._read_plan()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the run for one writer, and remove what a killed one left unfinished.

        The plan is read again, since another writer may have changed it. Blocks may be nested.
        """
        if self._writer == threading.get_ident():
            yield
            return
        with only_writer(self.folder, PlanError):
            self._writer = threading.get_ident()
            try:
                remove_unfinished(self.folder)
                self._read_plan()
                yield
            finally:
                self._writer = None

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows as the next shard."""
        if not rows:
            return
        pa, parquet = import_pyarrow()
        rows = [{**dict.fromkeys(KEPT), **row} for row in rows]
        table = pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in _schema()})
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink)
        content = sink.getvalue().to_pybytes()
        with self.writing():
            number = 1 + max((_noted(shard)[0] for shard in self.shards()), default=0)
            name = f"rows-{number:06d}-{_checksum(number, content)}.parquet"
            with written_whole(self.folder / name) as place:
                place.write_bytes(content)

    def shards(self) -> list[Path]:
        """Files of rows, in the order they were written."""
        return sorted(self.folder.glob("rows-*.parquet"), key=_noted)

    def table(self) -> Any:
        """All rows as one `pyarrow.Table`, without what is kept of predictions.

        They are read again when a shard was added, removed or changed.
        """
        pa, _ = import_pyarrow()
        shards = self.shards()
        there = [(shard, shard.stat().st_mtime_ns) for shard in shards]
        if self._rows is not None and self._rows[0] == there:
            return self._rows[1]
        tables = [_read_shard(shard) for shard in shards]
        table = pa.concat_tables([_schema(COLUMNS).empty_table(), *tables])
        if table.group_by(["cell", "task"]).aggregate([]).num_rows < table.num_rows:
            shard_of_row = np.repeat([shard.name for shard in shards], [shard.num_rows for shard in tables])
            _name_two_answers(table, shard_of_row)
        self._rows = there, table
        return table

    def columns(self, cell: Cell | None = None) -> dict[str, np.ndarray]:
        """Rows as arrays by column, see `SUMMARISED`, of one cell or of all, ordered by task; texts are objects."""
        table = self.table()
        arrays = {name: table[name].to_numpy() for name in SUMMARISED}
        if cell is not None:
            chosen = arrays["cell"] == cell.content_hash
            arrays = {name: values[chosen] for name, values in arrays.items()}
        order = np.argsort(arrays["task"], kind="stable")
        return {name: values[order] for name, values in arrays.items()}

    def done(self, cell: Cell) -> Int[np.ndarray, "task"]:
        """Numbers of the tasks of a cell that have a row."""
        return self.columns(cell)["task"]

    def _refuse_another_keep(self, plan: Plan) -> None:
        """Refuse to keep predictions of only some of a cell's tasks."""
        before = {cell.content_hash: cell.keep for cell in self.plan}
        begun = set(self.table()["cell"].unique().to_pylist())
        for cell in plan:
            key = cell.content_hash
            if key in begun and before.get(key, cell.keep) != cell.keep:
                now, then = (keep or "nothing" for keep in (cell.keep, before[key]))
                raise PlanError(
                    f"{cell.method} on {cell.bank} has rows that keep {then}, and new ones would keep {now}; ask for "
                    "the same as before, or start another run"
                )

    def _read_plan(self) -> None:
        try:
            about = read_json(self.folder / PLAN_FILE, PlanError, "a plan")
            by = about["versions"]["handful"]
            written = about.get("format", 1)
            self.plan: Plan = tuple(map(_cell, about["cells"])) if written == FORMAT else ()
            noted = about.pop("checksum")
            self._about = about
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PlanError(
                f"{self.folder} is not a run: its {PLAN_FILE} cannot be read ({error}); start one with "
                "`handful bench run`"
            ) from error
        if written != FORMAT:
            raise PlanError(
                f"{self.folder} is a run of handful {by}, whose rows have other columns than those of {__version__}; "
                "read it with the version that made it, or start another run"
            )
        if noted != _plan_checksum(self._about):
            raise PlanError(
                f"{self.folder / PLAN_FILE} is damaged: its checksum does not fit its content; restore a good copy "
                "of it, or start another run"
            )


def rows_of_cells(columns: Mapping[str, np.ndarray]) -> dict[str, Int[np.ndarray, "row"]]:
    """Return the rows of each cell that has any, by its hash, in their order; all rows are looked at once.

    Examples
    --------
    >>> {cell: rows.tolist() for cell, rows in rows_of_cells({"cell": np.array(["b", "a", "b"])}).items()}
    {'b': [0, 2], 'a': [1]}
    """
    place_of: dict[str, int] = {}
    cells = columns["cell"].tolist()
    places = np.fromiter((place_of.setdefault(cell, len(place_of)) for cell in cells), np.int64, len(cells))
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=len(place_of)))
    return dict(zip(place_of, np.split(order, ends[:-1]), strict=True)) if place_of else {}


def remaining(cell: Cell, done: Int[np.ndarray, "done"]) -> list[list[int]]:
    """Tasks of a cell that have no row yet, in ranges.

    Ranges begin at multiples of their size, whatever is done, so a resumed run solves the same ranges as an
    uninterrupted one. Where there is a budget, a range is one task: nothing is begun once the budget is used up.
    """
    size = 1 if cell.cpu_budget is not None else min(MOST_IN_RANGE, -(-cell.n_tasks // RANGES_PER_CELL))
    missing = np.setdiff1d(np.arange(cell.n_tasks), done)
    return [part.tolist() for part in np.split(missing, np.flatnonzero(np.diff(missing // size)) + 1) if len(part)]


def banks_at(places: Mapping[str, str]) -> dict[str, str]:
    """Return the banks that are at these places, by what a message calls them; the package has others."""
    return {f"bank {name}": place for name, place in places.items() if Path(place).exists()}


def _entries(plan: Plan) -> list[dict[str, Any]]:
    """Return the cells as they are written, each with the hash that its rows have in the column `cell`."""
    return [{"cell": cell.content_hash, **cell.to_mapping()} for cell in plan]


def _cell(entry: Mapping[str, Any]) -> Cell:
    return Cell.from_mapping({name: value for name, value in entry.items() if name != "cell"})


def _schema(kinds: Mapping[str, str] = MappingProxyType({**COLUMNS, **KEPT})) -> Any:
    """Return the Arrow schema of a shard, or of some of its columns."""
    pa, _ = import_pyarrow()
    lists = {"list<int32>": pa.list_(pa.int32()), "list<float>": pa.list_(pa.float32())}
    lists["list<list<float>>"] = pa.list_(lists["list<float>"])
    return pa.schema([(name, lists.get(kind, kind)) for name, kind in kinds.items()])


def _refuse_used(place: Path) -> None:
    if place.exists() and any(not file.name.startswith(".") for file in place.iterdir()):
        raise PlanError(f"{place} already exists and is not empty; resume it, or choose another name")


def _noted(shard: Path) -> tuple[int, str]:
    """Return the number of a shard and its checksum, as its name says."""
    match = SHARD.fullmatch(shard.name)
    if match is None:
        raise PlanError(
            f"{shard} is not named like a shard, rows-NUMBER-HASH.parquet; if it is a copy of one, remove it"
        )
    return int(match[1]), match[2]


def _checksum(number: int, content: bytes) -> str:
    """First 16 hex digits of the SHA-256 of a shard's number and bytes."""
    return hashlib.sha256(f"{number}\n".encode() + content).hexdigest()[:16]


def _read_shard(shard: Path) -> Any:
    """Return `COLUMNS` of a shard as a `pyarrow.Table`; refuse one that is not as it was written."""
    pa, parquet = import_pyarrow()
    content = read_bytes(shard, PlanError)
    (number, checksum) = _noted(shard)
    again = "Remove it and resume the run: its tasks are then solved again"
    if checksum != _checksum(number, content):
        raise PlanError(
            f"{shard} is damaged, or a copy of another shard: its bytes are not those that were written. {again}"
        )
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        if file.schema_arrow.names != _schema().names:
            raise ValueError(f"its columns are {', '.join(file.schema_arrow.names)}")
        return file.read(list(COLUMNS), use_threads=False).cast(_schema(COLUMNS))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PlanError(
            f"{shard} cannot be read as the Parquet of this version's journal ({error}). {again}"
        ) from error


def _name_two_answers(table: Any, shard_of_row: np.ndarray) -> None:
    """Raise an error about the first task with two rows; rows are not kept if it is not known which are right."""
    first: dict[tuple[str, int], int] = {}
    for row, key in enumerate(zip(table["cell"].to_pylist(), table["task"].to_pylist(), strict=True)):
        if first.setdefault(key, row) != row:
            names = " and ".join(dict.fromkeys(shard_of_row[r] for r in (first[key], row)))
            raise PlanError(
                f"task {key[1]} of cell {key[0]} has two answers: see {names}. One shard is a copy, or comes from "
                "another run; remove it"
            )


def _plan_checksum(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def _write_plan(folder: Path, about: Mapping[str, Any]) -> None:
    # As read back from JSON, so that a reader computes the same hash.
    plain = json.loads(json.dumps(about))
    with written_whole(folder / PLAN_FILE) as place:
        place.write_text(json.dumps({**plain, "checksum": _plan_checksum(plain)}, indent=1), encoding="utf-8")
