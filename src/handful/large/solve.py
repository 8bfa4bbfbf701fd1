"""solve: label one batch too large for memory jointly, in one pass over its rows.

`handful.model.stream` decides by some rows of the batch, which lie evenly over it at places that depend on nothing but
the numbers of rows and classes; all rows are then labelled by that decision, shard by shard. A run that is continued
decides again, which takes seconds, but labels no shard whose answers are there.

Memory of a worker, in bytes, for any |Q|:

    8 K d             class means and weights; the workers of one node of a cluster share one copy
    + 10 · 4 · 2²¹    a block of scores and what is computed from it; blocks have 16 rows at least

The process that starts the run needs `6 · 4 · 2²⁵` at most to decide, and `12 |Q|` in the end if a share of unknown
queries is expected. On disk what a shard adds up to takes `24 K`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from handful.banks import FeatureBank
from handful.errors import OptionError, StorageError, TaskError
from handful.estimators.containers import labels_of
from handful.estimators.diagnostics import diagnose
from handful.estimators.given import GivenRows, with_given
from handful.estimators.prior_weights import prior_of, weights_of
from handful.estimators.unknown_share import shares_of
from handful.executors import Executor, in_process
from handful.executors.executor import Shared
from handful.fitted import FittedModel
from handful.fitted.labels import distinct, places_of, same_kind
from handful.fitted.rows import ROW_TRANSFORMS
from handful.large.inputs import Input, read_input, read_rows
from handful.large.shard import SUMS, DecidedRun, Work
from handful.large.solution import FOLDER, LargeSolution, read_answers
from handful.machine.folders import Folder, folder_at
from handful.machine.lock import only_writer
from handful.machine.outputs import is_remote, refuse_overwriting
from handful.machine.threads import one_thread
from handful.model.knowledge import Knowledge, ToldShare
from handful.model.summary import BatchTotals, summarize
from handful.model.unknown_in_batch import UnknownCounts
from handful.progress import Progress, Reporter, bars
from handful.runs.run_file import begin, refuse_another
from handful.shapes import Float, Int

# Incremented when the meaning of a run's files changes. [version; convention]
FORMAT = 12
# What a run writes after `run.json`.
KINDS = (SUMS, FOLDER)
# Rows that are labelled as one part of the work, by default. [rows; work]
SHARD_ROWS = 65_536
Names: TypeAlias = tuple[str, ...]


def solve(
    catalogue: FittedModel | FeatureBank | tuple[Any, Any] | str | os.PathLike[str],
    queries: Any,
    folder: str | os.PathLike[str],
    *,
    prior: Any = None,
    candidates: Any = None,
    given: Mapping[int, Any] | None = None,
    new_classes: Any = None,
    expect_unknown: Any = None,
    transform: str | None = None,
    shard_rows: int = SHARD_ROWS,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> LargeSolution:
    """Label all queries jointly, streaming them; the answers go to Parquet files in `folder`.

    Called again with the same arguments after an interruption, it continues with the shards that are not
    labelled, to the same answer bit for bit. All bytes of both inputs are read and hashed first: a folder started with
    other inputs or other settings is refused, and so is one that another process is writing to.

    Parameters
    ----------
    catalogue : FittedModel, FeatureBank, path, URL or (X, y)
        A fitted catalogue, or labelled examples of all K classes. Labels in the answers are positions among its
        classes.
    queries : FeatureBank, path or URL of one, Parquet file or array [query, dim]
        What to label. Its labels, if any, are ignored. Banks stay where they are: on disk they are mapped, at a URL
        every worker reads the rows of its shards. A Parquet file is first copied into `folder`.
    folder : path or URL
        Where answers and sums go. Over a cluster give a URL that fsspec opens, such as `s3://bucket/run`, for the
        folder and the inputs, or paths that every node sees; an array is sent.
    prior, candidates : object
        What is known about the classes of a fitted catalogue, as in `BatchClassifier.infer`.
    given, new_classes : object
        Classes that a person gave to some of the queries, as in `BatchClassifier.infer`; they need a fitted catalogue.
    expect_unknown : object
        How many queries belong to no class, as in `BatchClassifier.infer`.
    transform : {"raw", "l2"}, optional
        Applied to every row as it is read; by default that of a fitted catalogue, else `l2`.
    shard_rows : int
        Queries per shard. A shard is the unit of work and of the answer files.
    executor : callable, optional
        `in_process(workers)` or `on_ray(address)` of `handful.executors`; by default in process on one thread.
        The answer is the same.
    on_progress : callable, optional
        Called with a `Progress` after the decision and after every shard.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from handful.datasets import load_clinc150
    >>> bank = load_clinc150()
    >>> rank = np.arange(bank.n_rows) % 50
    >>> of_catalogue, queried = rank < 5, (rank >= 5) & (bank.labels < 4)
    >>> with TemporaryDirectory() as folder:
    ...     found = solve(
    ...         (bank.features[of_catalogue], bank.labels[of_catalogue]), bank.features[queried], folder
    ...     )
    ...     float((found.answer().codes[:, 0] == bank.labels[queried]).mean()) > 0.95
    True
    """
    if shard_rows < 1:
        raise OptionError(f"shard_rows must be at least 1, got {shard_rows}")
    change = _transform_for(catalogue, transform)
    weights = None
    if prior is not None or candidates is not None or given:
        if not isinstance(catalogue, FittedModel):
            raise OptionError(
                "prior, candidates and given are about the classes of a fitted catalogue; give a FittedModel"
            )
        weights = _weights(prior, candidates, catalogue, given or {})
    shares = shares_of(expect_unknown, None)
    refuse_overwriting({"catalogue": catalogue, "queries": queries}, {"folder of answers": folder})
    place = folder_at(folder)
    # A killed process leaves its temporary folder behind, so there is one only if there is something to download.
    room = TemporaryDirectory(prefix="handful-") if is_remote(catalogue) or is_remote(queries) else nullcontext("")
    # On one thread sums have a fixed order: the catalogue's means and its head are the same in every process that
    # resumes the run.
    with only_writer(place, OptionError), room as downloads, one_thread():
        examples = read_input(catalogue, role="catalogue", scratch=Path(downloads))
        batch = read_input(queries, role="queries", scratch=Path(downloads))
        about = {
            "format": FORMAT,
            "inputs": {
                role: {"name": one.name, "content": one.content}
                for role, one in (("catalogue", examples), ("queries", batch))
            },
            "transform": change,
            "shard_rows": shard_rows,
            "weights": None if weights is None else hashlib.sha256(weights.tobytes()).hexdigest(),
            "given": _hash_of(given) if given else None,
            "unknown_share": None if shares is None else shares[0].tolist(),
        }
        refuse_another(place, about, KINDS)
        queried = batch.open(place)
        summed, names = _fitted(catalogue, examples, place, change, queried.dim)

        def read(rows: Int[np.ndarray, "some"]) -> Float[np.ndarray, "some dim"]:
            return read_rows(queried, rows, "raw")

        found = with_given(summed, read, queried.n_rows, given, new_classes)
        if found.catalogue is not summed:
            summed = found.catalogue
            names = tuple(map(str, found.classes.tolist()))
        name = begin(place, about, KINDS)
        work = Work(queried, summed.origin, change, place, name, shard_rows)
        knowledge = Knowledge(
            prior=None if weights is None else prior_of(weights, 1, summed.settings),
            share=None if shares is None else ToldShare.of(shares[0]),
        )
        with bars("label the batch", on_progress) as listener:
            return _solved(summed, names, work, knowledge, found.given, executor or in_process(), Reporter(listener))


def _solved(
    catalogue: FittedModel,
    names: Names,
    work: Work,
    knowledge: Knowledge,
    given: GivenRows,
    executor: Executor,
    reporter: Reporter,
) -> LargeSolution:
    """Decide, label all shards that are not labelled yet, and add up."""
    report = reporter.stage("decide", 1)
    n_rows = work.queries.n_rows
    decided = DecidedRun.of(catalogue.reference, n_rows, work.points, knowledge, given)
    report(1)
    report = reporter.stage("label", work.n_shards)
    shared = Shared(work), Shared(decided)
    tasks = ((shared[0], shard, shared[1]) for shard in range(work.n_shards))
    with closing(executor(Work.label, tasks)) as shards:
        for _ in shards:
            report(1)
    # Always in the order of the shards, so that the sum has the same bits.
    parts = [work.totals(shard, decided) for shard in range(work.n_shards)]
    found = [part for part in parts if part is not None]
    missing = len(parts) - len(found)
    if missing:
        raise StorageError(
            f"answers of {missing} shards are not in {work.folder.address}: nodes of the cluster wrote them to disks "
            "of their own; give a URL as the folder, or a path that all nodes see"
        )
    totals = BatchTotals.added(found)
    judged = decided.decision.unknown is not None
    share = knowledge.share
    unknown = None
    if judged and share is not None:
        unknown = UnknownCounts.of(np.concatenate([part["unknown"] for part in read_answers(work.folder)])[None])
    summary = summarize(
        decided.decision,
        totals,
        catalogue.reference.n_named,
        unknown,
        share,
        catalogue.settings,
    )
    confidence = float(totals.confidence[0]) / n_rows
    low, high = summary.interval[0].tolist()
    return LargeSolution(
        folder=work.folder.address,
        class_names=names,
        expected_counts=summary.expected_counts[0],
        presence=summary.presence[0],
        joint_weight=float(summary.joint_weight[0]),
        confidence=confidence,
        unknown_share=1 - float(summary.expected_counts.sum()) / n_rows if judged else None,
        unknown_interval=(low, high),
        unknown_reason=catalogue.unknown_reason,
        limit=float(summary.limit[0]),
        diagnostics=diagnose(
            catalogue.head,
            n_rows,
            confidence,
            unknown_share=None if share is None else np.array([share.a[0], share.b[0]]),
            unknown_reason=catalogue.unknown_reason,
        ),
    )


def _fitted(catalogue: Any, examples: Input, folder: Folder, transform: str, dim: int) -> tuple[FittedModel, Names]:
    """Return the catalogue as given, or fitted to the examples, and the names of its classes; refuse an unfit one."""
    if isinstance(catalogue, FittedModel):
        fitted = catalogue
        names = tuple(map(str, catalogue.classes.tolist()))
    else:
        bank = examples.open(folder)
        assert isinstance(bank, FeatureBank)
        fitted = FittedModel.of_bank(bank, transform)
        names = bank.class_names
    if fitted.only_names:
        raise TaskError(
            "a streamed batch needs examples, but the catalogue has names alone, whose scale comes from the batch "
            "as a whole; label smaller batches in memory, or add examples"
        )
    if fitted.dim != dim:
        raise TaskError(f"the catalogue has {fitted.dim} dimensions but the queries {dim}; they must agree")
    return fitted, names


def _weights(
    prior: Any, candidates: Any, catalogue: FittedModel, given: Mapping[int, Any]
) -> Float[np.ndarray, "row class"] | None:
    """Return the weights of the classes of the catalogue, and of those that a person named."""
    named = [label for label in given.values() if label is not None]
    classes = catalogue.classes
    if named and catalogue.unknown(labels_of(named)):
        classes, _ = distinct(np.concatenate([classes, same_kind(labels_of(named), classes)]))
    return weights_of(prior, candidates, classes, None, places_of(classes, catalogue.classes) < 0)


def _hash_of(given: Mapping[int, Any]) -> str:
    """Tell labels that were given apart."""
    labels = sorted((int(row), None if label is None else str(label)) for row, label in given.items())
    return hashlib.sha256(repr(labels).encode()).hexdigest()


def _transform_for(catalogue: Any, named: str | None) -> str:
    """Return the transform named, or that of the catalogue, or `l2`."""
    change = named or "l2"
    if isinstance(catalogue, FittedModel):
        if named not in (None, catalogue.transform):
            raise OptionError(f"the catalogue was fitted with transform {catalogue.transform!r}, got {named!r}")
        change = catalogue.transform
    if change not in ROW_TRANSFORMS:
        raise OptionError(
            f"transform must be one of {', '.join(ROW_TRANSFORMS)}, which transform each row alone, got {change!r}"
        )
    return change
