"""solve: label one batch too large for memory jointly; queries are compared with all classes in one pass.

Memory of a worker, in bytes, for any |Q| (m classes per list):

    12 K d            means, weights, and a temporary copy while queries are compared with all classes
    + 3 · 4 · 2²³     a block of scores and what is computed from it
    + 4 (2m + 1) R    lists of a shard of R rows, while they are made
    + 16 K            counts

On disk the shortlists of a comparison take `4 (2m + 1) |Q|`; iterations map them.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handful.banks import FeatureBank
from handful.catalogue import Catalogue
from handful.errors import OptionError, TaskError
from handful.large.candidates import SHORTLISTS, FaissIndex
from handful.large.checkpoint import FORMAT, begin, refuse_another
from handful.large.crew import Executor, in_process
from handful.large.inputs import given
from handful.large.paddle import PaddleRun
from handful.large.progress import Progress, Reporter
from handful.large.roll_call import RollCallRun
from handful.large.run import Run
from handful.large.shard import Work
from handful.large.solution import LargeSolution
from handful.machine.folder_lock import only_writer
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

    Called again with the same arguments after an interruption, it resumes from the last iteration, to the same answer
    bit for bit. All bytes of both inputs are read and hashed first: a folder started with other inputs or other
    settings is refused, and so is one that another process is writing to.

    Parameters
    ----------
    catalogue : Catalogue, FeatureBank, path or (X, y)
        A fitted catalogue, or labelled examples of all K classes. Labels in the answers are positions among its
        classes.
    queries : FeatureBank, path, Parquet file or array [query, dim]
        What to label. Its labels, if any, are ignored. Banks on disk stay there, mapped.
    folder : path
        Where answers, shortlists and checkpoint go. Over a cluster every node must see it, and the banks, under the
        same path.
    method : {"roll_call", "paddle"}
        Which method; `**options` are fields of its options.
    transform : {"raw", "l2"}, optional
        Applied to every row as it is read. By default `l2` for roll call, and `raw` for PADDLE, whose usual
        transform needs all rows at once.
    shortlist : {"exact", "faiss_ivf", "faiss_hnsw"}
        How the classes near a query are found in the first pass.
    list_length : int, optional
        m, classes kept for each query. By default all if |Q| · K is at most 2²², else 32.
    index_folder : path, optional
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
    if shard_rows < 1 or (list_length is not None and list_length < 2):
        raise OptionError(f"shard_rows must be at least 1 and list_length 2, got {shard_rows} and {list_length}")
    settings = METHODS[method].make_options(**options)
    change = _transform_for(catalogue, method, transform)
    if change not in ROW_TRANSFORMS:
        raise OptionError(
            f"transform must be one of {', '.join(ROW_TRANSFORMS)}, which transform each row alone, got {change!r}"
        )
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    # On one thread sums have a fixed order: the catalogue's means and its head are the same in every process that
    # resumes the run.
    with only_writer(place, OptionError), one_thread():
        examples, batch = given(catalogue, role="catalogue"), given(queries, role="queries")
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
            summed, names = Catalogue.of_bank(labelled, change), labelled.class_names
        if summed.dim != queried.dim:
            raise TaskError(f"the catalogue has {summed.dim} dimensions but the queries {queried.dim}; they must agree")
        begin(place, about)
        reporter = Reporter(on_progress)
        index = None
        if shortlist != "exact":
            began = time.monotonic()
            file = Path(index_folder or place) / f"{shortlist}-{change}-{examples.content[:16]}.index"
            index = FaissIndex(file, shortlist)
            index.build(summed.means)
            reporter.shard("index", 0, 1, 1, began)
        length = list_length_for(queried.n_rows, summed.n_classes) if list_length is None else list_length
        work = Work(queried, summed.origin, change, place, shard_rows, length, index)
        open_crew = in_process() if executor is None else executor
        with open_crew(work) as crew:
            run = Run(summed, names, queried.n_rows, work.n_shards, place, crew, reporter)
            if method == "paddle":
                return PaddleRun(run, settings).solve()
            return RollCallRun(run, settings, queried).solve()


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
