"""The public names of `handful.banks`, under the name that the package had before."""

from handful.banks import FeatureBank, Provenance, from_hugging_face, read_bank, write_parquet

__all__ = ["FeatureBank", "Provenance", "from_hugging_face", "read_bank", "write_parquet"]
