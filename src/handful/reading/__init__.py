"""One reader: vectors, texts or images and their columns, whatever the file; what each column means is chosen later."""

from handful.reading.field import (
    ClassName,
    Field,
    Reader,
    ScoreFormat,
    SiteFormat,
    Writer,
)
from handful.reading.header import Asked
from handful.reading.labels import read_bank
from handful.reading.read import read
from handful.reading.registry import register_field
from handful.reading.table import Skipped, Table, skipped_counts
from handful.reading.tool_scores import ItemLabel, ToolScores

__all__ = [
    "Asked",
    "ClassName",
    "Field",
    "ItemLabel",
    "Reader",
    "ScoreFormat",
    "SiteFormat",
    "Skipped",
    "Table",
    "ToolScores",
    "Writer",
    "read",
    "read_bank",
    "register_field",
    "skipped_counts",
]
