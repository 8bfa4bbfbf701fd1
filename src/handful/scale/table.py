"""label_table: complete groups in, two tables out; what any engine calls in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from handful.arguments import takes
from handful.scale.labeller import LabelledTables, LabelOptions, TableLabeller
from handful.scale.models import Model


@takes(LabelOptions)
def label_table(
    table: Any,
    model: Model,
    group_by: str | Sequence[str] | None = None,
    **options: Unpack[LabelOptions],
) -> LabelledTables:
    """Label every group of an Arrow table as one joint batch.

    The function has no state. What a group is labelled depends on its rows alone: not on their order, nor on the other
    groups of the table. Rows without a usable vector or group are in the table of items with a reason instead of a
    label, and the other rows of their group are labelled without them.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of complete groups.
    model : path, URL, FittedModel or BatchClassifier
        A file that `BatchClassifier.save` wrote, which every process opens once; or the model itself.
    group_by : str or sequence of str, optional
        The column of the group, or several that together identify it: numbers, text, dates or booleans. By default all
        rows are one group.
    features : str or sequence of str, optional
        The column of vectors (lists of numbers), or one column per dimension. By default the only column of lists, or
        the one with a usual name.
    prior, candidates, expect_unknown : object
        What is known about every group, as in `Known`; the same for all groups.
    keep_features : bool
        Whether the table of items keeps the vectors.
    lineage : bool
        Whether both tables have a column `model` with the hash of the model. The hash, the version of handful and the
        settings are in the metadata of the tables in any case, and Parquet keeps them.
    prefix : str
        Prefix of the new columns, for a table that already has a column of one of these names.

    Returns
    -------
    items : pyarrow.Table
        The rows as they were, without their vectors, and `label`; `certainty`, the chance that it is right; `unknown`,
        the chance that the item has none of the classes (null if the model cannot tell); and `reason`, why there is no
        label (null if there is one).
    groups : pyarrow.Table
        A row for each group and class that may be in it (a chance of at least 0.02, and always the class with most
        items). Columns of the group; `items`, its labelled rows, and `bad_rows`, the others; `joint_weight`;
        `unknown_items`, how many have a chance to be unknown above `unknown_above`; names of `diagnostics`; `class`,
        `expected_count` and `presence`. A group without a labelled row has one row, without a class.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from handful import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> batch = centres[[3] * 6 + [7] * 4 + [11] * 5] + 0.7 * rng.normal(size=(15, 16))
    >>> table = pa.table({"site": ["marsh"] * 10 + ["wood"] * 5, "vector": batch.tolist()})
    >>> items, groups = label_table(table, BatchClassifier().fit(X, y), group_by="site")
    >>> items["label"].to_pylist()
    [3, 3, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 11]
    >>> present = groups.filter(pa.compute.greater(groups["presence"], 0.5))
    >>> present.select(["site", "class"]).to_pydict()
    {'site': ['marsh', 'marsh', 'wood'], 'class': [3, 7, 11]}
    """
    return TableLabeller.of(model, group_by, **options).label(table)
