"""Groups of a `ray.data` data set: every group is one joint batch, labelled where its rows are.

`GroupLabeller` is what Ray calls: `Dataset.groupby(...).map_groups(GroupLabeller, ...)`, or `map_batches` where every
batch holds whole groups. It holds a classifier, which is loaded once per worker. `labelled_dataset` does the rest: it
divides groups into buckets by a hash of their names, so that a worker labels many groups in one call, which takes a
fraction of the time of one call per group.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from handful.arguments import some_of
from handful.errors import OptionError, TaskError
from handful.estimators.batches import Batches
from handful.estimators.classifiers import BatchClassifier
from handful.estimators.context import Known, checked
from handful.machine.extras import import_extra
from handful.machine.folders import fetched
from handful.machine.outputs import is_remote, local_path
from handful.shapes import Float

# The column of the buckets, while there is one.
BUCKET = "_handful_bucket"
BUCKETS = 256


class GroupLabeller:
    """Add a label and its certainty to every row of a table; every group of rows is one joint batch.

    Parameters
    ----------
    classifier : BatchClassifier, path, URL or ray.ObjectRef
        Fitted; the file that `BatchClassifier.save` wrote; or what `ray.put(classifier)`
        returned.
    group_by : str or sequence of str
        The column of the group, or several that name a group together.
    features : str
        The column of vectors: lists of numbers of equal length, or Ray's tensors.
    keep_features : bool
        Keep the vectors in the result; they are most of the data.
    prefix : str
        What the names of the new columns, `label` and `certainty`, begin with.
    prior, candidates : object
        What is known about the classes, as in `BatchClassifier.infer`; by the names of groups, if groups differ.
    expect_unknown : object
        How many items belong to no class, as in `BatchClassifier.infer`.
    sequence : str or sequence of str, optional
        Column that is equal for rows of one class, or several columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[[3] * 6 + [7] * 4 + [11] * 5] + 0.7 * rng.normal(size=(15, 16))
    >>> table = pa.table({"site": ["marsh"] * 10 + ["wood"] * 5, "vector": batch.tolist()})
    >>> label = GroupLabeller(BatchClassifier().fit(X, y), group_by="site", features="vector")
    >>> found = label(table)
    >>> found.column_names, found["label"].to_pylist()
    (['site', 'label', 'certainty'], [3, 3, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 11])
    """

    def __init__(
        self,
        classifier: Any,
        *,
        group_by: str | Sequence[str],
        features: str,
        keep_features: bool = False,
        prefix: str = "",
        prior: Any = None,
        candidates: Any = None,
        expect_unknown: Any = None,
        sequence: str | Sequence[str] | None = None,
    ) -> None:
        self._classifier = _loaded(classifier)
        self._sequence = () if sequence is None else columns_of(sequence)
        self._known = checked({"prior": prior, "candidates": candidates, "expect_unknown": expect_unknown})
        self._group_by = columns_of(group_by)
        self._features = features
        self._keep_features = keep_features
        self._prefix = prefix

    def __call__(self, table: Any) -> Any:
        """Label all groups of a `pyarrow.Table` that holds them whole (`batch_format="pyarrow"`)."""
        pa = import_extra("pyarrow", "parquet")
        new = [f"{self._prefix}{name}" for name in ("label", "certainty")]
        for name in (*self._group_by, self._features, *self._sequence):
            if name not in table.column_names:
                raise OptionError(f"there is no column {name!r}; choose from {some_of(table.column_names)}")
        for name in new:
            if name in table.column_names and (name != self._features or self._keep_features):
                raise OptionError(
                    f"there is a column {name!r} already; give the new columns another prefix, for example "
                    "prefix='handful_'"
                )
        points = vectors(table[self._features], self._features)
        known = Known(**self._known)
        if self._sequence:
            known["sequence"] = _names(table, self._sequence)
        labels = self._classifier.classes_[:0]
        certainty = np.zeros(0)
        if len(points):
            items = self._classifier._items(points, known)
            found = Batches.of(items, _names(table, self._group_by), known).answer(keep=False)
            labels = found.labels
            certainty = found.certainty
        unwanted = {BUCKET} if self._keep_features else {BUCKET, self._features}
        kept = table.drop_columns([name for name in table.column_names if name in unwanted])
        answers = (pa.array(labels.tolist()), pa.array(certainty.astype(np.float32)))
        for name, column in zip(new, answers, strict=True):
            kept = kept.append_column(name, column)
        return kept


def labelled_dataset(
    dataset: Any,
    classifier: Any,
    *,
    group_by: str | Sequence[str],
    buckets: int = BUCKETS,
    workers: int | None = None,
    **others: Any,
) -> Any:
    """Return a `ray.data.Dataset` with a label and its certainty for every row; rows of a group may lie anywhere.

    Rows come back in another order. Read and write the data sets with Ray, for instance
    `labelled_dataset(ray.data.read_parquet(...), ...).write_parquet(...)`.

    Parameters
    ----------
    dataset : ray.data.Dataset
        With a column of vectors and the columns that name the group.
    classifier, group_by, **others
        As in `GroupLabeller`.
    buckets : int
        Parts into which the groups are divided. All rows of a bucket are in the memory of one worker at once.
    workers : int, optional
        Processes that label, each with the classifier in memory; by default up to one per core of the cluster.
    """
    ray = import_extra("ray", "ray")
    data = import_extra("ray.data", "ray")
    if buckets < 1:
        raise OptionError(f"buckets must be at least 1, got {buckets}")
    most = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    settings = {"group_by": group_by, **others}
    signature(GroupLabeller).bind(classifier, **settings)  # refuses here what every worker would
    if isinstance(classifier, BatchClassifier):
        classifier = ray.put(classifier)
    dealt = dataset.map_batches(partial(with_buckets, columns_of(group_by), buckets), batch_format="pyarrow")
    return dealt.groupby(BUCKET).map_groups(
        GroupLabeller,
        fn_constructor_args=(classifier,),
        fn_constructor_kwargs=settings,
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(min_size=1, max_size=most),
    )


def with_buckets(group_by: Sequence[str], n_buckets: int, table: Any) -> Any:
    """Add the column of the buckets: a hash of the group's name, the same in every process."""
    pa = import_extra("pyarrow", "parquet")
    known: dict[Any, int] = {}
    column = np.empty(len(table), np.int32)
    for row, name in enumerate(zip(*(table[column].to_pylist() for column in group_by), strict=True)):
        if name not in known:
            known[name] = zlib.crc32(repr(name).encode()) % n_buckets
        column[row] = known[name]
    return table.append_column(BUCKET, pa.array(column))


