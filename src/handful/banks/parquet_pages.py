"""What a Parquet file would expand to, counted in the file itself before Arrow reads it.

Equal numbers are stored as one number and a count, so 900 bytes can mean a vector of 200 million numbers. The table of
contents at the end of a file says how many numbers a column has, but it can be wrong, and Arrow trusts what each page
says. So the pages are visited: their headers are read, their contents are not. Both are structures in Thrift's compact
protocol. (Arrow's own reader of the table of contents crashes the process on some damaged files.)
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"PAR1"
# Deeper than any structure in Parquet.
DEEPEST = 24
# Older versions of Arrow wrote a page header's size too small by up to this many bytes.
SLACK = 100
# Numbers of fields in Parquet's structures.
ROW_GROUPS, COLUMNS, META_DATA = 4, 1, 3
PATH, VALUES, PACKED_SIZE, DATA_OFFSET, DICTIONARY_OFFSET = 3, 5, 7, 9, 11
UNFOLDED_PAGE, PACKED_PAGE, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_2 = 2, 3, 5, 7, 8
PAGE_VALUES = 1


class Contents(NamedTuple):
    """What some columns hold: numbers (or texts) in all pages, and bytes once they are decompressed."""

    values: int
    unfolded: int


def count_contents(file: Path, columns: Collection[str]) -> Contents:
    """Add up the pages of these columns; raises `ValueError` where the file is not Parquet, or damaged."""
    size = file.stat().st_size
    if size < 12:
        raise ValueError("it is too short")
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        length = int.from_bytes(data[size - 8 : size - 4], "little")
        if data[size - 4 :] != MAGIC or length > size - 12:
            raise ValueError("it does not end as Parquet files do")
        try:
            return _counted(data, size, _Thrift(data, size - 8 - length, size - 8).structure(), columns)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"its table of contents is damaged ({type(error).__name__}: {error})") from error


def _counted(data: mmap.mmap, size: int, contents: dict[int, Any], columns: Collection[str]) -> Contents:
    values = unfolded = 0
    for group in contents[ROW_GROUPS]:
        for about in (chunk[META_DATA] for chunk in group[COLUMNS]):
            if about[PATH][0].decode() in columns:
                found = _pages(data, size, about)
                values, unfolded = values + found.values, unfolded + found.unfolded
    return Contents(values, unfolded)


def _pages(data: mmap.mmap, size: int, about: dict[int, Any]) -> Contents:
    """Visit as many pages of one part of a column as Arrow would read."""
    place = about[DATA_OFFSET]
    if 0 < about.get(DICTIONARY_OFFSET, 0) < place:
        place = about[DICTIONARY_OFFSET]
    end = min(size, place + about[PACKED_SIZE] + SLACK)
    seen = values = unfolded = 0
    while seen < about[VALUES] and place < end:
        reader = _Thrift(data, place, size)
        head = reader.structure()
        if head[PACKED_PAGE] < 0 or head[UNFOLDED_PAGE] < 0:
            raise ValueError("a page has a negative size")
        page = next((head[kind] for kind in (DATA_PAGE, DATA_PAGE_2) if kind in head), None)
        seen += max(0, page[PAGE_VALUES]) if page is not None else 0
        values += max(0, (page or head.get(DICTIONARY_PAGE, {PAGE_VALUES: 0}))[PAGE_VALUES])
        unfolded += head[UNFOLDED_PAGE]
        place = reader.position + head[PACKED_PAGE]
    return Contents(values, unfolded)


class _Thrift:
    """Reads values of the compact protocol between two places of a buffer."""

    def __init__(self, data: mmap.mmap, position: int, end: int) -> None:
        self._data, self.position, self._end = data, position, end
        if not 0 <= position <= end:
            raise ValueError("it refers to a place outside of it")

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Read fields by number."""
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._whole()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _byte(self) -> int:
        if self.position >= self._end:
            raise ValueError("it ends in the middle")
        self.position += 1
        return self._data[self.position - 1]

    def _skip(self, n: int) -> bytes:
        if n > self._end - self.position:
            raise ValueError("it ends in the middle")
        self.position += n
        return self._data[self.position - n : self.position]

    def _count(self) -> int:
        """Read seven bits per byte, the lowest first."""
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("a number has too many digits")

    def _whole(self) -> int:
        number = self._count()
        return number >> 1 ^ -(number & 1)

    def _items(self, kind: int, n: int, depth: int) -> list[Any]:
        if n > self._end - self.position or depth > DEEPEST:  # an item has at least one byte
            raise ValueError("it ends in the middle")
        return [self._value(kind, depth) for _ in range(n)]

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        n = head >> 4
        return self._items(head & 15, self._count() if n == 15 else n, depth + 1)

    def _map(self, depth: int) -> list[Any]:
        n = self._count()
        kinds = self._byte() if n else 0
        return [self._items(kind, 1, depth + 1) for _ in range(n) for kind in (kinds >> 4, kinds & 15)]

    def _value(self, kind: int, depth: int) -> Any:
        read = READERS.get(kind)
        if read is None:
            raise ValueError(f"it has a value of the unknown kind {kind}")
        return read(self, depth)


READERS: dict[int, Callable[[_Thrift, int], Any]] = {
    **dict.fromkeys((1, 2, 3), lambda thrift, depth: thrift._byte()),
    **dict.fromkeys((4, 5, 6), lambda thrift, depth: thrift._whole()),
    7: lambda thrift, depth: thrift._skip(8),
    8: lambda thrift, depth: thrift._skip(thrift._count()),
    **dict.fromkeys((9, 10), lambda thrift, depth: thrift._list(depth)),
    11: lambda thrift, depth: thrift._map(depth),
    12: lambda thrift, depth: thrift.structure(depth + 1),
}
