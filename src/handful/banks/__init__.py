"""Feature banks: features with labels and provenance, in memory and in handful's folders."""

from handful.banks.bank import FeatureBank, Provenance
from handful.banks.parquet import write_parquet

__all__ = ["FeatureBank", "Provenance", "write_parquet"]
