"""One partition of a run, in a worker: its files are fetched, hashed, labelled and written; nothing is kept."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handful.errors import HandfulError, StorageError
from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.folders import FileAt, Folder, LocalFolder
from handful.machine.outputs import explain_refusal
from handful.scale.labeller import TableLabeller
from handful.scale.manifest import Done, Hashed
from handful.scale.source import Partition, PartitionRows, sha256_of
from handful.scale.spill import labelled

# The folders of the two tables.
ITEMS = "items"
GROUPS = "groups"
# What becomes of rows that cannot be labelled.
KEEP = "keep"
REFUSE = "refuse"
# How often a partition is tried whose store at a URL fails, and the pauses between. [attempts; work], [seconds; work]
STORE_ATTEMPTS = 3
PAUSE = 2.0


@dataclass(frozen=True)
class Job:
    """What is the same for all partitions of a run."""

    source: Folder
    out: Folder
    labeller: TableLabeller
    bad_rows: str = KEEP


@dataclass(frozen=True)
class Failed:
    """A partition that could not be labelled, and why."""

    partition: str
    reason: str


@dataclass
class PartitionCounts:
    """What the tables of a partition add up to."""

    rows: int = 0
    bad_rows: int = 0
    groups: int = 0
    unknown_items: int = 0
    diagnostics: Counter[str] = field(default_factory=Counter)
    first_reason: str = ""

    def add(self, labeller: TableLabeller, items: Any, groups: Any) -> None:
        """Add tables of items or groups."""
        prefix = labeller.prefix
        if items is not None:
            reasons = items[f"{prefix}reason"]
            self.rows += len(items)
            n_bad = len(reasons) - reasons.null_count
            if n_bad and not self.first_reason:
                self.first_reason = reasons.drop_null()[0].as_py()
            self.bad_rows += n_bad
        if groups is not None and len(groups):
            # The first row of each group says what is said of it as a whole.
            compute = import_extra("pyarrow.compute", "parquet")
            keys = [*labeller.group_by, f"{prefix}items", f"{prefix}bad_rows", f"{prefix}unknown_items"]
            once = groups.group_by([*keys, f"{prefix}diagnostics"]).aggregate([])
            self.groups += len(once)
            self.unknown_items += compute.sum(once[f"{prefix}unknown_items"]).as_py() or 0
            names = once[f"{prefix}diagnostics"].drop_null().to_pylist()
            self.diagnostics.update(name for some in names for name in some.split(", "))

    def told(self, seconds: float) -> dict[str, Any]:
        """Return the counts as values of JSON."""
        own = {name: getattr(self, name) for name in ("rows", "bad_rows", "groups", "unknown_items")}
        return {**own, "diagnostics": dict(self.diagnostics), "seconds": seconds}


def label_partition(job: Job, partition: Partition, before: Done | None) -> Done | Failed:
    """Label a partition, unless `before` was made of the same content; a store at a URL that fails is tried again.

    Errors about the partition are returned: the others have nothing to do with them.
    """
    is_remote = not (isinstance(job.source, LocalFolder) and isinstance(job.out, LocalFolder))
    attempts = STORE_ATTEMPTS if is_remote else 1  # a disk that is full stays full
    for attempt in range(attempts):
        try:
            return _labelled(job, partition, before)
        except StorageError as error:
            if attempt + 1 == attempts:
                return Failed(partition.name, str(error))
            time.sleep(PAUSE * (attempt + 1))
        except HandfulError as error:
            return Failed(partition.name, str(error))
    raise AssertionError


def _labelled(job: Job, partition: Partition, before: Done | None) -> Done | Failed:
    begun = time.perf_counter()
    with ExitStack() as opened:
        files = [opened.enter_context(fetched(job.source, file)) for file in partition.files]
        inputs = tuple(Hashed(*file, sha256_of(place)) for file, place in zip(partition.files, files, strict=True))
        if before is not None and sorted(one.sha256 for one in inputs) == before.content:
            return replace(before, inputs=inputs, is_new=False)
        scratch = Path(opened.enter_context(TemporaryDirectory(prefix="handful-")))
        names = [f"{job.source.address}/{file.name}" for file in partition.files]
        rows = PartitionRows(files, partition.of_folder, names)
        labeller = _within(job.labeller, rows.schema, partition.of_folder)
        counts = PartitionCounts()
        writers = {kind: _Writer(scratch / f"{kind}.parquet") for kind in (ITEMS, GROUPS)}
        with explain_refusal(scratch, scratch), writers[ITEMS], writers[GROUPS]:
            for items, groups in labelled(rows, labeller, scratch / "pieces"):
                counts.add(labeller, items, groups)
                writers[ITEMS].write(_without(items, partition.of_folder, rows))
                writers[GROUPS].write(_without(groups, partition.of_folder, rows))
        if counts.bad_rows and job.bad_rows == REFUSE:
            return Failed(
                partition.name,
                f"{counts.bad_rows:,} of {counts.rows:,} rows cannot be labelled (the first: {counts.first_reason}); "
                "correct them, or keep them with their reasons: bad_rows='keep'",
            )
        outputs = tuple(
            _moved(job.out, scratch / f"{kind}.parquet", f"{kind}/{partition.out}") for kind in (ITEMS, GROUPS)
        )
        return Done(
            partition=partition.name,
            inputs=inputs,
            outputs=outputs,
            made_by=job.labeller.made_by(),
            counts=counts.told(time.perf_counter() - begun),
            data=str(job.source.address),
        )


@contextmanager
def fetched(folder: Folder, file: FileAt) -> Iterator[Path]:
    """Yield a path of a file of the data set, on this machine."""
    with folder.opened(file.name) as place:
        if place is None:
            raise StorageError(f"{folder.address}/{file.name} was removed since the data set was listed; call again")
        yield place


def _within(labeller: TableLabeller, schema: Any, of_folder: Mapping[str, str | None]) -> TableLabeller:
    """Return what labels a folder: keys that all of its rows share tell nothing apart."""
    shared = {name for name, value in of_folder.items() if value is not None and name not in schema.names}
    return replace(labeller, group_by=tuple(name for name in labeller.group_by if name not in shared))


def _without(table: Any, of_folder: Mapping[str, str | None], rows: PartitionRows) -> Any:
    """Leave out columns that stand for a folder without a value."""
    if table is None:
        return None
    return table.drop_columns([name for name in of_folder if name in table.column_names and name not in rows.of_files])


class _Writer:
    """A Parquet file, opened with the first table."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: Any) -> None:
        """Append a table, if it is one."""
        if table is None:
            return
        if self._writer is None:
            parquet = import_pyarrow()[1]
            self._writer = parquet.ParquetWriter(self._path, table.schema, write_page_checksum=True)
        self._writer.write_table(table)


def _moved(out: Folder, file: Path, name: str) -> Hashed:
    """Bring a finished file to its place, where it appears whole, and say what it is like there."""
    sha256 = sha256_of(file)
    with out.written(name) as place:
        shutil.copyfile(file, place)
    about = out.about(name)
    if about is None:
        raise StorageError(f"{out.address}/{name} was removed while it was written; call again")
    return Hashed(*about, sha256)
