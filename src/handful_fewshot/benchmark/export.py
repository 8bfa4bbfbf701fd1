"""write_rows: all rows of a run as one table in a file, for pandas, DuckDB, R or a spreadsheet.

Rows are in the order of the plan, then of tasks. Rows of cells that are not in the plan any more are left out, as in
every table of the run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from handful.machine.extras import import_extra, import_pyarrow
from handful.machine.outputs import refuse_overwriting, written_whole
from handful_fewshot.benchmark.journal import Journal, banks_at, read_shard
from handful_fewshot.benchmark.run import KEPT
from handful_fewshot.errors import PlanError

KINDS = (".parquet", ".csv")


def write_rows(journal: Journal, path: str | os.PathLike[str]) -> tuple[int, tuple[str, ...]]:
    """Write the rows of a run, and return their number and the columns that a CSV cannot hold.

    Parameters
    ----------
    journal : Journal
        The run; it need not be complete.
    path : path
        A file that ends with `.parquet` or `.csv`. It must be outside of the run.

    Returns
    -------
    n_rows : int
        Number of rows.
    left_out : tuple of str
        Columns with predictions, if some were kept and the file is a CSV; else empty.
    """
    pa, parquet = import_pyarrow()
    file = Path(path)
    if file.suffix not in KINDS:
        raise PlanError(f"rows are written as {' or '.join(KINDS)}, got {file.name!r}; give the file such an end")
    refuse_overwriting({"run": journal.folder, **banks_at(journal.bank_places)}, {"table": file})
    kept = any(cell.keep for cell in journal.plan)
    left_out = tuple(KEPT) if kept and file.suffix == ".csv" else ()
    table = journal.table()
    chosen = _chosen(journal, table)
    if kept and not left_out:  # in the order of the shards, as in the table
        more = [read_shard(shard, KEPT) for shard in journal.shards()]
        for name in KEPT if more else ():
            table = table.append_column(name, pa.chunked_array([c for t in more for c in t[name].chunks]))
    table = table.take(pa.array(chosen))
    with written_whole(file) as place:
        if file.suffix == ".csv":
            import_extra("pyarrow.csv", "parquet").write_csv(table, place)
        else:
            parquet.write_table(table, place)
    return table.num_rows, left_out


def _chosen(journal: Journal, table: Any) -> np.ndarray:
    """Return the rows of the plan's cells, in their order."""
    order = {cell.content_hash: k for k, cell in enumerate(journal.plan)}
    cells = np.array([order.get(name, len(order)) for name in table["cell"].to_pylist()], dtype=np.int64)
    by_task = np.lexsort((table["task"].to_numpy(), cells))
    found: np.ndarray = by_task[cells[by_task] < len(order)]
    return found
