"""One reader: vectors, texts or images and their columns, whatever the file; what each column means is chosen later."""

from handful.reading.field import Field, Reader, Writer
from handful.reading.labels import read_bank
from handful.reading.read import read
from handful.reading.registry import register_field
from handful.reading.table import Skipped, Table, skipped_counts

__all__ = [
    "Field",
    "Reader",
    "Skipped",
    "Table",
    "Writer",
    "read",
    "read_bank",
    "register_field",
    "skipped_counts",
]
