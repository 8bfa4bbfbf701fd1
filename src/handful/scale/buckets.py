"""Buckets: where rows of a group lie in several files, a first pass brings them together, by a hash of the group.

Which groups a file has, and how many rows of each, is found once for every version of the file and kept beside the
manifest. So a file more costs its own rows, and only the buckets that it has rows of are labelled again.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from handful.errors import HandfulError
from handful.machine.folders import FileAt, Folder, folder_at
from handful.scale.groups import NO_GROUP, group_hashes
from handful.scale.manifest import PLACE, Hashed
from handful.scale.partition import Job, fetched
from handful.scale.source import ARROW, ENDING, PartitionRows, sha256_of
from handful.scale.spill import BLOCK_NUMBERS, counted, cut, piece_at
from handful.shapes import Int

PIECES = f"{PLACE}/pieces"
KNOWN = f"{PLACE}/groups"
BUCKET_NAME = re.compile(r"bucket-\d+-of-\d+\.parquet")
# Digits of a hash in a name. [digits; convention]
NAME_DIGITS = 24
# In names of folders of pieces, which tell when they were begun, in universal time.
STAMP = "%Y%m%d-%H%M%S"
# After which pieces belong to nobody. [seconds; work]
LEFT_SECONDS = 86_400
# The bucket of rows that are not labelled again. [bucket; convention]
UNWANTED = -1


@dataclass(frozen=True, eq=False)
class FileGroups:
    """The groups of a file by their hashes, in order, how many rows each has, and the hash of the bytes of the file."""

    file: Hashed
    hashes: npt.NDArray[np.uint64]
    counts: Int[np.ndarray, "group"]


def groups_of(job: Job, file: FileAt) -> FileGroups:
    """Return the groups of a file: as they were found before, or by reading its keys."""
    name = f"{KNOWN}/{_name_of(job, file)}.npz"
    with job.out.opened(name) as there:
        if there is not None:
            with np.load(there, allow_pickle=False) as kept:
                return FileGroups(Hashed(*file, str(kept["sha256"])), kept["hashes"], kept["counts"])
    with fetched(job.source, file) as place:
        rows = PartitionRows([place], {}, [f"{job.source.address}/{file.name}"])
        keys = job.labeller.group_by
        hashes, counts = counted(group_hashes(table, keys) for table in rows.tables(keys))
        found = FileGroups(Hashed(*file, sha256_of(place)), hashes, counts)
    with job.out.written(name) as place, place.open("wb") as stream:
        np.savez(stream, hashes=hashes, counts=counts, sha256=np.array(found.file.sha256))
    return found


def _name_of(job: Job, file: FileAt) -> str:
    """Return a name that is another one when the file or the keys are."""
    about = repr((str(job.source.address), file, job.labeller.group_by))
    return hashlib.sha256(about.encode()).hexdigest()[:NAME_DIGITS]


def has_shared(files: Sequence[FileGroups]) -> bool:
    """Whether any group has rows in several files."""
    every = np.concatenate([one.hashes[one.hashes != NO_GROUP] for one in files])
    return len(np.unique(every)) < len(every)


def bucket_of(hashes: npt.NDArray[np.uint64], n_buckets: int) -> Int[np.ndarray, "row"]:
    """Return the bucket of each group."""
    return np.asarray((hashes % np.uint64(n_buckets)).astype(np.int64))


def bucket_name(bucket: int, n_buckets: int) -> str:
    """Return the name of a bucket.

    Examples
    --------
    >>> bucket_name(7, 64)
    'bucket-07-of-64.parquet'
    """
    digits = len(str(n_buckets))
    return f"bucket-{bucket:0{digits}}-of-{n_buckets}{ENDING}"


def files_of_buckets(files: Sequence[FileGroups], n_buckets: int) -> list[list[FileGroups]]:
    """Return the files that have rows of each bucket."""
    found: list[list[FileGroups]] = [[] for _ in range(n_buckets)]
    for one in files:
        for bucket in np.unique(bucket_of(one.hashes, n_buckets)).tolist():
            found[bucket].append(one)
    return found


def bucket_number(name: str) -> int:
    """Return the number of a bucket by its name."""
    return int(name.split("-")[1])


def is_bucket(name: str) -> bool:
    """Whether a partition is a bucket."""
    return BUCKET_NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class CutFile:
    """The pieces that a file was cut into, by their buckets; or why it was not."""

    file: FileAt
    pieces: Mapping[int, FileAt]
    reason: str = ""


def pieces_folder(out: Folder) -> str:
    """Return where the pieces of this run are, and remove those that a killed run left a day ago."""
    for name in out.names(PIECES):
        if name < time.strftime(STAMP, time.gmtime(time.time() - LEFT_SECONDS)):
            for file in folder_at(f"{out.address}/{PIECES}/{name}").files():
                out.remove(f"{PIECES}/{name}/{file.name}")
    return f"{PIECES}/{time.strftime(STAMP, time.gmtime())}-{uuid.uuid4().hex[:NAME_DIGITS]}"


def cut_file(job: Job, file: FileAt, n_buckets: int, wanted: Sequence[int], folder: str) -> CutFile:
    """Write the rows of a file that belong to some buckets, one Arrow file for each."""
    kept = np.full(n_buckets, UNWANTED)
    kept[list(wanted)] = list(wanted)

    def pieces(hashes: npt.NDArray[np.uint64]) -> Int[np.ndarray, "row"]:
        return np.asarray(kept[bucket_of(hashes, n_buckets)])

    try:
        with fetched(job.source, file) as place, TemporaryDirectory(prefix="handful-") as scratch:
            rows = PartitionRows([place], {}, [f"{job.source.address}/{file.name}"])
            at_once = max(1, BLOCK_NUMBERS // job.labeller.model.fitted.dim)
            made = cut(rows.tables(rows_at_once=at_once), job.labeller.group_by, pieces, Path(scratch))
            found = {}
            for bucket in made:
                if bucket == UNWANTED:
                    continue
                name = f"{folder}/{bucket}/{_name_of(job, file)}{ARROW}"
                with job.out.written(name) as whole:
                    shutil.copyfile(piece_at(Path(scratch), bucket), whole)
                about = job.out.about(name)
                assert about is not None
                found[bucket] = about
            return CutFile(file, found)
    except HandfulError as error:
        return CutFile(file, {}, str(error))
