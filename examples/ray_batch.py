"""One batch that nobody holds, on Ray Data: python ray_batch.py rows birds.model labelled."""

import pickle
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import ray

from handful.scale import decide, merge


class Labels:
    """Labels tables of any rows in an actor, which opens the model once; sums travel with the first row of each."""

    def __init__(self, decision: Any) -> None:
        self.decision = decision

    def __call__(self, table: pa.Table) -> pa.Table:
        """Label some rows."""
        items, totals = self.decision.label(table)
        return items.append_column("totals", pa.array([pickle.dumps(totals)] + [None] * (len(items) - 1), pa.binary()))


def main(data: str, model: str, out: str) -> None:
    """Label all rows as one batch."""
    rows = ray.data.read_parquet(data)
    sample = rows.random_sample(min(1.0, 16_384 / rows.count())).iter_batches(batch_size=8_192, batch_format="pyarrow")
    decision = decide(pa.concat_tables(sample), model)
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=int(ray.cluster_resources()["CPU"]))
    call = {"fn_constructor_args": [decision], "compute": pool, "batch_format": "pyarrow"}
    labelled = rows.map_batches(Labels, **call).materialize()
    labelled.drop_columns(["totals"]).write_parquet(f"{out}/items")
    totals = [row["totals"] for row in labelled.select_columns(["totals"]).iter_rows() if row["totals"]]
    pq.write_table(decision.summary(merge(map(pickle.loads, totals))), f"{out}/group.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
