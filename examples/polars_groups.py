"""Groups of a frame of polars, in this process: python polars_groups.py rows.parquet birds.model labelled."""

import sys
from pathlib import Path

import polars as pl

from handful.scale import label_table


def main(data: str, model: str, out: str) -> None:
    """Label the groups of columns `site` and `day`."""
    rows = pl.read_parquet(data, hive_partitioning=True)
    found = label_table(rows.to_arrow(), model, ["site", "day"])
    Path(out).mkdir(parents=True, exist_ok=True)
    for name, table in found._asdict().items():
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        frame.write_parquet(Path(out, f"{name}.parquet"))


if __name__ == "__main__":
    main(*sys.argv[1:])
