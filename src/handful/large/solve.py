"""solve: label one batch too large for memory jointly, in one pass over its rows.

Memory of a worker, in bytes, for any |Q|, by roll call:

    8 K d             class means and weights; the workers of one node of a cluster share one copy
    + 10 · 4 · 2²¹    a block of scores and what is computed from it; a worker that can judge unknown queries takes
                      blocks of 512 rows at least, 10 · 4 · 512 K

The driver needs `6 · 4 · 2²⁵` at most to decide. On disk what a shard adds up to takes `24 K`. By PADDLE, with m
classes per list:

    12 K d            means, weights, and a temporary copy while queries are compared with all classes
    + 3 · 4 · 2²³     a block of scores and what is computed from it
    + 4 (2m + 1) R    lists of a shard of R rows, while they are made
    + 16 K            counts

On disk its shortlists take `4 (2m + 1) |Q|`; iterations map them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from handful.banks import FeatureBank
from handful.catalogue import Catalogue
from handful.errors import OptionError, StorageError, TaskError
from handful.large.answers import answered
from handful.large.candidates import SHORTLISTS, FaissIndex
from handful.large.checkpoint import FORMAT, begin, refuse_another
from handful.large.crew import Executor, in_process
from handful.large.inputs import given
from handful.large.paddle import PaddleRun
from handful.large.progress import Progress, Reporter
from handful.large.roll_call import label_stream
from handful.large.run import Run
from handful.large.shard import Work
from handful.large.solution import LargeSolution
from handful.machine.folder_lock import only_writer
from handful.machine.folders import Folder, LocalFolder, folder_at, is_remote
from handful.machine.scratch import scratch_folder
from handful.machine.threads import one_thread
from handful.methods import METHODS
from handful.transforms import ROW_TRANSFORMS

STREAMED = ("roll_call", "paddle")
SHARD_ROWS = 65_536
LIST_LENGTH = 32
# Lists hold every class if all of them together then have no more entries than this.
WHOLE_ENTRIES = 2**22


def solve(
    catalogue: Catalogue | FeatureBank | tuple[Any, Any] | str | os.PathLike[str],
    queries: Any,
    folder: str | os.PathLike[str],
    *,
    method: str = "roll_call",
    transform: str | None = None,
    shortlist: str = "exact",
    list_length: int | None = None,
    index_folder: str | os.PathLike[str] | None = None,
    shard_rows: int = SHARD_ROWS,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: object,
) -> LargeSolution:
    """Label all queries jointly, streaming them; the answers go to Parquet files in `folder`.

    Called again with the same arguments after an interruption, it resumes from the shards that are labelled (PADDLE:
    from the last iteration), to the same answer bit for bit. All bytes of both inputs are read and hashed first: a
    folder started with other inputs or other settings is refused, and so is one that another process is writing to.

    Parameters
    ----------
    catalogue : Catalogue, FeatureBank, path, URL or (X, y)
        A fitted catalogue, or labelled examples of all K classes. Labels in the answers are positions among its
        classes.
    queries : FeatureBank, path or URL of one, Parquet file or array [query, dim]
        What to label. Its labels, if any, are ignored. Banks stay where they are: on disk they are mapped, at a URL
        every worker reads the rows of its shards. A Parquet file is first copied into `folder`.
    folder : path or URL
        Where answers and sums go (PADDLE: and its checkpoint, and on one machine the shortlists). Over a cluster give a
        URL that fsspec opens, such as `s3://bucket/run`, for the folder and the inputs, or paths that every node sees;
        an array is sent.
    method : {"roll_call", "paddle"}
        Which method; `**options` are fields of its options.
    transform : {"raw", "l2"}, optional
        Applied to every row as it is read. By default `l2` for roll call, and `raw` for PADDLE, whose usual
        transform needs all rows at once.
    shortlist : {"exact", "faiss_ivf", "faiss_hnsw"}
        How PADDLE finds the classes near a query in its first pass; roll call compares queries with all classes.
    list_length : int, optional
        m, classes that PADDLE keeps for each query. By default all if |Q| · K is at most 2²², else 32.
    index_folder : path or URL, optional
        Where the index of a FAISS shortlist is stored, under the hash of its catalogue, so that other batches can reuse
        it. By default `folder`.
    shard_rows : int
        Queries per shard. A shard is the unit of work, of the order of sums, and of the answer files.
    executor : callable, optional
        `in_process(workers)` or `on_ray(address)`; by default in process on one thread. The answer is the same.
    on_progress : callable, optional
        Called with a `Progress` after every shard of a long pass and after every iteration.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from handful.datasets import load_clinc150
    >>> bank = load_clinc150()
    >>> rank = np.arange(bank.n_rows) % 50
    >>> of_catalogue, queried = rank < 5, (rank >= 5) & (bank.labels < 4)
    >>> with TemporaryDirectory() as folder:
    ...     found = solve(
    ...         (bank.features[of_catalogue], bank.labels[of_catalogue]), bank.features[queried], folder
    ...     )
    ...     float((found.labels() == bank.labels[queried]).mean()) > 0.95
    True
    """
    if method not in STREAMED:
        raise OptionError(f"method must be one of {', '.join(STREAMED)}, which can be streamed, got {method!r}")
    if shortlist not in SHORTLISTS:
        raise OptionError(f"shortlist must be one of {', '.join(SHORTLISTS)}, got {shortlist!r}")
    if method == "roll_call" and (shortlist != "exact" or list_length is not None):
        raise OptionError("shortlist and list_length are for method='paddle': roll call compares with all classes")
    if shard_rows < 1 or (list_length is not None and list_length < 2):
        raise OptionError(f"shard_rows must be at least 1 and list_length 2, got {shard_rows} and {list_length}")
    settings = METHODS[method].make_options(**options)
    change = _transform_for(catalogue, method, transform)
    if change not in ROW_TRANSFORMS:
        raise OptionError(
            f"transform must be one of {', '.join(ROW_TRANSFORMS)}, which transform each row alone, got {change!r}"
        )
    place = folder_at(folder)
    # A killed process leaves its temporary folder behind, so there is one only if there is something to download.
    room = TemporaryDirectory(prefix="handful-") if is_remote(catalogue) or is_remote(queries) else nullcontext("")
    # On one thread sums have a fixed order: the catalogue's means and its head are the same in every process that
    # resumes the run.
    with _only_writer(place), room as downloads, one_thread():
        examples = given(catalogue, role="catalogue", scratch=Path(downloads))
        batch = given(queries, role="queries", scratch=Path(downloads))
        about = {
            "format": FORMAT,
            "inputs": {
                role: {"called": one.called, "content": one.content}
                for role, one in (("catalogue", examples), ("queries", batch))
            },
            "method": method,
            "options": dataclasses.asdict(settings),
            "transform": change,
            "shortlist": shortlist,
            "list_length": list_length,
            "shard_rows": shard_rows,
        }
        refuse_another(place, about)
        queried = batch.open(place)
        if isinstance(catalogue, Catalogue):
            summed, names = catalogue, tuple(map(str, catalogue.classes.tolist()))
        else:
            labelled = examples.open(place)
            assert isinstance(labelled, FeatureBank)
            summed, names = Catalogue.of_bank(labelled, change), labelled.class_names
        if summed.only_names:
            raise TaskError(
                "a streamed batch needs examples, but the catalogue has names alone, whose scale comes from the batch "
                "as a whole; label smaller batches in memory, or add examples"
            )
        if summed.dim != queried.dim:
            raise TaskError(f"the catalogue has {summed.dim} dimensions but the queries {queried.dim}; they must agree")
        begin(place, about)
        reporter = Reporter(on_progress)
        index = None
        if shortlist != "exact":
            began = time.monotonic()
            name = f"{shortlist}-{change}-{examples.content[:16]}.index"
            index = FaissIndex(folder_at(index_folder or place), name, shortlist)
            index.build(torch.as_tensor(summed.means))
            reporter.shard("index", 0, 1, 1, began)
        length = list_length_for(queried.n_rows, summed.n_classes) if list_length is None else list_length
        run_name = run_name_of(about)
        lists = place.path if isinstance(place, LocalFolder) else scratch_folder(run_name)
        work = Work(queried, torch.as_tensor(summed.origin), change, place, lists, run_name, shard_rows, length, index)
        open_crew = in_process() if executor is None else executor
        with open_crew(work) as crew:
            run = Run(run_name, summed, names, queried.n_rows, work.n_shards, place, crew, reporter)
            found = PaddleRun(run, settings).solve() if method == "paddle" else label_stream(run, work)
            if len(answered(place)) < work.n_shards:
                raise StorageError(
                    f"answers of {work.n_shards - len(answered(place))} shards are not in {place.called}: nodes of the "
                    "cluster wrote them to disks of their own; give a URL as the folder, or a path that all nodes see"
                )
        if not isinstance(place, LocalFolder):
            shutil.rmtree(lists, ignore_errors=True)
        return found


@contextmanager
def _only_writer(place: Folder) -> Iterator[None]:
    """Hold the lock of a folder on disk; see `handful.large.checkpoint` for why a URL needs none."""
    if isinstance(place, LocalFolder):
        place.path.mkdir(parents=True, exist_ok=True)
        with only_writer(place.path, OptionError):
            yield
    else:
        yield


def run_name_of(about: Mapping[str, Any]) -> str:
    """Hash what a run is started with; where its inputs are does not count."""
    contents = {role: entry["content"] for role, entry in about["inputs"].items()}
    return hashlib.sha256(json.dumps({**about, "inputs": contents}, sort_keys=True).encode()).hexdigest()[:16]


def _transform_for(catalogue: Any, method: str, named: str | None) -> str:
    """Return the transform named, or that of the catalogue, or the method's own if it works row by row, else `raw`."""
    if isinstance(catalogue, Catalogue):
        if named not in (None, catalogue.transform):
            raise OptionError(f"the catalogue was fitted with transform {catalogue.transform!r}, got {named!r}")
        return catalogue.transform
    if named is not None:
        return named
    wanted = METHODS[method].transform
    return wanted if wanted in ROW_TRANSFORMS else "raw"


def list_length_for(n_query: int, n_classes: int) -> int:
    """Return K if the lists are no larger than a small dense problem, else `LIST_LENGTH`."""
    return n_classes if n_query * n_classes <= WHOLE_ENTRIES else min(n_classes, LIST_LENGTH)
