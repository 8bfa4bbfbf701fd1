"""The public names of `handful.banks` and `handful.reading`, under the former name of that package."""

from handful.banks import FeatureBank, Provenance, write_parquet
from handful.reading import from_hugging_face, read_bank

__all__ = ["FeatureBank", "Provenance", "from_hugging_face", "read_bank", "write_parquet"]
