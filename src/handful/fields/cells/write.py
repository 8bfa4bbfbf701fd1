"""AnnData files (`.h5ad`): answers go into a copy of the file.

The copy is made byte by byte and only entries named `handful…` are written into it, so counts, layers, graphs and
everything else stay as they were. Neither is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from handful.fields.cells.read import OURS, opened_cells
from handful.machine.extras import import_extra
from handful.machine.outputs import written_whole
from handful.machine.untrusted import writable
from handful.shapes import Float
from handful.version import __version__

if TYPE_CHECKING:
    from handful.estimators import Answer

# Columns of classes; a rejected cell may have the label of unknown ones.
TEXTS = ("label", "runner_up", "coarse", "sure_label")


# Columns of the predictions that a file of cells has already: the position and name of a cell.
IN_FRONT = ("row", "item")


def write_cells(found: Answer, out: Path) -> None:
    """Write the labels of `found` into a copy of the `.h5ad` file that the cells came from."""
    from handful.classification.labelled import about_of, class_names, column_types, predictions
    from handful.estimators.answer import kept_probabilities

    about = about_of(found)
    batch = about.batch
    table = predictions(found)
    columns = {name: table[name] for name in column_types(found) if name not in IN_FRONT}
    done = {
        "version": __version__,
        "vectors": about.encoder,
        "examples": about.n_examples,
        "group_by": np.array(about.group_by, dtype=object),
    }
    assert batch.source is not None
    probabilities = kept_probabilities(found)
    write_labelled_cells(batch.source, out, batch.rows, columns, class_names(found), probabilities, done)


def write_labelled_cells(
    source: Path,
    out: Path,
    rows: Sequence[int],
    columns: Mapping[str, Sequence[Any]],
    class_names: Sequence[str],
    table: Float[np.ndarray, "item class"] | None,
    about: Mapping[str, Any],
) -> None:
    """Copy `source` to `out`, which may be the same, and add columns to `obs`, `table` to `obsm` and `about` to `uns`.

    `rows` are the cells that were labelled; others have missing values in the new columns. The file appears complete or
    not at all.
    """
    pd = import_extra("pandas", "anndata")
    elements = import_extra("anndata.io", "anndata")
    class_names = [writable(name) for name in class_names]
    with written_whole(out) as copy:
        shutil.copyfile(source, copy)
        with opened_cells(source) as (read, before):
            n_cells = len(read(before["obs"]).index)
        with import_extra("h5py", "anndata").File(copy, "r+") as file:
            obs = file["obs"]
            order = list(file["obs"].attrs["column-order"])
            for name, values in columns.items():
                ours = f"{OURS}_{name}"
                elements.write_elem(obs, ours, _column(pd, name, values, rows, n_cells, class_names))
                order = [*(other for other in order if other != ours), ours]
            obs.attrs["column-order"] = np.array(order, dtype=object)
            if table is not None:
                whole = np.full((n_cells, table.shape[1]), np.nan, np.float32)
                whole[np.asarray(rows, dtype=np.int64)] = table
                elements.write_elem(file.require_group("obsm"), f"{OURS}_probabilities", whole)
            noted = {**about, "classes": np.array(class_names, dtype=object)}
            elements.write_elem(file.require_group("uns"), OURS, noted)


def _column(
    pd: Any, name: str, values: Sequence[Any], rows: Sequence[int], n_cells: int, class_names: Sequence[str]
) -> Any:
    """Return the values of the labelled cells among those of all cells."""
    whole: list[Any] = [None] * n_cells
    for row, value in zip(rows, values, strict=True):
        whole[row] = writable(value) if isinstance(value, str) else value
    if name in TEXTS:
        there = dict.fromkeys(value for value in whole if value is not None)
        ordered = [*(k for k in class_names if k in there), *sorted(there.keys() - set(class_names))]
        # As objects: anndata cannot write the text arrays of pandas 3.
        return pd.Categorical(whole, categories=pd.Index(ordered, dtype=object))
    if name in ("proposal", "rejected"):
        return pd.array(whole, dtype="Int64" if name == "proposal" else "boolean")
    return np.array([np.nan if value is None else value for value in whole], dtype=np.float64)
