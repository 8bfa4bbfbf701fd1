"""label_groups: every group of rows of a Parquet data set is one joint batch; from disk to disk, in bounded memory.

    sort     by group, and by row within a group: Arrow files of some groups each, with as much room as the vectors
    label    portions of complete groups, several at a time, each by one worker; one file of answers for each
    write    one file of items and one of groups for each file of the data set, from the answers in the order of rows

A portion depends on the data set alone, and its answers on the portion alone. So a run that was killed sorts again, but
labels only the portions that are missing, and its output has the same bytes. The answers about a portion have a
checksum of the run and the rows of the portion: a file that was damaged or exchanged in the meantime is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handful.errors import OptionError, StorageError
from handful.estimators import BatchClassifier
from handful.estimators.context import Known
from handful.estimators.diagnostics import unused_share, warnings_of
from handful.estimators.prior_weights import weights_of
from handful.estimators.unknown_share import UnknownShare, shares_of
from handful.executors import Executor, in_process
from handful.executors.executor import Shared
from handful.fitted import FittedModel
from handful.machine.extras import import_pyarrow
from handful.machine.folders import LocalFolder
from handful.machine.lock import only_writer
from handful.machine.outputs import explain_refusal, is_remote, local_path, refuse_overwriting
from handful.machine.threads import available_cores, one_thread
from handful.many.portions import FLOAT, GROUP, ITEM, MOST_PARTS, Portion, in_order, label, most_rows, portions
from handful.many.source import BATCH_NUMBERS, TableFiles, spread
from handful.many.write import GROUPS, ITEMS, InOrder, Layout, Written, columns_of, write_file
from handful.progress import Progress, Reporter, bars, silent
from handful.runs.parts import Parts
from handful.runs.run_file import begin

# Incremented when the meaning of a run's files changes, or the labels: a run has those of one version.
# [version; convention]
FORMAT = 7
WORK = "work"
# Rows whose answers are sorted at once when the output is written. [rows; work]
SEGMENT_ROWS = 2**18


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
    classifier: BatchClassifier | FittedModel,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    group_by: str | Sequence[str],
    features: str | Sequence[str] | None = None,
    prior: Any = None,
    candidates: Any = None,
    expect_unknown: Any = None,
    keep_features: bool = False,
    prefix: str = "",
    executor: Executor | None = None,
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
    classifier : BatchClassifier or FittedModel
        Fitted on the labelled catalogue.
    source : path
        A Parquet file, or a folder with files that end in `.parquet`, also in folders below it.
    out : path
        Folder for the answers. `items` has a file for each file of the data set, with the same rows in the same order:
        all columns but the vectors, then `label`, `certainty` and `unknown`, the chance that the item has none of the
        classes. `groups` has one row per group and class that may be present (a chance of at least 0.02, and always the
        class with most items): columns of the group, `items` (their number), `joint_weight`, `unknown_items` (how many
        have none of the classes), `class`, `expected_count` and `presence`. A group is in the file where its first row
        is. `SHA256SUMS` has the checksums of all these files; `sha256sum -c` verifies them.
    group_by : str or sequence of str
        The column of the group, or several that together identify it. Hive partitions, folders such as `day=1`, are
        named like columns; those that are left out and have several values are refused.
    features : str or sequence of str, optional
        The column of vectors (lists of numbers), or one column per dimension. By default the columns that the
        classifier was fitted to, if these had names; else the only column of lists.
    prior, candidates : object
        What is known about the classes of every group, as in `BatchClassifier.infer`; the same for all groups.
    expect_unknown : object
        How many items of a group belong to no class, as in `BatchClassifier.infer`; the same for all groups.
    keep_features : bool
        Also copy the vectors; they are most of the data.
    prefix : str
        Prefix of the new columns, for a data set that already has a column `label`.
    executor : callable, optional
        `in_process(workers)` or `on_ray(address)` of `handful.executors`; by default in process, with one worker per
        core. Each labels a portion at a time, in about 0.4 GB of memory. The output does not depend on it.
    on_progress : callable, optional
        Called with a `Progress` after every portion; stages are `sort` and `label` (rows) and `write`
        (files).

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
    (['site', 'label', 'certainty', 'unknown'], [3, 3, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 11])
    >>> groups = pq.read_table(found.groups, filters=[("presence", ">=", 0.5)])
    >>> [(row["site"], row["class"], round(row["expected_count"], 1)) for row in groups.to_pylist()]
    [('marsh', 3, 6.0), ('marsh', 7, 4.0), ('wood', 11, 5.0)]
    """
    catalogue, named = _fitted(classifier)
    files = _on_disk("data set", source)
    place = _on_disk("folder of answers", out)
    refuse_overwriting({"data set": files}, {"folder of answers": place})
    data = TableFiles.of(files, group_by, features if features is not None else named, catalogue.dim)
    layout = Layout.of(data, catalogue.classes, keep_features, prefix)
    weights = weights_of(prior, candidates, catalogue.classes, None)
    known = Known() if weights is None else Known(prior=weights[0])
    shares = shares_of(expect_unknown, None)
    if shares is not None:
        known["expect_unknown"] = UnknownShare(*shares[0].tolist())
        unused = unused_share(shares[0], catalogue.unknown_reason)
        for warning in warnings_of(() if unused is None else (unused,)):
            warnings.warn(warning, stacklevel=2)
    about = {
        "format": FORMAT,
        "inputs": {
            "catalogue": {"name": "the catalogue of the classifier", "content": catalogue.content_hash},
            "data set": {"name": str(source), "content": data.fingerprint()},
        },
        "keep_features": keep_features,
        "prefix": prefix,
        "weights": None if weights is None else hashlib.sha256(weights.tobytes()).hexdigest(),
        "unknown_share": None if shares is None else shares[0].tolist(),
    }
    # On one thread sums have a fixed order; portions are what runs at the same time.
    with only_writer(place, OptionError), one_thread(), bars("label groups", on_progress) as listener:
        name = begin(LocalFolder(place), about, (WORK, ITEMS, GROUPS))
        reporter = Reporter(listener)
        _Run(name, data, layout, catalogue, known, place, executor or in_process(available_cores()), reporter).run()
    return LabelledGroups(place / ITEMS, place / GROUPS, data.n_rows)


