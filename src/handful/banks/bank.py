"""FeatureBank: one feature vector and one label per row, with the class names and where they all came from."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from handful.banks import store
from handful.errors import BankError
from handful.shapes import Float, Int

# Rows handled at once when a bank is streamed: 8 MB for 512 dimensions of float32.
BLOCK_ROWS = 4096
# A mapping larger than this gives its pages back after each block, so that a bank larger than memory keeps nothing
# resident.
KEEP_MAPPED_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Provenance:
    """Where a bank came from.

    Attributes
    ----------
    dataset, licence, encoder, preprocessing : str
        In words: enough to make the bank again, and to know how it may be used.
    versions : Mapping[str, str]
        Packages that took part, and their versions.
    notes : str
        Anything else a user should know.

    Examples
    --------
    >>> Provenance(dataset="photographs of our shelves", licence="ours").to_mapping()["dataset"]
    'photographs of our shelves'
    """

    dataset: str = ""
    licence: str = ""
    encoder: str = ""
    preprocessing: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""

    @classmethod
    def from_mapping(cls, entries: Mapping[str, Any]) -> Provenance:
        """Make one from a mapping, as in manifests; entries that are not fields are added to the notes."""
        known = {f.name for f in fields(cls)}
        # Lists of other people call the encoder so.
        entries = {"encoder" if name == "backbone" else name: value for name, value in entries.items()}
        texts = {name: str(value) for name, value in entries.items() if name in known - {"versions"}}
        versions = entries.get("versions") or {}
        extra = "\n".join(f"{name}: {value}" for name, value in entries.items() if name not in known)
        notes = "\n".join(part for part in (texts.pop("notes", ""), extra) if part)
        return cls(**texts, versions={str(k): str(v) for k, v in dict(versions).items()}, notes=notes)

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields as plain values, fit for JSON."""
        return {**asdict(self), "versions": dict(self.versions)}


