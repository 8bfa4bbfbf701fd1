"""Groups on Ray Data, whose rows may be anywhere: python ray_groups.py rows birds.model labelled.

A call of the function has all rows of many groups, by a hash: one call for each group would take many times as long.
Every worker opens the model once.
"""

import sys

import pandas as pd
import pyarrow as pa
import ray

from handful.scale import label_table

GROUP_BY = ["site", "day"]
# About a hundred thousand rows for each.
CALLS = 64


def with_call(table: pa.Table) -> pa.Table:
    """Say which call of `label` each row belongs to."""
    hashes = pd.util.hash_pandas_object(table.select(GROUP_BY).to_pandas(), index=False)
    return table.append_column("call", pa.array(hashes.to_numpy() % CALLS))


def main(data: str, model: str, out: str) -> None:
    """Label the groups of columns `site` and `day`; the folders table=items and table=groups are the two tables."""

    def label(table: pa.Table) -> pa.Table:
        return label_table(table.drop_columns(["call"]), model, GROUP_BY).both

    calls = ray.data.read_parquet(data).map_batches(with_call, batch_format="pyarrow").groupby("call", CALLS)
    labelled = calls.map_groups(label, batch_format="pyarrow")
    labelled.write_parquet(out, partition_cols=["table"])


if __name__ == "__main__":
    main(*sys.argv[1:])
