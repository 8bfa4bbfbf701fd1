"""Feature banks: features with labels and provenance, in memory, in handful's folders or in other file formats."""

from handful.banks.bank import FeatureBank, Provenance
from handful.banks.foreign import from_hugging_face, read_bank
from handful.banks.parquet import write_parquet

__all__ = ["FeatureBank", "Provenance", "from_hugging_face", "read_bank", "write_parquet"]
