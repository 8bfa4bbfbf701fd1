"""Feature banks: features with labels and provenance, on disk or in memory, ours or other people's."""

from handful.features.bank import FeatureBank, Provenance
from handful.features.foreign import from_hugging_face, read_bank
from handful.features.parquet import write_parquet

__all__ = ["FeatureBank", "Provenance", "from_hugging_face", "read_bank", "write_parquet"]
