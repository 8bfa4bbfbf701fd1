"""Many batches on disk: a Parquet data set of any size, every group of its rows one joint batch, to Parquet."""

from handful.many.run import LabelledGroups, label_groups

__all__ = ["LabelledGroups", "label_groups"]
