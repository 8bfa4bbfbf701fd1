"""What a run would do: its partitions, which of them are done, and whose labels are of rows that are gone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from handful.scale.buckets import FileGroups, bucket_name, files_of_buckets, groups_of, has_shared, is_bucket
from handful.scale.labeller import TableLabeller
from handful.scale.manifest import Done, Manifest, true_line
from handful.scale.partition import Job
from handful.scale.source import BUCKETS, FILES, FOLDERS, DataSet, Partition
from handful.scale.spill import HELD_NUMBERS
from handful.workers import Workers

# A bucket is filled by half on average, so that few do not fit in memory. [ratio; work]
FILLED = 0.5


@dataclass(frozen=True)
class Planned:
    """A partition of a plan.

    Attributes
    ----------
    partition : Partition
        Its name and files; those of a bucket are the files that have rows of it.
    line : Done or None
        The line of the manifest about it that is true, if it was labelled by what is accepted.
    is_done : bool
        Whether there is nothing to do. Otherwise its files may still have the content that the line says.
    """

    partition: Partition
    line: Done | None
    is_done: bool


@dataclass(frozen=True, eq=False)
class RunPlan:
    """What a run would do.

    Attributes
    ----------
    layout : str
        Why rows are complete groups: `folders`, `files` or `buckets`.
    partitions : tuple of Planned
        All partitions.
    replaced, gone : tuple of Done
        Labels whose rows are in other partitions now, and labels whose rows the data set no longer has.
    files, n_buckets : tuple of FileGroups, int
        The groups of all files, where rows are brought together by a hash of their group, and in how many buckets.
    """

    layout: str
    partitions: tuple[Planned, ...]
    replaced: tuple[Done, ...] = ()
    gone: tuple[Done, ...] = ()
    files: tuple[FileGroups, ...] = ()
    n_buckets: int = 0

    @property
    def to_do(self) -> tuple[Planned, ...]:
        """Partitions that are not done."""
        return tuple(one for one in self.partitions if not one.is_done)


def plan_of(job: Job, source: DataSet, workers: Workers | None, *, relabel: bool) -> RunPlan:
    """Compare the data set with the manifest; without workers, files are not searched for groups that they share."""
    lines = Manifest(job.out).read()
    now = {file.name: file for file in job.out.files()}
    made_by = job.labeller.made_by()
    partitions = source.folders(job.labeller.group_by)
    layout = FILES if partitions is None else FOLDERS
    partitions = source.by_file() if partitions is None else partitions
    files: tuple[FileGroups, ...] = ()
    n_buckets = 0
    if layout == FILES and len(partitions) > 1 and workers is not None:
        with closing(workers(groups_of, ((job, file) for file in source.files))) as results:
            files = tuple(sorted(results, key=lambda one: one.file.name))
        if has_shared(files):
            layout = BUCKETS
            n_buckets = _before(lines) or _fitting(job.labeller, files)
            of_buckets = files_of_buckets(files, n_buckets)
            partitions = [
                Partition(bucket_name(bucket, n_buckets), tuple(one.file.as_listed for one in some), {})
                for bucket, some in enumerate(of_buckets)
                if some
            ]
    hashes = {one.file.as_listed: one.file.sha256 for one in files}
    planned = []
    for partition in partitions:
        line = true_line(lines.get(partition.name, ()), now, job.out)
        if line is None or (relabel and dict(line.made_by) != made_by):
            planned.append(Planned(partition, None, is_done=False))
            continue
        same = list(partition.files) == [one.as_listed for one in line.inputs]
        same = same or sorted(hashes.get(file, "") for file in partition.files) == line.content
        planned.append(Planned(partition, line, is_done=same))
    names = {one.name for one in partitions}
    others = [true_line(lines[name], now, job.out) for name in lines if name not in names]
    left = [line for line in others if line is not None]
    # Rows that are in buckets are in no file of their own, and the other way round.
    replaced = tuple(line for line in left if layout == BUCKETS or is_bucket(line.partition))
    gone = tuple(line for line in left if line not in replaced)
    return RunPlan(layout, tuple(planned), replaced, gone, files, n_buckets)


def _before(lines: Mapping[str, Sequence[Done]]) -> int | None:
    """Return how many buckets there were before, the largest number of them; None if there were none."""
    numbers = [int(name.rpartition("-of-")[2].partition(".")[0]) for name in lines if is_bucket(name)]
    return max(numbers, default=None)


def _fitting(labeller: TableLabeller, found: Sequence[FileGroups]) -> int:
    rows = sum(int(one.counts.sum()) for one in found)
    return max(1, math.ceil(rows * labeller.model.fitted.dim / (FILLED * HELD_NUMBERS)))