@dataclass(frozen=True, eq=False, repr=False)
class FeatureBank:
    """Features with labels, class names, provenance and splits by class.

    Made by `from_arrays`, `load` or `handful.read_bank`. Features of a loaded bank stay on disk, mapped into memory; a
    bank restricted to some classes stores row numbers and shares the features.

    Attributes
    ----------
    stored : Float[ndarray, "stored dim"]
        Features as stored in memory or on disk, float16 or float32; may include rows that are not in this bank.
    labels : Int[ndarray, "row"]
        Class of each row, 0 … n_classes-1.
    class_names : tuple of str
        Name of each class.
    provenance : Provenance
        Where it came from.
    splits : Mapping[str, tuple of int]
        Classes of each named split, for instance base, validation and test.
    rows : Int[ndarray, "row"] or None
        Which of the stored rows belong to this bank, in order; None means all.
    recorded_hash : str or None
        The content hash in the manifest, if the bank was loaded and not restricted.

    Examples
    --------
    >>> bank = FeatureBank.from_arrays([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]], [0, 1, 0], ["ant", "bee"])
    >>> bank
    FeatureBank(3 rows, 2 dimensions of float32, 2 classes)
    >>> bank.classes([1]).take([0])
    array([[2., 2.]], dtype=float32)
    """

    stored: Float[np.ndarray, "stored dim"]
    labels: Int[np.ndarray, "row"]
    class_names: tuple[str, ...]
    provenance: Provenance
    splits: Mapping[str, tuple[int, ...]]
    rows: Int[np.ndarray, "row"] | None = None
    recorded_hash: str | None = None

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        labels: Any,
        class_names: Sequence[str],
        *,
        provenance: Provenance | None = None,
        splits: Mapping[str, Sequence[int]] | None = None,
    ) -> FeatureBank:
        """Make a bank from features [row, dim], labels [row] and the name of each class.

        float16 and float32 features are kept as they are and not copied, so a memory map stays one; other numbers
        become float32.
        """
        array = features if isinstance(features, np.ndarray) else np.asarray(features)
        if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
            raise BankError(
                f"features must be numbers with the axes (row, dim), got {array.dtype} of shape {array.shape}; "
                "flatten or average other axes first"
            )
        if array.dtype not in map(np.dtype, store.FEATURE_TYPES):
            array = _in_single_precision(array)
        names = tuple(map(str, class_names))
        return cls(
            array,
            _checked_labels(np.asarray(labels), len(array), len(names)),
            names,
            provenance or Provenance(),
            _checked_splits(splits or {}, len(names)),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeatureBank:
        """Open a bank that `save` wrote; features are mapped, not read."""
        features, labels, manifest = store.open_folder(path)
        names = tuple(manifest["class_names"])
        try:
            if len(features) != len(labels):
                raise BankError(f"{len(features)} feature rows but {len(labels)} labels")
            return cls(
                features,
                _checked_labels(labels, len(labels), len(names)),
                names,
                Provenance.from_mapping(manifest["provenance"]),
                _checked_splits(manifest["splits"], len(names)),
                recorded_hash=manifest["content_hash"],
            )
        except (TypeError, ValueError, AttributeError, RecursionError) as error:  # a manifest can hold anything
            raise BankError(f"the bank {path} contradicts itself: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> FeatureBank:
        """Write the bank as a new folder, complete or not at all, and return it as loaded from there."""
        store.write(
            path,
            self._finite_blocks(),
            self.labels,
            dtype=self.dtype,
            dim=self.dim,
            class_names=self.class_names,
            provenance=self.provenance.to_mapping(),
            splits=self.splits,
        )
        return FeatureBank.load(path)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.stored.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def dtype(self) -> str:
        """`float16` or `float32`."""
        return self.stored.dtype.name

    @property
    def features(self) -> Float[np.ndarray, "row dim"]:
        """All features; a copy where the bank is restricted to some of the stored rows."""
        return self.stored if self.rows is None else self.stored[self.rows]

    @property
    def class_sizes(self) -> Int[np.ndarray, "class"]:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    def take(self, rows: Any) -> Float[np.ndarray, "*index dim"]:
        """`features[rows]`, for row numbers in an array of any shape, in the bank's dtype and in memory."""
        wanted = np.asarray(rows)
        flat = wanted.reshape(-1)
        if len(flat) and not 0 <= flat.min() <= flat.max() < self.n_rows:
            raise BankError(f"rows must lie in 0 … {self.n_rows - 1}, got {flat.min()} … {flat.max()}")
        flat = flat if self.rows is None else self.rows[flat]
        out = np.empty((len(flat), self.dim), self.stored.dtype)
        self._advise("MADV_RANDOM")  # rows are scattered: do not read ahead
        for start in range(0, len(flat), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            np.take(self.stored, flat[part], axis=0, out=out[part], mode="clip")  # checked; "raise" would copy twice
            self._advise("MADV_DONTNEED")
        return out.reshape(*wanted.shape, self.dim)

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Float[np.ndarray, "row dim"]]:
        """Yield all features in order, `size` rows at a time, each block in memory."""
        for start in range(0, self.n_rows, size):
            rows = slice(start, start + size)
            if self.rows is not None:
                yield np.asarray(self.stored[self.rows[rows]])
            else:
                self._advise("MADV_SEQUENTIAL")
                yield np.array(self.stored[rows])
            self._advise("MADV_DONTNEED")

    def classes(self, indices: Sequence[int] | Int[np.ndarray, "class"]) -> FeatureBank:
        """Restrict to these classes, renumbered in the order given; features are shared, splits are dropped."""
        chosen = np.asarray(indices, dtype=np.int64).reshape(-1)
        if len(np.unique(chosen)) != len(chosen) or (chosen < 0).any() or (chosen >= self.n_classes).any():
            raise BankError(
                f"classes must be distinct numbers in 0 … {self.n_classes - 1}, got {chosen.tolist()[:20]}; "
                "see class_names for what there is"
            )
        renamed = np.full(self.n_classes, -1, dtype=self.labels.dtype)
        renamed[chosen] = np.arange(len(chosen))
        labels = renamed[self.labels]
        kept = np.flatnonzero(labels >= 0)
        names = tuple(self.class_names[k] for k in chosen)
        rows = kept if self.rows is None else self.rows[kept]
        return FeatureBank(self.stored, labels[kept], names, self.provenance, MappingProxyType({}), rows)

    def without_empty_classes(self) -> FeatureBank:
        """Leave out classes without rows."""
        return self.classes(np.flatnonzero(self.class_sizes)) if 0 in self.class_sizes else self

    def split(self, name: str) -> FeatureBank:
        """Restrict to the classes of a split."""
        if name not in self.splits:
            there = ", ".join(self.splits) or "none"
            raise BankError(f"the bank has no split {name!r}; it has {there}")
        return self.classes(self.splits[name])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of features, labels and class names: as recorded if loaded and not restricted, else computed once."""
        return self.recorded_hash or self._computed_hash()

    def verify(self) -> str:
        """Read everything; refuse values that are not finite and content that was changed. Return the hash."""
        found = self._computed_hash()
        if self.recorded_hash not in (None, found):
            raise BankError(
                f"the content hash is {found} but the manifest says {self.recorded_hash}: the files were changed or "
                "damaged since they were written; copy or make the bank again"
            )
        return found

    def __repr__(self) -> str:
        return f"FeatureBank({self.n_rows} rows, {self.dim} dimensions of {self.dtype}, {self.n_classes} classes)"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle mapped features as the path of their file, so that a process on the same disk maps it again."""
        state = {name: self.__dict__[name] for name in (f.name for f in fields(self))}
        array = self.stored
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and array.filename is not None:
            state["stored"] = partial(np.memmap, str(array.filename), array.dtype.str, "r", array.offset, array.shape)
        return {**state, "splits": dict(self.splits)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["stored"], partial):
            state["stored"] = state["stored"]()
        self.__dict__.update(state, splits=MappingProxyType(state["splits"]))

    def _computed_hash(self) -> str:
        digest = store.Digest(self.dtype, (self.n_rows, self.dim), self.class_names)
        for block in self._finite_blocks():
            digest.features(block)
        return digest.close(self.labels)

    def _finite_blocks(self) -> Iterator[Float[np.ndarray, "row dim"]]:
        start = 0
        for block in self.blocks():
            bad = ~np.isfinite(block).all(axis=1)
            if bad.any():
                row = start + int(bad.argmax())
                raise BankError(
                    f"row {row} has a feature that is not finite; drop the row, or use float32 where float16 overflows"
                )
            start += len(block)
            yield block

    def _advise(self, advice: str) -> None:
        """Tell the system how a large mapping is used; DONTNEED gives its pages back, but they stay in the cache."""
        mapping: Any = self.stored.base
        large = isinstance(mapping, mmap.mmap) and len(mapping) > KEEP_MAPPED_BYTES
        # A private mapping (mode "c") would lose what was written to it.
        if large and getattr(self.stored, "mode", "c") != "c" and hasattr(mmap, advice):
            mapping.madvise(getattr(mmap, advice))


def _checked_labels(labels: np.ndarray, n_rows: int, n_classes: int) -> Int[np.ndarray, "row"]:
    if labels.shape != (n_rows,) or labels.dtype.kind not in "iu":
        raise BankError(
            f"labels must be one whole number for each of the {n_rows} rows, got {labels.dtype} of shape "
            f"{labels.shape}; encode names first, for instance with numpy.unique(names, return_inverse=True)"
        )
    if n_rows == 0:
        raise BankError("a bank needs at least one row")
    low = int(labels.min())
    high = int(labels.max())
    if low < 0 or high >= n_classes:
        raise BankError(
            f"labels must lie in 0 … {n_classes - 1}, one number for each of the {n_classes} class names, "
            f"got {low} … {high}; renumber them or name every class"
        )
    return labels.astype(np.int32, copy=False)


def _checked_splits(splits: Mapping[str, Sequence[int]], n_classes: int) -> Mapping[str, tuple[int, ...]]:
    checked = {}
    for name, classes in splits.items():
        numbers = tuple(int(k) for k in classes)
        if any(not 0 <= k < n_classes for k in numbers) or len(set(numbers)) != len(numbers):
            raise BankError(f"split {name!r} must list distinct classes in 0 … {n_classes - 1}, got {numbers[:20]}")
        checked[str(name)] = numbers
    return MappingProxyType(checked)


def _in_single_precision(array: np.ndarray) -> Float[np.ndarray, "row dim"]:
    """Convert, unless single precision would turn finite numbers into infinity or zero."""
    least = float(np.finfo(np.float32).tiny)
    most = float(np.finfo(np.float32).max)
    largest = float(np.abs(array).max(initial=0))
    if most < largest < np.inf or 0 < largest < least:
        raise BankError(
            f"features reach {largest:.2g}, and a bank stores them in single precision, between {least:.2g} and "
            f"{most:.2g}; multiply them all by a number that brings them near one"
        )
    return array.astype(np.float32)