def columns_of(group_by: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns."""
    names = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if not names:
        raise OptionError("group_by must name at least one column, got none")
    return names


def vectors(column: Any, name: str) -> Float[np.ndarray, "row dim"]:
    """Turn a column of lists, or of Ray's tensors, which are lists inside, into a matrix."""
    compute = import_extra("pyarrow.compute", "parquet")
    parts = []
    for chunk in column.chunks:
        lists = getattr(chunk, "storage", chunk)
        if lists.null_count or not hasattr(lists, "flatten"):
            raise TaskError(f"column {name!r} must have a vector in every row, got {column.type}")
        if len(lists) == 0:
            continue
        lengths = compute.list_value_length(lists).to_numpy(zero_copy_only=False)
        if (lengths != lengths[0]).any():
            raise TaskError(f"vectors in column {name!r} have from {lengths.min()} to {lengths.max()} numbers")
        parts.append(lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1))
    if len({part.shape[1] for part in parts}) > 1:
        raise TaskError(f"vectors in column {name!r} have different lengths")
    return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)


def _names(table: Any, group_by: Sequence[str]) -> npt.NDArray[Any]:
    if len(group_by) == 1:
        names: npt.NDArray[Any] = table[group_by[0]].to_numpy()
        return names
    columns = np.empty((len(table), len(group_by)), dtype=object)
    for place, name in enumerate(group_by):
        columns[:, place] = table[name].to_pylist()
    return columns


def _loaded(classifier: Any) -> BatchClassifier:
    if isinstance(classifier, BatchClassifier):
        return classifier
    if isinstance(classifier, str | os.PathLike):
        with TemporaryDirectory(prefix="handful-") as scratch:
            remote = is_remote(classifier)
            return BatchClassifier.load(fetched(str(classifier), Path(scratch)) if remote else local_path(classifier))
    found: BatchClassifier = import_extra("ray", "ray").get(classifier)
    return found
