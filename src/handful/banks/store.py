"""The bank on disk: a folder with `features.npy`, `labels.npy` and `manifest.json`, which describes and hashes them.

The folder is written under another name and renamed when complete, so a killed write leaves nothing that loads; the
next write of a bank of that name removes what it left. Opening maps the features into memory without reading them; it
only checks that shapes and dtypes are those of the manifest. The content hash is the SHA-256 of one JSON line (dtype,
shape, class names), the features row by row and the labels as 32-bit integers, all little-endian.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.banks.arrays import open_npy
from handful.errors import BankError
from handful.machine.outputs import explain_refusal, flush_to_disk
from handful.machine.untrusted import read_json
from handful.shapes import Float, Int

FORMAT = "handful feature bank"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
FEATURE_TYPES = ("float16", "float32")
LABEL_TYPE = "int32"


class Digest:
    """The content hash, fed block by block."""

    def __init__(self, dtype: str, shape: tuple[int, int], class_names: Sequence[str]) -> None:
        head = json.dumps([dtype, list(shape), list(class_names)], ensure_ascii=True)
        self._sha = hashlib.sha256(head.encode("ascii") + b"\n")
        self._dtype = np.dtype(dtype).newbyteorder("<")

    def features(self, block: Float[np.ndarray, "row dim"]) -> memoryview:
        """Add the next rows; return their bytes as hashed."""
        data = np.ascontiguousarray(block, dtype=self._dtype).view(np.uint8).data
        self._sha.update(data)
        return data

    def close(self, labels: Int[np.ndarray, "row"]) -> str:
        """Add the labels and return the hash."""
        self._sha.update(np.ascontiguousarray(labels, dtype="<i4").data)
        return self._sha.hexdigest()


def write(
    path: str | os.PathLike[str],
    blocks: Iterable[Float[np.ndarray, "row dim"]],
    labels: Int[np.ndarray, "row"],
    *,
    dtype: str,
    dim: int,
    class_names: Sequence[str],
    provenance: Mapping[str, Any],
    splits: Mapping[str, Sequence[int]],
) -> str:
    """Write a bank whose features come in blocks of rows; return its content hash.

    The folder appears under its name in one step, complete and flushed to disk, or not at all.
    """
    final = Path(os.path.abspath(path))
    if final.exists():
        raise BankError(f"{path} already exists; a bank is never overwritten: remove it, or choose another name")
    prefix = f".{final.name}.partial-"
    with explain_refusal(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent))
    try:
        shape = (len(labels), dim)
        digest = Digest(dtype, shape, class_names)
        header = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": shape}
        with (partial / "features.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(digest.features(block))
        with (partial / "labels.npy").open("wb") as file:
            np.save(file, np.ascontiguousarray(labels, dtype="<i4"), allow_pickle=False)
        content_hash = digest.close(labels)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "content_hash": content_hash,
            "features": {"file": "features.npy", "shape": list(shape), "dtype": dtype},
            "labels": {"file": "labels.npy", "shape": [len(labels)], "dtype": LABEL_TYPE},
            "provenance": dict(provenance),
            "splits": {name: list(map(int, classes)) for name, classes in splits.items()},
            "class_names": list(class_names),
        }
        # Written last: without it the folder is not a bank. Half a character in a name is written as JSON escapes it.
        with (partial / MANIFEST).open("w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(manifest, file, indent=1, ensure_ascii=False)
        partial.chmod(0o755)  # mkdtemp made it private
        for place in (*partial.iterdir(), partial):
            flush_to_disk(place)
        os.rename(partial, final)
        flush_to_disk(final.parent)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and is_bank(final):
            raise BankError(f"{path} was written by another process in the meantime; it is left as it is") from error
        with explain_refusal(final, partial):
            raise
    # Left by writers that were killed. A writer that is still running could not replace this bank anyway.
    for other in final.parent.glob(f"{glob.escape(prefix)}*"):
        shutil.rmtree(other, ignore_errors=True)
    return content_hash


def open_folder(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Open a folder that `write` made: features mapped, labels read, and the manifest, with whose shapes they agree."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    features = _open_array(folder, "features", manifest["features"], axes=2, dtypes=FEATURE_TYPES)
    labels = np.array(_open_array(folder, "labels", manifest["labels"], axes=1, dtypes=(LABEL_TYPE,)))
    return features, labels, manifest


def is_bank(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has a manifest."""
    return os.path.isfile(Path(path) / MANIFEST)


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not os.path.isdir(folder):
        raise BankError(f"{folder} is not a folder; a bank is a folder with {MANIFEST}: check the path")
    if not is_bank(folder):
        raise BankError(
            f"{folder} has no {MANIFEST}, so it is not a bank; if it has features in another format, "
            "make one of it: handful.read_bank(file).save(folder)"
        )
    manifest = read_json(folder / MANIFEST, BankError, f"the manifest of a {FORMAT}")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BankError(f"{folder / MANIFEST} does not describe a {FORMAT}; check the path")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise BankError(
            f"{folder} has format version {manifest.get('format_version')!r}, this handful reads {FORMAT_VERSION}; "
            "update handful"
        )
    kinds = {"features": dict, "labels": dict, "provenance": dict, "splits": dict, "class_names": list}
    for field, kind in {**kinds, "content_hash": str}.items():
        if not isinstance(manifest.get(field), kind):
            raise BankError(f"{folder / MANIFEST} lacks the field {field!r}; copy or make the bank again")
    if not all(isinstance(name, str) for name in manifest["class_names"]):
        raise BankError(f"{folder / MANIFEST} has class names that are not text; copy or make the bank again")
    return manifest


def _open_array(folder: Path, role: str, entry: Mapping[str, Any], axes: int, dtypes: Sequence[str]) -> np.ndarray:
    """Open the file that an entry of the manifest names, if it is in the folder and fits the entry."""
    name = entry.get("file")
    if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name or set(name) & {"\\", "\0"}:
        raise BankError(f"the manifest of {folder} names {name!r} as its {role}, which is not a file in that folder")
    if (folder / name).resolve().parent != folder.resolve():
        raise BankError(f"{folder / name} is a link that leaves the folder; put the file itself there")
    array = open_npy(folder / name)
    shape = entry.get("shape")
    dtype = entry.get("dtype")
    if list(array.shape) != shape or array.ndim != axes:
        raise BankError(
            f"{folder / name} has shape {list(array.shape)}, its manifest says {shape}; make the bank again"
        )
    if dtype not in dtypes or array.dtype != np.dtype(dtype):
        raise BankError(
            f"{folder / name} has dtype {array.dtype}, its manifest says {dtype!r}, and {role} may be "
            f"{' or '.join(dtypes)}; make the bank again"
        )
    if not array.flags.c_contiguous:
        raise BankError(f"{folder / name} is not stored row by row; make the bank again")
    return array
