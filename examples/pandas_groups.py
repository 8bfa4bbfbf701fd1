"""Groups of a frame of pandas, in this process: python pandas_groups.py rows.parquet birds.model labelled."""

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa

from handful.scale import label_table


def main(data: str, model: str, out: str) -> None:
    """Label the groups of columns `site` and `day`."""
    frame = pd.read_parquet(data)
    items, groups = label_table(pa.Table.from_pandas(frame, preserve_index=False), model, ["site", "day"])
    Path(out).mkdir(parents=True, exist_ok=True)
    items.to_pandas().to_parquet(Path(out, "items.parquet"), index=False)
    groups.to_pandas().to_parquet(Path(out, "groups.parquet"), index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
