"""What is streamed: a catalogue, summed by class once, and queries, read in spans of rows and never held whole.

Coordinates have their origin at the mean of the catalogue, as in `handful.frame`: products of vectors that share a
large offset lose the digits in which they differ.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.errors import OptionError, TaskError
from handful.features import FeatureBank, read_bank, store
from handful.features.parquet import copy_vectors
from handful.large.sealed import check_seal, open_sealed, seal
from handful.numerics.distances import unit
from handful.numerics.moments import Moments, labelled_moments
from handful.shapes import Float, Int
from handful.task import TaskBatch
from handful.whole_file import written_whole

# Transforms that need no row but the one they change, by their names in `TRANSFORMS`.
ROW_TRANSFORMS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType({"raw": lambda rows: rows, "l2": unit})
# Rows of the catalogue summed at once, and numbers that such a block may hold.
BLOCK_ROWS, BLOCK_NUMBERS = 16_384, 2**24
# Classes of the catalogue that calibration sees, and about how many of their rows.
SAMPLED_CLASSES, SAMPLED_ROWS = 1024, 65_536
SAMPLED_QUERIES = 1024


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Class means of the support about `origin`, and how many points each is the mean of."""

    means: Float[Tensor, "class dim"]
    shots: Float[Tensor, "class"]
    origin: Float[Tensor, "dim"]
    class_names: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.means)

    def moments(self, classes: Int[Tensor, "kept"]) -> Moments:
        """Return the support's moments of some classes, in double precision, under a task axis of length one."""
        shots = self.shots[classes].double()
        return Moments(shots.unsqueeze(0), (self.means[classes].double() * shots.unsqueeze(-1)).unsqueeze(0))


@dataclass(frozen=True, eq=False)
class Given:
    """An input as it came: what messages call it, a hash of all of it, and how to open it as a bank."""

    called: str
    content: str
    open: Callable[[Path], FeatureBank]


def given(rows: Any, *, role: str) -> Given:
    """Take a bank, a path to one, a Parquet file, a pair (X, y) or, for queries, an array; read all of it once.

    Opening needs the folder of the run: vectors of queries in Parquet, which need no labels, are copied into it once,
    where every process can map them. `role` is "catalogue" or "queries".
    """
    called = "the array of queries" if role == "queries" else "the pair (X, y) of the catalogue"
    if isinstance(rows, FeatureBank):
        bank, called = rows, f"the bank of the {role}"
    elif isinstance(rows, str | os.PathLike):
        file = Path(rows)
        if role == "queries" and file.suffix == ".parquet" and file.is_file():
            content = file_hash(file)
            return Given(str(file), content, partial(_copied, file, content))
        bank, called = read_bank(file), str(file)
    elif isinstance(rows, tuple) and len(rows) == 2:
        names, labels = np.unique(np.asarray(rows[1]), return_inverse=True)
        bank = FeatureBank.from_arrays(rows[0], labels, list(map(str, names.tolist())))
    elif role == "queries":
        bank = _unlabelled(rows)
    else:
        raise TaskError(
            f"the catalogue must be a FeatureBank, a path to one or a pair (X, y), got {type(rows).__name__}; "
            "make one with FeatureBank.from_arrays"
        )
    if not isinstance(rows, str | os.PathLike) and isinstance(bank.stored, np.memmap) and bank.stored.filename:
        called = str(bank.stored.filename)
    return Given(called, content_hash(bank, labelled=role == "catalogue"), lambda _: bank)


def content_hash(bank: FeatureBank, *, labelled: bool) -> str:
    """SHA-256 of all features as they are now, and of labels and class names where they count.

    Computed and not taken from the manifest: files, and arrays in memory, can be changed after a hash was written down.
    """
    digest = store.Digest(bank.dtype, (bank.n_rows, bank.dim), bank.class_names if labelled else ())
    for block in bank.blocks():
        digest.features(block)
    return digest.close(bank.labels if labelled else bank.labels[:0])


