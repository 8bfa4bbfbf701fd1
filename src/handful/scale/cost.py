"""What a run will cost, before anything but tables of contents is read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np

from handful.machine.extras import import_pyarrow
from handful.machine.folders import FileAt, LocalFolder, file_system
from handful.progress import duration
from handful.scale.labeller import TableLabeller
from handful.scale.partition import Job
from handful.scale.plan import plan_of
from handful.scale.source import FOLDERS, DataSet
from handful.scale.spill import rows_at_once

# Groups and items of each with which the time of a row is measured. [groups; convention], [items; convention]
TIMED_GROUPS = 20
TIMED_ITEMS = 100
# Copies of the vectors of a partition that a worker holds at most: as they are read, by group, as points, and in the
# scores of a stack. [ratio; measured: 6 at a peak of 0.5 GB]
COPIES = 6
# Partitions that are listed. [partitions; convention]
MOST_LISTED = 10


def cost(job: Job, source: DataSet, workers: int, *, relabel: bool) -> Iterator[str]:
    """Say what a run would do with so many workers, line by line."""
    plan = plan_of(job, source, None, relabel=relabel)
    to_do = [one.partition for one in plan.to_do]
    rows = {one.name: sum(n_rows(source, file) for file in one.files) for one in to_do}
    size = sum(file.size for one in to_do for file in one.files)
    total = sum(rows.values())
    by_folder = plan.layout == FOLDERS
    yield f"{len(plan.partitions):,} {'folders' if by_folder else 'files'}, {len(rows):,} of them to label"
    for name in sorted(rows)[:MOST_LISTED]:
        yield f"  {name}: {rows[name]:,} rows"
    if len(rows) > MOST_LISTED:
        yield f"  and {len(rows) - MOST_LISTED:,} more"
    if not by_folder and len(plan.partitions) > 1:
        yield "if a group has rows in several files, all rows are brought together first, by a hash of their group"
    yield f"{total:,} rows, {size / 1e9:.2g} GB to read"
    seconds = total * seconds_of_row(job.labeller)
    each = f", {duration(max(1, seconds / workers))} with {workers} workers" if workers > 1 else ""
    yield f"about {duration(max(1, seconds))} of one core{each}, if groups have a hundred items"
    yield f"about {bytes_of_worker(job.labeller, rows.values()) / 1e9:.1g} GB of memory for each worker"


def n_rows(source: DataSet, file: FileAt) -> int:
    """Return the rows of a file, by its table of contents."""
    parquet = import_pyarrow()[1]
    if isinstance(source.folder, LocalFolder):
        return int(parquet.read_metadata(source.folder.path / file.name).num_rows)
    with file_system(f"{source.folder.url}/{file.name}") as (system, path), system.open(path, "rb") as opened:
        return int(parquet.read_metadata(opened).num_rows)


def seconds_of_row(labeller: TableLabeller) -> float:
    """Measure how long one core takes to label a row, of groups of a hundred items that look like examples."""
    pa, _ = import_pyarrow()
    fitted = labeller.model.fitted
    rng = np.random.default_rng(0)
    points = fitted.means[rng.integers(0, fitted.n_classes, TIMED_GROUPS * TIMED_ITEMS)] + fitted.origin
    points = (points + rng.normal(scale=points.std() / 2, size=points.shape)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), fitted.dim)
    table = pa.table({"group": np.repeat(np.arange(TIMED_GROUPS), TIMED_ITEMS), "vector": vectors})
    timed = TableLabeller(labeller.model, ("group",), known=labeller.known)
    timed.label(table)  # the first call finds libraries
    begun = time.process_time()
    timed.label(table)
    return (time.process_time() - begun) / len(table)


def bytes_of_worker(labeller: TableLabeller, rows: Iterable[int]) -> int:
    """Return about how much memory a worker takes: for its model, and for the vectors of the largest partition."""
    fitted = labeller.model.fitted
    held = min(max(rows, default=0), rows_at_once(fitted.dim))
    return 4 * fitted.dim * (COPIES * held + 2 * fitted.n_classes)
