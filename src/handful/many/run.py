"""label_groups: every group of rows of a Parquet data set is one joint batch; from disk to disk, in bounded memory.

    survey   where groups start (columns of the group alone)
    split    only if the rows of a group do not lie together: rows by group into buckets on disk
    label    portions of complete groups, several at a time, each on one thread; one file of answers for each
    write    one file of items and one of groups for each file of the data set

A portion depends on the data set alone, and its answers on the portion alone. So a run that was killed continues with
the portions that are missing, and its output has the same bytes. Every file of its own is sealed, with the run and the
number of the portion: one that was damaged or exchanged in the meantime is made again.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.catalogue import Catalogue
from handful.errors import OptionError
from handful.estimators import BatchClassifier
from handful.large import Progress
from handful.large import solve as solve_large
from handful.large.progress import Reporter
from handful.large.run_file import begin, refuse_another, run_name_of
from handful.machine.folder_lock import only_writer
from handful.machine.folders import LocalFolder
from handful.machine.safetensors_format import is_whole, read_tensors, write_tensors
from handful.machine.threads import one_thread
from handful.many.contiguous import portion_ranges, read_portion
from handful.many.portions import Answered, Portion
from handful.many.source import Source
from handful.many.split import Bucket, in_memory, most_rows, n_buckets, read_bucket, stretches, write_stretch
from handful.many.survey import survey
from handful.many.write import GROUPS, ITEMS, Layout, Written, write_file

# A group with more scores (items times classes) than this is labelled by `handful.large`, which streams it.
LARGE_SCORES = 2**24
# Incremented when the meaning of a run's files changes.
FORMAT = 2
WORK = "work"


@dataclass(frozen=True)
class LabelledGroups:
    """Where the answers are.

    Attributes
    ----------
    items, groups : Path
        Folders of Parquet files, named like those of the data set: one row per item, and one row per group and class.
    n_items : int
        Rows of the data set.

    Examples
    --------
    >>> LabelledGroups(Path("out/items"), Path("out/groups"), 120).groups.name
    'groups'
    """

    items: Path
    groups: Path
    n_items: int


def label_groups(
    classifier: BatchClassifier | Catalogue,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    group_by: str | Sequence[str],
    features: str | Sequence[str] | None = None,
    keep_features: bool = False,
    prefix: str = "",
    threads: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> LabelledGroups:
    """Label every group of rows of a Parquet data set as one joint batch, from disk to disk.

    The answers are those of `classifier.infer(X, groups=...)`. A group of more than 2²⁴ scores (items times classes) is
    labelled by `handful.large.solve`. Rows of a group may lie anywhere, also in several files. Memory does not depend
    on the number of rows. Called again with the same arguments after an interruption, it continues, and the output has
    the same bytes; files that were damaged in the meantime are made again. A folder that was started with other inputs
    is refused.

    Parameters
    ----------
    classifier : BatchClassifier or Catalogue
        Fitted.
    source : path
        A Parquet file, or a folder with files that end in `.parquet`, also in folders below it.
    out : path
        Folder for the answers. `items` has a file for each file of the data set, with the same rows in the same order:
        all columns but the vectors, then `label`, `probability` and `unknown`, the chance that the item has none of the
        classes. `groups` has one row per group and class that may be present (a chance of at least 0.02, and always the
        class with most items): columns of the group, `items` (their number), `joint_weight`, `unknown_items` (how many
        have none of the classes), `class`, `expected_count` and `presence`. A group is in the file where its first row
        is. `SHA256SUMS` has the checksums of all these files; `sha256sum -c` verifies them.
    group_by : str or sequence of str
        The column of the group, or several that name a group together.
    features : str or sequence of str, optional
        The column of vectors (lists of numbers), or one column per dimension. By default the columns that the
        classifier was fitted to if these had names, else the only column of lists.
    keep_features : bool
        Carry the vectors along as well; they are most of the data.
    prefix : str
        What the names of new columns begin with, for a data set that has a column `label` already.
    threads : int, optional
        Portions labelled at the same time, each on one thread; about 0.4 GB of memory each. By default one per core.
        The output does not depend on it.
    on_progress : callable, optional
        Called with a `Progress` after every portion; stages are `survey` (rows), `split`, `label` and `write` (files).

    Returns
    -------
    LabelledGroups
        Where the answers are, and how many there are.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from handful import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[[3] * 6 + [7] * 4 + [11] * 5] + 0.7 * rng.normal(size=(15, 16))
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = pa.table({"site": ["marsh"] * 10 + ["wood"] * 5, "vector": batch.tolist()})
    >>> pq.write_table(table, folder / "batch.parquet")
    >>> found = label_groups(BatchClassifier().fit(X, y), folder / "batch.parquet", folder / "out", group_by="site")
    >>> items = pq.read_table(found.items)
    >>> items.column_names, items["label"].to_pylist()
    (['site', 'label', 'probability', 'unknown'], [3, 3, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 11])
    >>> groups = pq.read_table(found.groups, filters=[("presence", ">=", 0.5)])
    >>> [(row["site"], row["class"], round(row["expected_count"], 1)) for row in groups.to_pylist()]
    [('marsh', 3, 6.0), ('marsh', 7, 4.0), ('wood', 11, 5.0)]
    """
    catalogue, named = _fitted(classifier)
    if threads is not None and threads < 1:
        raise OptionError(f"threads must be at least 1, got {threads}")
    data = Source.of(source, group_by, features if features is not None else named, catalogue.dim)
    layout = Layout.of(data, catalogue.classes, keep_features, prefix)
    place = Path(out)
    if Path(source).is_dir() and Path(source).resolve() in (place.resolve(), *place.resolve().parents):
        raise OptionError(f"{place} lies in the data set itself; choose a folder outside of it")
    place.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "inputs": {
            "catalogue": {"called": "the catalogue of the classifier", "content": catalogue.content_hash},
            "data set": {"called": str(source), "content": data.fingerprint()},
        },
        "keep_features": keep_features,
        "prefix": prefix,
    }
    # On one thread sums have a fixed order; portions are what runs at the same time.
    with only_writer(place, OptionError), one_thread():
        refuse_another(LocalFolder(place), about, (WORK, ITEMS, GROUPS))
        begin(LocalFolder(place), about, (WORK, ITEMS, GROUPS))
        reporter = Reporter(on_progress)
        _Run(run_name_of(about), data, layout, catalogue, place, threads or _cores(), reporter).run()
    return LabelledGroups(place / ITEMS, place / GROUPS, data.n_rows)


def _fitted(classifier: Any) -> tuple[Catalogue, list[str] | None]:
    """Return the catalogue that groups are labelled with, and names of the features if there are."""
    if isinstance(classifier, Catalogue):
        return classifier, None
    catalogue = getattr(classifier, "_catalogue", None)
    if not isinstance(catalogue, Catalogue):
        raise OptionError(
            f"classifier must be a fitted BatchClassifier, or a Catalogue, got {type(classifier).__name__}; groups "
            "need the method roll_call"
        )
    names = getattr(classifier, "feature_names_in_", None)
    # A single name is that of a column of vectors only if there are more dimensions.
    return catalogue, None if names is None or len(names) != catalogue.dim else names.tolist()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class _Run:
    """One data set being labelled; `name` is a hash of what the run was started with."""

    name: str
    source: Source
    layout: Layout
    catalogue: Catalogue
    out: Path
    threads: int
    reporter: Reporter

    def run(self) -> None:
        """Do what is not done yet."""
        written = Written(self.out)
        unwritten = [place for place, name in enumerate(self.source.names) if not written.has(name)]
        if unwritten:
            self._work.mkdir(exist_ok=True)
            starts = self._starts()
            answers = self._by_buckets() if starts is None else self._by_ranges(starts)
            answered = Answered(answers)

            def write(place: int) -> None:
                write_file(self.layout, answered, place, self.out)
                written.add(self.source.names[place])

            self._each("write", ((place,) for place in unwritten), write, len(unwritten))
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def _work(self) -> Path:
        return self.out / WORK

    def _what(self, file: Path) -> str:
        """Tell the files of all runs apart for their seals."""
        return f"{self.name}/{file.name}"

    def _missing(self, files: Sequence[Path]) -> list[int]:
        """Return the places of the files that are not there, or not as they were written."""
        return [place for place, file in enumerate(files) if not is_whole(file, self._what(file))]

    def _starts(self) -> np.ndarray | None:
        """Return the first rows of groups that lie together, or None; the survey is made once."""
        file = self._work / "survey.safetensors"
        if self._missing([file]):
            began = time.monotonic()
            starts = survey(self.source, lambda done, total: self.reporter.part("survey", done, total, began))
            write_tensors(file, {} if starts is None else {"starts": starts}, what=self._what(file))
        found, _ = read_tensors(file, self._what(file))
        return found.get("starts")

    def _by_ranges(self, starts: np.ndarray) -> list[Path]:
        """Label portions that are ranges of rows; return the files of their answers."""
        ranges = portion_ranges(starts, self.source.n_rows, self.source.dim)
        files = [self._work / f"answers-{start:015d}.safetensors" for start, _ in ranges]
        missing = self._missing(files)
        sizes = [stop - start for start, stop in ranges]
        small = [place for place in missing if in_memory(sizes[place], self.source.dim)]
        pieces = self.source.pieces(self.source.features, [ranges[place] for place in small])

        def answer(place: int, batches: Any) -> None:
            scratch = self._work / f"vectors-{place}.npy"
            portion = read_portion(self.source, ranges[place], starts, batches, scratch)
            if isinstance(batches, list):
                batches.clear()  # their rows are in the portion now
            self._answer(portion, files[place])
            scratch.unlink(missing_ok=True)

        def jobs() -> Iterator[tuple[int, Any]]:
            for place in missing:
                if not in_memory(sizes[place], self.source.dim):
                    yield place, self.source.batches(self.source.features, [ranges[place]])
            for place, batches in pieces:
                yield small[place], batches

        self._each("label", jobs(), answer, len(missing))
        return files

    def _by_buckets(self) -> list[Path]:
        """Split the rows by group, and label one bucket at a time; return the files of the answers."""
        files = [self._work / f"answers-{bucket:04d}.safetensors" for bucket in range(n_buckets(self.source))]
        missing = self._missing(files)
        ranges = stretches(self.source)
        split = [self._work / f"split-{start:015d}.safetensors" for start, _ in ranges]
        if missing:
            unsplit = self._missing(split)
            columns = [*dict.fromkeys((*self.source.group_by, *self.source.features))]
            pieces = self.source.pieces(columns, [ranges[place] for place in unsplit])
            self._each(
                "split",
                ((unsplit[place], batches) for place, batches in pieces),
                lambda place, batches: write_stretch(
                    self.source, ranges[place], batches, split[place], self._what(split[place])
                ),
                len(unsplit),
            )

        def answer(bucket: int) -> None:
            scratch = self._work / f"vectors-{bucket}.npy"
            self._answer(read_bucket(split, bucket, scratch), files[bucket])
            scratch.unlink(missing_ok=True)

        self._each("label", ((bucket,) for bucket in missing), answer, len(missing))
        for file in split:
            file.unlink(missing_ok=True)
        return files

    def _answer(self, bucket: Bucket, file: Path) -> None:
        """Label the groups of a bucket: several in memory at once, or a large one streamed; write the answers."""
        portion, order = Portion(), np.argsort(bucket.group_of, kind="stable")
        sizes = np.bincount(bucket.group_of)
        ends = np.cumsum(sizes)
        most, first = most_rows(self.source.dim), 0
        while first < len(sizes):
            start, last = int(ends[first] - sizes[first]), first + 1
            if int(sizes[first]) * self.catalogue.n_classes > LARGE_SCORES:
                self._stream(bucket, order[start : ends[first]], portion)
            else:
                small = sizes[first:] * self.catalogue.n_classes <= LARGE_SCORES
                fits = small & (ends[first:] - start <= most)
                last = first + max(1, int(fits.argmin()) if not fits.all() else len(fits))
                items = np.sort(order[start : ends[last - 1]])
                groups = bucket.group_of[items] - first
                vectors = bucket.vectors if len(items) == len(bucket.rows) else bucket.vectors[items]
                portion.label(self.catalogue, vectors, groups, bucket.rows[items])
            first = last
        portion.write(file, self._what(file))

    def _stream(self, bucket: Bucket, items: np.ndarray, portion: Portion) -> None:
        """Label one large group by `handful.large`."""
        folder = self._work / f"large-{int(bucket.rows[items[0]]):015d}"
        folder.mkdir(exist_ok=True)
        vectors = np.lib.format.open_memmap(
            folder / "vectors.npy", "w+", np.float32, (len(items), bucket.vectors.shape[1])
        )
        for start in range(0, len(items), 2**16):
            vectors[start : start + 2**16] = bucket.vectors[items[start : start + 2**16]]
        found = solve_large(self.catalogue, vectors, folder / "run")
        portion.take(found, bucket.rows[items])
        shutil.rmtree(folder)

    def _each(self, stage: str, jobs: Iterable[tuple[Any, ...]], work: Callable[..., None], total: int) -> None:
        """Do every job, several at a time; the next job is made by the thread that will do it."""
        waiting, lock, began, failed = iter(jobs), threading.Lock(), time.monotonic(), threading.Event()
        finished = [0]

        def worker() -> None:
            try:
                while not failed.is_set():
                    with lock:
                        job = next(waiting, None)
                    if job is None:
                        return
                    work(*job)
                    with lock:
                        finished[0] += 1
                        self.reporter.part(stage, finished[0], total, began)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(self.threads) as pool:
            for future in [pool.submit(worker) for _ in range(self.threads)]:
                future.result()
