"""AnnData files (`.h5ad`): vectors of cells in `obsm`, labels and groups in `obs`; nothing else is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.bank import Provenance
from handful.errors import BankError, HandfulError
from handful.machine.extras import import_extra
from handful.machine.untrusted import Budget, absent, refuse_irregular, unreadable, with_type
from handful.reading.class_names import NO_LABEL
from handful.reading.header import LABEL_NAMES, Asked
from handful.reading.table import Table
from handful.shapes import Float

# Keys of `obsm` that hold vectors to compare cells by, the most likely first; those of drawings are never meant.
VECTOR_KEYS = ("X_scANVI", "X_scVI", "X_scvi", "X_pca_harmony", "X_harmony", "X_pca")
DRAWING_KEYS = frozenset({"X_umap", "X_tsne", "X_draw_graph_fa", "spatial", "X_spatial"})
CELL_LABEL_NAMES = ("cell_type", "celltype", "cell_type_fine", "cell_ontology_class", "annotation", *LABEL_NAMES)
# What stands for "no label" beside a missing value; scvi-tools writes the last.
NO_CELL_LABEL = (*NO_LABEL, "Unknown")
# Entries of ours begin with this.
OURS = "handful"


def read_cells(path: Path, asked: Asked) -> Table:
    """Read vectors of `obsm`, names of cells, and columns of `obs`."""
    with opened_cells(path) as (read, file):
        frame = read(file["obs"])
        key = _vector_key(file, asked.features, path)
        return Table(
            str(path),
            len(frame),
            vectors=_matrix(read, file, key, len(frame), path),
            columns={name: _values(frame[name]) for name in _foreign(frame)},
            names=tuple(map(str, frame.index)),
            label_names=CELL_LABEL_NAMES,
            no_label=NO_CELL_LABEL,
            provenance=Provenance(dataset=path.name, encoder=f"obsm {key}"),
        )


@contextmanager
def opened_cells(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a reader of elements and the open file; whatever is wrong with the file is a BankError."""
    elements = import_extra("anndata.io", "anndata")
    h5py = import_extra("h5py", "anndata")
    if not path.exists():
        raise absent(path, BankError)
    refuse_irregular(path, BankError)
    try:
        with h5py.File(path, "r") as file:
            if not isinstance(file.get("obs"), h5py.Group):
                raise BankError(
                    f"{path} has no group 'obs', as AnnData files have since 0.7; read and write it with anndata"
                )
            _refuse_other_files(h5py, file, path)
            budget = Budget.of(path)

            def read(element: Any) -> Any:
                budget.spend(_bytes_of(h5py, element))
                return elements.read_elem(element)

            yield read, file
    except HandfulError:
        raise
    except Exception as error:  # HDF5 and anndata raise nearly anything about a damaged file
        raise unreadable(path, "AnnData", with_type(error)) from error


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
    if not there:
        raise BankError(f"{path} has no vectors in obsm; compute some first (a PCA, scVI)")
    missing = f"one of {', '.join(VECTOR_KEYS)}" if asked is None else repr(asked)
    raise BankError(
        f"{path} must have {missing} in obsm, got {', '.join(there)}; choose one of these with `features`, or compute "
        "others first (a PCA, scVI)"
    )


def _matrix(read: Any, file: Any, key: str, n_cells: int, path: Path) -> Float[np.ndarray, "row dim"]:
    found = read(file["obsm"][key])
    matrix = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or 0 in matrix.shape or len(matrix) != n_cells:
        raise BankError(
            f"{path}: obsm {key!r} must have one vector for each of {n_cells} cells, got {matrix.dtype} of shape "
            f"{matrix.shape}"
        )
    return matrix.astype(np.float32, copy=False)


def _values(column: Any) -> list[Any]:
    """Return a column of a data frame as plain values, None where one is missing."""
    missing = column.isna().to_numpy()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]
