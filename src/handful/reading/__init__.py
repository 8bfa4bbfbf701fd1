"""One reader: vectors, texts or images and their columns, whatever the file; what each column means is chosen later."""

from handful.reading.labels import from_hugging_face, read_bank
from handful.reading.read import read
from handful.reading.skipped import Skipped, skipped_counts
from handful.reading.table import Table

__all__ = ["Skipped", "Table", "from_hugging_face", "read", "read_bank", "skipped_counts"]
