"""Groups on Spark: spark-submit spark_groups.py rows birds.model labelled.

A call of the function has all rows of many groups, by a hash: one call for each group would take many times as long.
Every Python worker opens the model once.
"""

import sys

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from handful.scale import label_table

GROUP_BY = ["site", "day"]
# About a hundred thousand rows for each.
CALLS = 64


def main(data: str, model: str, out: str) -> None:
    """Label the groups of columns `site` and `day`; the folders table=items and table=groups are the two tables."""

    def label(table: pa.Table) -> pa.Table:
        return label_table(table.drop_columns(["call"]), model, GROUP_BY).both

    spark = SparkSession.builder.getOrCreate()
    rows = spark.read.parquet(data)
    nothing = to_arrow_schema(rows.schema).empty_table()
    schema = from_arrow_schema(label_table(nothing, model, GROUP_BY).both.schema)
    calls = rows.withColumn("call", f.abs(f.hash(*GROUP_BY)) % CALLS).groupBy("call")
    calls.applyInArrow(label, schema).write.partitionBy("table").parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
