"""AnnData files (`.h5ad`): vectors of cells in `obsm`, labels and groups in `obs`; answers go into a copy of the file.

The copy is made byte by byte and only entries named `handful…` are written into it, so counts, layers, graphs and
everything else stay as they were. Neither is read.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.bank import FeatureBank, Provenance
from handful.banks.carried import Carried
from handful.banks.tables import LABEL_NAMES, NO_LABEL, bank_of, find_column, labelled_rows
from handful.banks.unlabelled import Vectors
from handful.errors import BankError, HandfulError
from handful.machine.extras import import_extra
from handful.machine.untrusted import refuse_irregular, refuse_unfolding, writable
from handful.machine.whole_file import written_whole
from handful.shapes import Float

ENDING = ".h5ad"
# Keys of `obsm` that hold vectors to compare cells by, the most likely first; those of drawings are never meant.
VECTOR_KEYS = ("X_scANVI", "X_scVI", "X_scvi", "X_pca_harmony", "X_harmony", "X_pca")
DRAWING_KEYS = frozenset({"X_umap", "X_tsne", "X_draw_graph_fa", "spatial", "X_spatial"})
CELL_LABEL_NAMES = ("cell_type", "celltype", "cell_type_fine", "cell_ontology_class", "annotation", *LABEL_NAMES)
# What stands for "no label" beside a missing value; scvi-tools writes the last.
NO_CELL_LABEL = (*NO_LABEL, "Unknown")
# Entries of ours begin with this.
OURS = "handful"


def is_h5ad(path: Path) -> bool:
    """Whether a path names an AnnData file, by its ending."""
    return path.suffix.lower() == ENDING


def read_labelled_cells(path: Path, *, features: str | None = None, labels: str | None = None) -> FeatureBank:
    """Read the cells that have a label: vectors of `obsm`, classes of `obs`."""
    with _opened(path) as (read, file):
        frame = read(file["obs"])
        key = _vector_key(file, features, path)
        column = find_column(_foreign(frame), labels, CELL_LABEL_NAMES, "labels", str(path))
        named = _values(frame[column])
        there = labelled_rows(named, f"{path}, column {column!r} of obs", BankError, NO_CELL_LABEL)
        rows = there or list(range(len(named)))
        matrix = _matrix(read, file, key, len(frame), path)[rows]
        made_by = Provenance(dataset=path.name, backbone=f"obsm {key}")
        return bank_of(matrix, [str(named[row]) for row in rows], None, str(path), provenance=made_by)


def read_cells(
    path: Path,
    *,
    features: str | None = None,
    groups: Sequence[str] = (),
    item_column: str | None = None,
    without: str | None = None,
) -> Vectors:
    """Read vectors of `obsm`, names of cells, and columns of `obs`.

    `without` names a column of labels: cells that have one are left out.
    """
    with _opened(path) as (read, file):
        frame = read(file["obs"])
        key = _vector_key(file, features, path)
        columns = {name: _values(frame[name]) for name in _foreign(frame)}
        names = [str(name) for name in frame.index]
        for name in (*groups, *([item_column] if item_column else [])):
            find_column(columns, name, (), "groups" if name in groups else "items", str(path))
        rows: Sequence[int] = range(len(names))
        if without is not None:
            rows = [row for row, label in enumerate(columns[without]) if label in (None, *NO_CELL_LABEL)]
            if not rows:
                raise BankError(f"{path}: every cell has a label in column {without!r}, so there is none to label")
        carried = Carried(columns).of_items(rows)
        values = carried.values()
        named = [names[row] for row in rows] if item_column is None else [str(name) for name in values[item_column]]
        matrix = _matrix(read, file, key, len(names), path)
        return Vectors(
            matrix if without is None else matrix[rows],
            tuple(named),
            backbone=f"obsm {key}",
            groups={name: values[name] for name in groups},
            carried=carried,
            rows=rows,
        )


def label_column(path: Path, labels: str | None) -> str:
    """Return the column of `obs` that holds the labels."""
    with _opened(path) as (read, file):
        return find_column(_foreign(read(file["obs"])), labels, CELL_LABEL_NAMES, "labels", str(path))


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
    pd, elements = import_extra("pandas", "anndata"), import_extra("anndata.io", "anndata")
    class_names = [writable(name) for name in class_names]
    out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(out) as place:
        shutil.copyfile(source, place)
        with _opened(source) as (read, before):
            n_cells = len(read(before["obs"]).index)
        with import_extra("h5py", "anndata").File(place, "r+") as file:
            obs, order = file["obs"], list(file["obs"].attrs["column-order"])
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
    if name in ("label", "runner_up"):
        there = set(whole)
        # As objects: anndata cannot write the text arrays of pandas 3.
        return pd.Categorical(whole, categories=pd.Index([k for k in class_names if k in there], dtype=object))
    if name in ("proposal", "rejected"):
        return pd.array(whole, dtype="Int64" if name == "proposal" else "boolean")
    return np.array([np.nan if value is None else value for value in whole], dtype=np.float64)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a reader of elements and the open file; whatever is wrong with the file is a BankError."""
    elements, h5py = import_extra("anndata.io", "anndata"), import_extra("h5py", "anndata")
    if not path.exists():
        raise BankError(f"{path} does not exist; check the path")
    refuse_irregular(path, BankError)
    try:
        with h5py.File(path, "r") as file:
            if not isinstance(file.get("obs"), h5py.Group):
                raise BankError(
                    f"{path} has no group 'obs', as AnnData files have since 0.7; read and write it with anndata"
                )
            _refuse_other_files(h5py, file, path)

            def read(element: Any) -> Any:
                refuse_unfolding(f"the file of {element.name}", path.stat().st_size, _bytes_of(h5py, element))
                return elements.read_elem(element)

            yield read, file
    except HandfulError:
        raise
    except Exception as error:  # HDF5 and anndata raise nearly anything about a damaged file
        raise BankError(
            f"{path} cannot be read as AnnData ({type(error).__name__}: {error}); it is cut short or of another kind"
        ) from error


