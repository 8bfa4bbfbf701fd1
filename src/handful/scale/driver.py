"""run: label the partitions of a data set that are new or changed, and commit each with a line of a manifest.

The driver compares what is there with what the manifest says, gives the rest to workers, and commits what they finish,
one partition after another. So a run that was killed goes on, and two drivers at once do the same twice, and no harm:
a file appears whole under a name that only its partition has, and a line is true only while its files are as it says.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from handful.arguments import takes
from handful.errors import OptionError, PartitionsError
from handful.fitted import FittedModel, save_model
from handful.machine.folders import FileAt, Folder, LocalFolder, folder_at
from handful.machine.outputs import refuse_overwriting
from handful.machine.threads import available_cores
from handful.progress import Progress, Reporter, bars
from handful.scale.buckets import CutFile, bucket_number, cut_file, pieces_folder
from handful.scale.labeller import LabelOptions, TableLabeller
from handful.scale.manifest import PLACE, Done, Manifest
from handful.scale.models import Model, ModelAt
from handful.scale.partition import GROUPS, ITEMS, KEEP, REFUSE, Failed, Job, label_partition
from handful.scale.plan import RunPlan, plan_of
from handful.scale.source import BUCKETS, DataSet
from handful.workers import Workers, here
from handful.workers.task import died

log = logging.getLogger("handful.scale")
# Digits of a hash in the name of a model's file. [digits; convention]
NAME_DIGITS = 16


@dataclass(frozen=True)
class RunReport:
    """What a run did.

    Attributes
    ----------
    items, groups : str
        Addresses of the two tables: folders of Parquet files, a file for each partition.
    labelled, unchanged : tuple of str
        Partitions that were labelled now, and that were labelled before.
    failed : tuple of Failed
        Partitions that could not be labelled, with the reason of each.
    gone : tuple of str
        Partitions that the data set no longer has. Their labels stay until you remove them.
    rows, bad_rows : int
        Rows of the partitions that were labelled now, and how many of them have a reason instead of a label.
    """

    items: str
    groups: str
    labelled: tuple[str, ...]
    unchanged: tuple[str, ...]
    failed: tuple[Failed, ...]
    gone: tuple[str, ...]
    rows: int
    bad_rows: int


@takes(LabelOptions, before="bad_rows")
def run(
    data: str | os.PathLike[str],
    model: Model,
    out: str | os.PathLike[str],
    *,
    group_by: str | Sequence[str],
    bad_rows: str = KEEP,
    relabel: bool = True,
    workers: Workers | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Unpack[LabelOptions],
) -> RunReport:
    """Label the groups of a data set, partition by partition; called again, it labels what is new or changed.

    Parameters
    ----------
    data : path or URL
        A folder of Parquet files, also in Hive folders such as `day=2026-01-01`, or a single file.
    model : path, URL, FittedModel or BatchClassifier
        What to label with, see `label_table`.
    out : path or URL
        Where the tables `items` and `groups` go, each a folder with a file for every partition, and the manifest. All
        workers must be able to write there.
    group_by : str or sequence of str
        The column of the group, or several that together identify it. Hive folders are named like columns, and all of
        them with several values must be named.
    features, prior, candidates, expect_unknown, keep_features, lineage, prefix : object
        As in `label_table`.
    bad_rows : {"keep", "refuse"}
        Whether rows that cannot be labelled stay, with their reasons, or make their partition fail.
    relabel : bool
        Whether partitions that were labelled by another model, version or settings are labelled again. Otherwise they
        stay as they are, and the manifest and the metadata of their files say by what they were labelled.
    workers : callable, optional
        `here(processes)` or `on_ray(address)` of `handful.workers`; by default a process for each core. A worker
        labels one partition at a time, in about half a gigabyte of memory.
    on_progress : callable, optional
        Called with a `Progress` after every partition.

    Returns
    -------
    RunReport
        What was done. If partitions failed, a `PartitionsError` has it instead, after all others are done.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from handful import BatchClassifier
    >>> from handful.workers import here
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> classifier, place = BatchClassifier().fit(X, y), Path(tempfile.mkdtemp())
    >>> for day in (1, 2):
    ...     (place / f"data/day={day}").mkdir(parents=True)
    ...     batch = centres[[3] * 6 + [7] * 4] + 0.7 * rng.normal(size=(10, 16))
    ...     pq.write_table(pa.table({"vector": batch.tolist()}), place / f"data/day={day}/rows.parquet")
    >>> found = run(place / "data", classifier, place / "labelled", group_by="day", workers=here())
    >>> found.labelled, found.rows
    (('day=1', 'day=2'), 20)
    >>> run(place / "data", classifier, place / "labelled", group_by="day", workers=here()).labelled
    ()
    """
    if bad_rows not in (KEEP, REFUSE):
        raise OptionError(f"bad_rows must be {KEEP!r} or {REFUSE!r}, got {bad_rows!r}")
    job, source = job_of(data, model, out, group_by, bad_rows, options)
    with bars("label the partitions", on_progress) as listener:
        return _Driver(job, source, relabel, workers, Reporter(listener)).run()


def job_of(
    data: str | os.PathLike[str],
    model: Model,
    out: str | os.PathLike[str],
    group_by: str | Sequence[str],
    bad_rows: str,
    options: LabelOptions,
) -> tuple[Job, DataSet]:
    """Open what a run needs; whatever can be refused before the work is refused."""
    refuse_overwriting({"data set": data, "model": model}, {"folder of labels": out})
    labeller = TableLabeller.of(model, group_by, **options)
    if not labeller.group_by:
        raise OptionError("group_by names no column; a data set that is one batch is labelled by handful.scale.decide")
    place = folder_at(out)
    if isinstance(place, LocalFolder):
        place = LocalFolder(Path(os.path.abspath(place.path)))
    source = DataSet.at(data)
    return Job(source.folder, place, replace(labeller, model=_at_address(labeller.model, place)), bad_rows), source


def _at_address(model: ModelAt, out: Folder) -> ModelAt:
    """Return a model that workers can open: one that is in memory is saved beside the manifest."""
    if not isinstance(model.address, FittedModel):
        return model
    name = f"{PLACE}/{model.content[:NAME_DIGITS]}.model"
    if out.about(name) is None:
        with out.written(name) as place, tempfile.TemporaryDirectory(prefix="handful-") as scratch:
            save_model(model.address, Path(scratch) / "a.model")
            shutil.copyfile(Path(scratch) / "a.model", place)
    return ModelAt(f"{out.address}/{name}", model.content)


class _Driver:
    """One run: plans, gives partitions to workers, and commits them."""

    def __init__(self, job: Job, source: DataSet, relabel: bool, workers: Workers | None, reporter: Reporter) -> None:
        self.job = job
        self.source = source
        self.relabel = relabel
        self.workers = workers
        self.reporter = reporter
        self.manifest = Manifest(job.out)
        self.labelled = list[Done]()
        self.unchanged = list[str]()
        self.failed = list[Failed]()
        self.gone = list[str]()

    def run(self) -> RunReport:
        """Do what is not done yet."""
        plan = plan_of(self.job, self.source, self._workers(len(self.source.files)), relabel=self.relabel)
        self.unchanged += [one.partition.name for one in plan.partitions if one.is_done]
        self.gone = [line.partition for line in plan.gone]
        for line in plan.replaced:
            for one in line.outputs:
                self.job.out.remove(one.name)
        report = self.reporter.stage("label", len(plan.partitions), len(self.unchanged), "partitions")
        report(0)
        try:
            with closing(self._results(plan)) as results:
                for outcome in results:
                    self._commit(outcome)
                    report(1)
        finally:
            self.manifest.flush()
        return self._reported()

    def _workers(self, n_tasks: int) -> Workers:
        return self.workers or here(max(1, min(available_cores(), n_tasks)))

    def _results(self, plan: RunPlan) -> Generator[Done | Failed, None, None]:
        """Label what is to do."""
        to_do = plan.to_do
        if plan.layout == BUCKETS:
            yield from self._of_buckets(plan)
            return
        tasks = ((self.job, one.partition, one.line) for one in to_do)
        with closing(self._workers(len(to_do))(label_partition, tasks, _lost)) as results:
            yield from results

    def _of_buckets(self, plan: RunPlan) -> Generator[Done | Failed, None, None]:
        """Bring the rows of some buckets together, and label these."""
        folder = pieces_folder(self.job.out)
        to_do = {bucket_number(one.partition.name): one.partition for one in plan.to_do}
        needed = {file for partition in to_do.values() for file in partition.files}
        report = self.reporter.stage("bring groups together", len(needed), unit="files")
        pieces: dict[int, list[FileAt]] = {}
        lost = dict[FileAt, str]()
        tasks = (
            (self.job, file, plan.n_buckets, sorted(to_do), folder) for file in self.source.files if file in needed
        )
        try:
            with closing(self._workers(len(needed))(cut_file, tasks, _lost_file)) as results:
                for cut in results:
                    report(1)
                    if cut.reason:
                        lost[cut.file] = cut.reason
                    for bucket, piece in cut.pieces.items():
                        pieces.setdefault(bucket, []).append(piece)
            ready = []
            for bucket, partition in to_do.items():
                if bad := [file for file in partition.files if file in lost]:
                    yield Failed(partition.name, f"{bad[0].name}: {lost[bad[0]]}")
                else:
                    ready.append(partition._replace(files=tuple(sorted(pieces[bucket]))))
            of_pieces = replace(self.job, source=self.job.out)
            labels = ((of_pieces, partition, None) for partition in ready)
            hashed = {one.file.as_listed: one.file for one in plan.files}
            with closing(self._workers(len(ready))(label_partition, labels, _lost)) as results:
                for outcome in results:
                    if isinstance(outcome, Done):
                        files = to_do[bucket_number(outcome.partition)].files
                        inputs = tuple(hashed[file] for file in files)
                        outcome = replace(outcome, inputs=inputs, data=str(self.job.source.address))
                    yield outcome
        finally:
            for parts in pieces.values():
                for piece in parts:
                    self.job.out.remove(piece.name)

    def _commit(self, outcome: Done | Failed) -> None:
        """Note a partition that is done; what it is made of may be known under new names now."""
        if isinstance(outcome, Failed):
            log.error("%s: %s", outcome.partition, outcome.reason)
            self.failed.append(outcome)
            return
        self.manifest.add(outcome)
        if outcome.is_new:
            log.info("%s", outcome)
            self.labelled.append(outcome)
        else:
            self.unchanged.append(outcome.partition)

    def _reported(self) -> RunReport:
        report = RunReport(
            items=f"{self.job.out.address}/{ITEMS}",
            groups=f"{self.job.out.address}/{GROUPS}",
            labelled=tuple(sorted(done.partition for done in self.labelled)),
            unchanged=tuple(sorted(self.unchanged)),
            failed=tuple(sorted(self.failed, key=lambda one: one.partition)),
            gone=tuple(sorted(self.gone)),
            rows=sum(done.counts["rows"] for done in self.labelled),
            bad_rows=sum(done.counts["bad_rows"] for done in self.labelled),
        )
        if report.failed:
            first = report.failed[0]
            n_all = len(report.failed) + len(report.labelled) + len(report.unchanged)
            raise PartitionsError(
                f"{len(report.failed):,} of {n_all:,} partitions failed, and all others are done; the first, "
                f"{first.partition}: {first.reason}",
                report,
            )
        return report


def _lost(task: tuple[Any, ...], error: Exception) -> Failed:
    """Return the outcome of a partition whose worker died on every attempt."""
    return Failed(task[1].name, str(died(error)))


def _lost_file(task: tuple[Any, ...], error: Exception) -> CutFile:
    """Return the outcome of a file whose worker died on every attempt."""
    return CutFile(task[1], {}, str(died(error)))
