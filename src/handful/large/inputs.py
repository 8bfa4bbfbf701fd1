"""What is streamed: a catalogue, summed by class once, and queries, read in spans of rows and never held whole.

Coordinates have their origin at the mean of the catalogue, as in `handful.frame`: products of vectors that share a
large offset lose the digits in which they differ.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from handful.errors import OptionError, TaskError
from handful.features import FeatureBank, read_bank
from handful.features.parquet import copy_vectors
from handful.numerics.distances import unit
from handful.numerics.magnitude import magnitudes, squares_fit
from handful.numerics.moments import Moments, labelled_moments
from handful.shapes import Float, Int
from handful.task import TaskBatch

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


def as_bank(rows: Any, folder: Path, *, role: str) -> FeatureBank:
    """Take a bank, a path to one, a Parquet file, a pair (X, y) or, for queries, an array.

    Queries in Parquet need no labels; their vectors are copied once into `folder`, where every process can map them.
    """
    if isinstance(rows, FeatureBank):
        return rows
    if isinstance(rows, str | os.PathLike):
        place = Path(rows)
        if role == "query" and place.suffix == ".parquet":
            copy = folder / "queries.npy"
            if not copy.exists():
                copy_vectors([place], copy)
            return _unlabelled(np.load(copy, mmap_mode="r"))
        return read_bank(place)
    if isinstance(rows, tuple) and len(rows) == 2:
        names, labels = np.unique(np.asarray(rows[1]), return_inverse=True)
        return FeatureBank.from_arrays(rows[0], labels, list(map(str, names.tolist())))
    if role == "query":
        return _unlabelled(rows)
    raise TaskError(
        f"the catalogue must be a FeatureBank, a path to one or a pair (X, y), got {type(rows).__name__}; "
        "make one with FeatureBank.from_arrays"
    )


def _unlabelled(features: Any) -> FeatureBank:
    array = features if isinstance(features, np.ndarray) else np.asarray(features)
    return FeatureBank.from_arrays(array, np.zeros(len(array), np.int32), ["unlabelled"])


def read_rows(bank: FeatureBank, start: int, stop: int, transform: str) -> Float[Tensor, "row dim"]:
    """Rows start … stop-1 in single precision, transformed, in memory.

    Features that single precision cannot hold, or cannot square where nothing is applied to them, are refused.
    """
    rows = torch.from_numpy(bank.take(np.arange(start, min(stop, bank.n_rows))).astype(np.float32, copy=False))
    sizes = magnitudes(rows)
    largest = float(sizes.max())
    if not math.isfinite(largest):
        bad = start + int((~sizes.isfinite()).nonzero()[0])
        raise TaskError(f"row {bad} has a feature that is not finite; drop or impute such rows")
    least, most = (torch.finfo(rows.dtype).tiny, math.inf) if transform != "raw" else squares_fit(rows.dtype)
    # Sums over rows are squared as well.
    if 0 < largest < least or largest > most / BLOCK_ROWS:
        raise TaskError(
            f"the longest of the rows {start} … {start + len(rows) - 1} has the length {largest:.2g}: single precision "
            "cannot hold its square, or has lost digits of it; use transform='l2', or multiply all features by a "
            "number that brings them near one"
        )
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


def fingerprint(bank: FeatureBank) -> str:
    """Return the recorded content hash, or else one of the shape and of three blocks: enough to tell banks apart."""
    if bank.recorded_hash is not None:
        return bank.recorded_hash
    digest = hashlib.sha256(repr((bank.n_rows, bank.dim, bank.dtype, bank.n_classes)).encode())
    for start in sorted({0, bank.n_rows // 2, max(0, bank.n_rows - 256)}):
        digest.update(np.ascontiguousarray(bank.take(np.arange(start, min(start + 256, bank.n_rows)))).tobytes())
    digest.update(np.ascontiguousarray(bank.labels).tobytes())
    return digest.hexdigest()
