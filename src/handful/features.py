"""The public names of `handful.banks`, under the former name of that package."""

from handful.banks import FeatureBank, Provenance, from_hugging_face, read_bank, write_parquet

__all__ = ["FeatureBank", "Provenance", "from_hugging_face", "read_bank", "write_parquet"]