def _refuse_other_files(h5py: Any, file: Any, path: Path) -> None:
    """Refuse contents that lie in other files: they would put bytes of any file of this machine into the answers."""
    inside = (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT)

    def outside(name: str, thing: Any) -> str | None:
        return name if isinstance(thing, h5py.Dataset) and (thing.external or thing.is_virtual) else None

    # Everything is looked at, because a soft link or a reference can lead anywhere in the file.
    root = file["/"]
    linked = root.id.links.visit(lambda name, info: None if info.type in inside else name.decode(), info=True)
    if found := linked or file.visititems(outside):
        raise BankError(f"{path}: {found!r} is stored in another file, which is not followed; copy it into this file")


def _bytes_of(h5py: Any, element: Any) -> int:
    """Return how many bytes an element takes in memory, a sparse matrix as a dense one."""
    if isinstance(element, h5py.Dataset):
        return int(element.nbytes)
    rows_and_columns = map(int, np.atleast_1d(element.attrs["shape"])) if "shape" in element.attrs else (0,)
    return 8 * math.prod(rows_and_columns) + sum(_bytes_of(h5py, element[name]) for name in element)


def _foreign(frame: Any) -> list[str]:
    """Columns of `obs` that are not answers of an earlier run."""
    return [name for name in frame.columns if not name.startswith(f"{OURS}_")]


def _vector_key(file: Any, asked: str | None, path: Path) -> str:
    there = [key for key in file.get("obsm", ()) if not key.startswith(f"{OURS}_")]
    if asked is None:
        useful = [key for key in there if key not in DRAWING_KEYS]
        likely = [key for key in VECTOR_KEYS if key in useful]
        if likely or len(useful) == 1:
            return (likely or useful)[0]
    elif asked in there:
        return asked
    raise BankError(
        f"{path} has {'no vectors that are told by their name' if asked is None else f'no vectors {asked!r}'} in obsm; "
        f"it has {', '.join(there) or 'none'}: name one with `features`, or compute some first (a PCA, scVI)"
    )


def _matrix(read: Any, file: Any, key: str, n_cells: int, path: Path) -> Float[np.ndarray, "row dim"]:
    found = read(file["obsm"][key])
    matrix = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or 0 in matrix.shape or len(matrix) != n_cells:
        raise BankError(
            f"{path}: obsm {key!r} must hold one vector for each of {n_cells} cells, got {matrix.dtype} of shape "
            f"{matrix.shape}"
        )
    return matrix.astype(np.float32, copy=False)


def _values(column: Any) -> list[Any]:
    """Return a column of a data frame as plain values, None where one is missing."""
    missing = column.isna().to_numpy()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]
