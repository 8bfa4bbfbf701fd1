"""Many batches on disk: every group of rows of a Parquet data set is labelled as one batch, from Parquet to Parquet."""

from handful.many.run import LabelledGroups, label_groups

__all__ = ["LabelledGroups", "label_groups"]