def _on_disk(what: str, place: str | os.PathLike[str]) -> Path:
    """Return a path; a URL is refused, because rows are sorted on a disk."""
    if is_remote(place):
        raise OptionError(
            f"label_groups goes from disk to disk, but the {what} is at {place}; copy it to a disk, or use Ray Data"
        )
    return local_path(place)


def _fitted(classifier: Any) -> tuple[FittedModel, list[str] | None]:
    """Return the catalogue that groups are labelled with, and names of the features if there are."""
    if isinstance(classifier, FittedModel):
        return classifier, None
    catalogue = getattr(classifier, "_catalogue", None)
    if not isinstance(catalogue, FittedModel):
        raise OptionError(
            f"classifier must be a fitted BatchClassifier, or a FittedModel, got {type(classifier).__name__}"
        )
    names = getattr(classifier, "feature_names_in_", None)
    # A single name is that of a column of vectors only if there are more dimensions.
    return catalogue, None if names is None or len(names) != catalogue.dim else names.tolist()


@one_thread()  # so that sums have a fixed order
def _labelled(
    catalogue: FittedModel, portion: Portion, known: Known, folder: Path, number: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """Label a portion; its number comes first, because portions are ready in any order."""
    with silent():
        return (number, *label(catalogue, portion, known, folder))


@dataclass(frozen=True)
class _Run:
    """One data set being labelled; `name` is a hash of what the run was started with."""

    name: str
    source: TableFiles
    layout: Layout
    catalogue: FittedModel
    known: Known
    out: Path
    executor: Executor
    reporter: Reporter

    def run(self) -> None:
        """Do what is not done yet."""
        written = Written(self.out, self.source.names)
        unwritten = [place for place, name in enumerate(self.source.names) if not written.has(name)]
        if unwritten:
            with explain_refusal(self._work):
                self._work.mkdir(exist_ok=True)
            with closing(self._sorted()) as rows:
                hashes = self._label(rows)
            self._write(hashes, written, unwritten)
            written.finish()
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def _work(self) -> Path:
        return self.out / WORK

    @property
    def _answers(self) -> Parts:
        return Parts(LocalFolder(self._work), "answers-{:06d}", self.name)

    def _sorted(self) -> Generator[Any, None, None]:
        """Yield keys of the group, `row` and `vector` (as bytes) of all rows, one group after the other."""
        pa, _ = import_pyarrow()
        source = self.source
        report = self.reporter.stage("sort", self.source.n_rows, unit="rows")
        names = [*(f"key{place}" for place in range(len(source.group_by))), "row", "vector"]
        at_once = max(1, BATCH_NUMBERS // source.dim)
        n_parts = min(MOST_PARTS, -(-source.n_rows // most_rows(source.dim)))
        columns = dict.fromkeys((*source.group_columns, *source.features))

        def given() -> Iterator[tuple[np.ndarray, Any]]:
            for row, batch in source.batches(columns, rows_at_once=at_once):
                keys = source.keys(batch, row)
                rows = np.arange(row, row + len(batch))
                vectors = pa.py_buffer(np.ascontiguousarray(source.matrix(batch, row), np.float32))
                content = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(FLOAT.itemsize * source.dim), len(batch), [None, vectors]
                )
                yield spread(keys, n_parts), pa.record_batch([*keys, pa.array(rows), content], names)
                report(len(batch))

        return in_order(given(), names[:-1], self._work / "sort", at_once)

    def _label(self, rows: Iterator[Any]) -> list[str]:
        """Label the portions whose answers are not there, several at a time; return a hash of the rows of each."""
        answers = self._answers
        hashes = list[str]()
        catalogue = Shared(self.catalogue)
        report = self.reporter.stage("label", self.source.n_rows, unit="rows")

        def tasks() -> Iterator[tuple[Shared, Portion, Known, Path, int]]:
            for number, portion in enumerate(portions(rows, len(self.source.group_by), self.source.dim, self._work)):
                hashes.append(hashlib.sha256(portion.rows.tobytes()).hexdigest())
                if answers.load(number, hashes[number]) is None:
                    yield catalogue, portion, self.known, self._work, number
                else:
                    report(len(portion.rows))

        with closing(self.executor(_labelled, tasks())) as labelled:
            for number, items, groups in labelled:
                answers.save(number, items, groups, made_of=hashes[number])
                report(len(items))
        return hashes

    def _write(self, hashes: Sequence[str], written: Written, unwritten: Sequence[int]) -> None:
        """Write the files of the output that are missing, from the answers in the order of rows."""
        report = self.reporter.stage("write", len(unwritten), unit="files")
        size = max(SEGMENT_ROWS, -(-self.source.n_rows // MOST_PARTS))

        def table(which: int, *by: str) -> Generator[Any, None, None]:
            def given() -> Iterator[tuple[np.ndarray, Any]]:
                for number, rows in enumerate(hashes):
                    answers = self._answers.load(number, rows)
                    if answers is None:
                        raise StorageError(f"answers in {self._work} were removed or changed; call again")
                    part = answers[which]
                    part = part[np.isin(np.searchsorted(self.source.starts, part["row"], "right") - 1, unwritten)]
                    yield part["row"] // size, columns_of(part)

            return in_order(given(), by, self._work / f"sort-{which}")

        with closing(table(0, "row")) as items, closing(table(1, "row", "class")) as groups:
            of_items = InOrder(items, ITEM)
            of_groups = InOrder(groups, GROUP)
            for place in unwritten:
                write_file(self.layout, place, of_items, of_groups, self.out)
                written.add(self.source.names[place])
                report(1)
