"""One reader: vectors, texts or images and their columns, whatever the file; what each column means is chosen later."""

from handful.reading.labels import read_bank
from handful.reading.read import read
from handful.reading.table import Skipped, Table, skipped_counts

__all__ = ["Skipped", "Table", "read", "read_bank", "skipped_counts"]
