"""Cells: AnnData files (`.h5ad`), read and labelled in a copy; described in `docs/do/files.md`."""

from handful.fields.cells.read import read_cells
from handful.fields.cells.write import write_cells
from handful.reading.field import Field, Reader, Writer

FIELD = Field(
    readers={".h5ad": Reader(read_cells, holds_both=True)},
    writers={".h5ad": Writer(write_cells, into_copy=True, probabilities=True)},
)
