"""Groups of any files that DuckDB reads, one after the other: python duckdb_groups.py rows birds.model labelled.

DuckDB sorts on disk what does not fit in memory, so the rows of a group may be anywhere, and a table in memory has
about 65,000 rows, or one group if that is larger.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import duckdb
from pyarrow.parquet import ParquetWriter

from handful.scale import complete_groups, label_table

GROUP_BY = ["site", "day"]


def main(data: str, model: str, out: str) -> None:
    """Label the groups of columns `site` and `day`."""
    Path(out).mkdir(parents=True, exist_ok=True)
    writers: dict[str, ParquetWriter] = {}
    with duckdb.connect() as database, ExitStack() as opened:
        rows = f"read_parquet('{data}/**/*.parquet', hive_partitioning = true)"
        query = database.sql(f"SELECT * FROM {rows} ORDER BY {', '.join(GROUP_BY)}")
        for table in complete_groups(query.to_arrow_reader(), GROUP_BY):
            for name, found in label_table(table, model, GROUP_BY)._asdict().items():
                if name not in writers:
                    writers[name] = opened.enter_context(ParquetWriter(Path(out, f"{name}.parquet"), found.schema))
                writers[name].write_table(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