def file_hash(file: Path) -> str:
    """SHA-256 of all bytes of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _copied(file: Path, content: str, folder: Path) -> FeatureBank:
    """Map the copy of a Parquet file's vectors, named by the content of the file; make it if it is not there."""
    copy = folder / f"queries-{content[:16]}.npy"
    if copy.exists():
        check_seal(copy)
    else:
        with written_whole(copy) as place:
            copy_vectors([file], place)
            seal(place)
    return _unlabelled(open_sealed(copy))


def _unlabelled(features: Any) -> FeatureBank:
    array = features if isinstance(features, np.ndarray) else np.asarray(features)
    return FeatureBank.from_arrays(array, np.zeros(len(array), np.int32), ["unlabelled"])


def read_rows(bank: FeatureBank, start: int, stop: int, transform: str) -> Float[Tensor, "row dim"]:
    """Rows start … stop-1 in single precision, transformed, in memory."""
    rows = torch.from_numpy(bank.take(np.arange(start, min(stop, bank.n_rows))).astype(np.float32, copy=False))
    if not bool(rows.sum().isfinite()):
        bad = (~rows.isfinite().all(-1)).nonzero()
        if len(bad) > 0:
            raise TaskError(f"row {start + int(bad[0])} has a feature that is not finite; drop or impute such rows")
    return ROW_TRANSFORMS[transform](rows)


def sum_catalogue(bank: FeatureBank, transform: str) -> Catalogue:
    """Stream the catalogue once: class sums, then means about the mean of all points."""
    if transform not in ROW_TRANSFORMS:
        raise OptionError(
            f"transform must be one of {', '.join(ROW_TRANSFORMS)}, which need no row but their own, got {transform!r}"
        )
    sums = torch.zeros(bank.n_classes, bank.dim)
    shots = torch.zeros(bank.n_classes)
    labels = torch.from_numpy(bank.labels.astype(np.int64))
    size = min(BLOCK_ROWS, max(1, BLOCK_NUMBERS // bank.dim))
    for start in range(0, bank.n_rows, size):
        points = read_rows(bank, start, start + size, transform)
        # Classes of this block only: sums of all classes would cost more than the points.
        classes, own = torch.unique(labels[start : start + size], return_inverse=True)
        part = labelled_moments(points.unsqueeze(0), own.unsqueeze(0), None, len(classes))
        sums[classes] += part.sums[0]
        shots[classes] += part.mass[0]
    if bool((shots == 0).any()):
        k = int((shots == 0).nonzero()[0])
        raise TaskError(
            f"every class needs at least one example in the catalogue, but {bank.class_names[k]!r} has none; "
            "add an example, or restrict the bank with .classes(...)"
        )
    origin = (sums.sum(0, dtype=torch.float64) / shots.sum(dtype=torch.float64)).float()
    sums.div_(shots.unsqueeze(-1)).sub_(origin)
    return Catalogue(sums, shots, origin, bank.class_names)


def sampled_task(bank: FeatureBank, catalogue: Catalogue, queries: FeatureBank, transform: str) -> TaskBatch:
    """Pose a small task for calibration: classes spread evenly over the lengths of their means, and some queries.

    The queries matter only where no class has two examples; a spread of rows stands for all.
    """
    affordable = int(SAMPLED_ROWS * catalogue.n_classes / bank.n_rows)
    n_chosen = min(SAMPLED_CLASSES, catalogue.n_classes, max(2, affordable))
    places = torch.linspace(0, catalogue.n_classes - 1, n_chosen).round().long()
    chosen = catalogue.means.square().sum(-1).argsort()[places].sort().values.numpy()
    part = bank.classes(chosen)
    rows = np.unique(np.linspace(0, queries.n_rows - 1, min(SAMPLED_QUERIES, queries.n_rows)).astype(np.int64))
    points = torch.from_numpy(queries.take(rows).astype(np.float32, copy=False))
    change = ROW_TRANSFORMS[transform]
    return TaskBatch.single(
        read_rows(part, 0, part.n_rows, transform), part.labels.astype(np.int64), change(points), n_chosen
    )
