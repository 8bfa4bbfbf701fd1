"""label: a frame in which some rows have a label, to the same frame in which the others have one too."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handful.classification.frame_columns import refuse_other, values_in, with_columns
from handful.classification.steps import embed, label_batch
from handful.classification.task import Inputs, check
from handful.errors import OptionError, SkippedRowsWarning
from handful.estimators.answer import item_columns
from handful.extraction.options import Reading, asked_of
from handful.progress import Progress, bars
from handful.reading.class_names import is_missing, plain_label
from handful.reading.contents import FolderFiles
from handful.reading.header import LABEL_NAMES, find_column
from handful.reading.in_hand import WHERE, columns_in_hand
from handful.reading.labels import parted
from handful.reading.read import read_input, without_gaps
from handful.reading.table import Table, warn_of_skipped

# Columns that are added to the frame.
CERTAINTY = "certainty"
UNKNOWN = "unknown"
REASON = "reason"


def label(
    frame: Any,
    *,
    label: str | None = None,
    text: str | None = None,
    path: str | None = None,
    vector: str | None = None,
    columns: Sequence[str] | None = None,
    group_by: str | Sequence[str] | None = None,
    encoder: str | None = None,
    unknown: str | None = None,
    missing: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Any:
    """Fill in the labels that are blank: rows with a label are the examples, the others are labelled jointly.

    Parameters
    ----------
    frame : DataFrame or Table
        Of pandas, polars or Arrow. It is not changed.
    label : str, optional
        Column of the labels, by default one with a usual name, such as `label`. Rows where it is blank are labelled.
    text, path, vector : str, optional
        Column of texts, of paths of images or of vectors. By default one with a usual name: `text`, `path`, `vector`.
    columns : sequence of str, optional
        Columns of measurements, such as height and width. Each is scaled by its mean and spread over the examples.
    group_by : str or sequence of str, optional
        Column, or several, that say which rows belong together, such as a day. Each group is labelled on its own.
    encoder : str, optional
        What makes vectors of texts or images, see `handful.extraction.load_encoder`.
    unknown : str, optional
        The label of rows that look like none of the classes. By default they get the closest class.
    missing : {"mean"}, optional
        Fill missing numbers with the mean of the examples' column. By default such rows are left out.
    on_progress : callable, optional
        Called with a `handful.progress.Progress`. By default a bar is shown if it takes long.

    Returns
    -------
    DataFrame or Table
        The same rows in the same order, with the same index, and every label that was there. Columns are added:

        - `certainty`: the chance that a label that was filled in is right;
        - `unknown`: the chance that the row belongs to none of the classes;
        - `reason`: why a row was left out, such as a blank text or a photograph that cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> from handful import label
    >>> frame = pd.DataFrame(
    ...     {
    ...         "petal": [1.4, 1.3, 4.7, 4.5, 1.5, 4.4, None],
    ...         "sepal": [5.1, 4.7, 7.0, 6.4, 5.0, 6.6, 5.2],
    ...         "species": ["setosa", "setosa", "versicolor", "versicolor", None, None, None],
    ...     }
    ... )
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = label(frame, label="species", columns=["petal", "sepal"])
    >>> found["species"].tolist()[4:6]
    ['setosa', 'versicolor']
    >>> found["reason"][6]
    "it must have a number in column 'petal', got None"
    """
    refuse_other(frame, (CERTAINTY, UNKNOWN, REASON))
    there = columns_in_hand(frame)
    assert there is not None
    column = find_column(there, label, LABEL_NAMES, "labels", "the frame")
    values = values_in(frame, column)
    reading: Reading = {"labels": column, "encoder": encoder, "missing": missing, "skip_bad": True}
    of_items = {name: one for name, one in there.items() if name != column}
    table = _read(of_items, reading, {"text": text, "path": path, "vector": vector}, columns)
    left_out = table.skipped
    named = [None if is_missing(one) else str(plain_label(str(one))) for one in values]
    table = replace(table, columns={**table.columns, column: [named[row] for row in table.rows]}, skipped=())
    examples, batch = parted(table, column)
    as_given = dict(zip(named, values, strict=True))
    certainty = list[float | None]([None] * len(values))
    unknowns = list[float | None]([None] * len(values))
    if batch.n_rows:
        with bars("label", on_progress) as listener:
            task = check(Inputs(examples, batch, reading=reading), group_by=group_by, unknown=unknown)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SkippedRowsWarning)  # one warning is about all rows
                fitted = embed(task, on_progress=listener)
            found = item_columns(label_batch(fitted, on_progress=listener))
        for place, row in enumerate(fitted.batch.rows):
            values[row] = as_given.get(found["label"][place], found["label"][place])
            certainty[row] = float(found["certainty"][place])
            unknowns[row] = float(found["unknown"][place])
        left_out += fitted.batch.skipped + fitted.skipped_examples
    reasons = {one.row: one for one in left_out}
    warn_of_skipped("the frame", [reasons[row] for row in sorted(reasons)], len(values))
    said = [reasons[row].reason if row in reasons else None for row in range(len(values))]
    numbers = {CERTAINTY: certainty, UNKNOWN: unknowns}
    return with_columns(frame, column, values, numbers, {REASON: said})


def _read(
    of_items: Mapping[str, list[Any]], reading: Reading, named: dict[str, str | None], columns: Sequence[str] | None
) -> Table:
    """Read what a row is; rows that have no text, path or numbers are left out and listed."""
    asked = {name: one for name, one in (*named.items(), ("columns", columns)) if one is not None}
    if len(asked) > 1:
        raise OptionError(f"say in one way what a row is: text, path, vector or columns; got {' and '.join(asked)}")
    if columns is not None and (isinstance(columns, str) or any("," in name for name in columns)):
        raise OptionError(f"columns must be a list of names without commas, got {columns!r}")
    for name in columns or (one for one in named.values() if one is not None):
        find_column(of_items, name, (), "rows", WHERE)
    reading["text"] = named["text"]
    reading["features"] = ",".join(columns) if columns is not None else named["vector"]
    path = named["path"]
    if path is None:
        return read_input(of_items, asked_of(reading))
    # Other columns may look like texts or vectors.
    table = without_gaps(Table(WHERE, len(of_items[path]), columns=of_items), path)
    lost = {row: "there is no such file" for row, one in enumerate(table.values(path)) if not os.path.isfile(one)}
    table = table.without(lost, "no file")
    names = tuple(table.values(path))
    return replace(table, names=names, images=FolderFiles(Path(), names))
