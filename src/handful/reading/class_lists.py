"""What is known about a place: a list of its species, or a weight for each, as BirdNET's location model gives them.

A list has one class per line. Weights are a table with a column of classes and one of numbers. A class is found by its
whole name, and a species, `Scientific name_Common name`, also by either name.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import some_of
from handful.errors import FileFormatError
from handful.machine.untrusted import finite, lines_of, read_text
from handful.reading.class_names import plain_label
from handful.reading.registry import class_name
from handful.shapes import Float

SPECIES_NAMES = ("species", "scientific name", "scientific_name", "class", "label", "name")
WEIGHT_NAMES = ("weight", "probability", "score", "confidence", "frequency", "count")


def read_candidates(
    path: Path, classes: Sequence[str], columns: Collection[str] = ()
) -> list[str] | tuple[str, dict[str, list[str]]]:
    """Return those of the classes that a list names; a list that names none of them is refused.

    A table with a column of classes and one of `columns`, those of the batch, has lists for some of its items: return
    the name of that column, and the classes for each of its values.
    """
    text = _text(path)
    header = _header(path, text)
    column = next((name for name in header if name in columns and name.lower() not in SPECIES_NAMES), None)
    if column is not None and (index := _index(header, SPECIES_NAMES)) is not None:
        position = header.index(column)
        lists = dict[str, set[str]]()
        for row in _rows(path, text, len(header)):
            lists.setdefault(row[position], set()).update(names_of(row[index]))
        by_value = {value: [name for name in classes if names_of(name) & listed] for value, listed in lists.items()}
        empty = next((value for value, found in by_value.items() if not found), None)
        if empty is not None:
            raise FileFormatError(f"{path} names none of the {len(classes)} classes for {column} {empty!r}")
        return column, by_value
    lines = [line.strip() for line in lines_of(text)]
    listed = {name for line in lines if line and not line.startswith("#") for name in names_of(line)}
    found = [name for name in classes if names_of(name) & listed]
    if not found:
        raise FileFormatError(
            f"{path} names none of the {len(classes)} classes, such as {classes[0]!r}; a list has one class per line, "
            "species as Scientific name_Common name"
        )
    return found


def read_weights(
    path: Path, classes: Sequence[str], column: str = "", groups: Sequence[Any] = ()
) -> Float[np.ndarray, "class"] | dict[Any, dict[str, float]]:
    """Return one weight per class, in their order; a class that is not in the table has the least weight in it.

    A table with the `column` of the groups has weights for some of these: return a mapping from groups to weights.
    """
    text = _text(path)
    header = _header(path, text)
    species = _index(header, SPECIES_NAMES)
    weight = _index(header, WEIGHT_NAMES)
    if species is None or weight is None:
        raise FileFormatError(f"{path} must have a column of species and one of weights, it has {some_of(header)}")
    group = header.index(column) if column in header and column else None
    tables: dict[str, dict[str, float]] = {}
    for number, row in enumerate(_rows(path, text, len(header))):
        try:
            value = finite(row[weight])
        except ValueError:
            value = -1.0
        if value < 0:
            raise FileFormatError(f"row {number} of {path} must have a weight of at least zero; fix or drop that row")
        tables.setdefault("" if group is None else row[group], {}).update(dict.fromkeys(names_of(row[species]), value))
    if group is None:
        return _weights(path, classes, tables.get("", {}))
    return {
        name: dict(zip(classes, _weights(path, classes, tables[str(name)]).tolist(), strict=True))
        for name in groups
        if str(name) in tables
    }


def read_coarse(path: Path, classes: Sequence[str]) -> dict[str, str]:
    """Return the coarse class of each class that a table lists: a column of classes, and one other.

    Of several others, the one that is called `coarse`.
    """
    text = _text(path)
    header = _header(path, text)
    index = _index(header, SPECIES_NAMES)
    others = [position for position in range(len(header)) if position != index]
    coarse = others[0] if len(others) == 1 else _index(header, ("coarse",))
    if index is None or coarse is None:
        raise FileFormatError(f"{path} must have the columns class and coarse, it has {some_of(header)}")
    listed = dict[str, str]()
    for row in _rows(path, text, len(header)):
        for name in names_of(row[index]):
            if listed.setdefault(name, plain_label(row[coarse])) != plain_label(row[coarse]):
                raise FileFormatError(f"{path} has two coarse classes for {row[index]!r}; keep one of them")
    found = {one: next((listed[name] for name in names_of(one) if name in listed), None) for one in classes}
    if not any(found.values()):
        raise FileFormatError(f"{path} lists none of the {len(classes)} classes, such as {classes[0]!r}")
    return {name: coarse for name, coarse in found.items() if coarse}


def taxa(classes: Sequence[str], level: str) -> dict[str, str]:
    """Return the taxon of each class at a level: genus, family, order or class, as far as its name tells.

    Examples
    --------
    >>> taxa(["b1352069;mammalia;cetartiodactyla;cervidae;alces;alces;moose", "Turdus merula_Blackbird"], "genus")
    {'b1352069;mammalia;cetartiodactyla;cervidae;alces;alces;moose': 'alces', 'Turdus merula_Blackbird': 'turdus'}
    """
    found = {name: class_name(plain_label(name)).taxa.get(level, "") for name in classes}
    return {name: taxon for name, taxon in found.items() if taxon}


def _weights(path: Path, classes: Sequence[str], weights: Mapping[str, float]) -> Float[np.ndarray, "class"]:
    known = [next((weights[name] for name in names_of(one) if name in weights), None) for one in classes]
    if not any(value for value in known if value is not None):
        raise FileFormatError(f"{path} has a weight above zero for none of the {len(classes)} classes")
    least = min(value for value in weights.values() if value > 0)
    return np.array([least if value is None else value for value in known])


def _delimiter(text: str) -> str:
    return "\t" if "\t" in text.split("\n", 1)[0] else ","


def _header(path: Path, text: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([text.split("\n", 1)[0]], delimiter=_delimiter(text)), [])]
    except csv.Error as error:
        raise _no_table(path, error) from error


def _no_table(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{path} cannot be read as a table ({error}); write it again")


def _index(header: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the place of the first of the names that the header has."""
    lower = [name.lower() for name in header]
    return next((lower.index(name) for name in names if name in lower), None)


def _rows(path: Path, text: str, width: int) -> Iterator[list[str]]:
    """Yield the rows of a table below its header."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    try:
        next(rows)
        for number, row in enumerate(row for row in rows if row):
            if len(row) != width:
                raise FileFormatError(f"row {number} of {path} has {len(row)} values, its header {width}")
            yield row
    except csv.Error as error:
        raise _no_table(path, error) from error


def names_of(species: str) -> frozenset[str]:
    """Return the names of a class in lower case; of a species, scientific and common name, or those of a taxonomy.

    Examples
    --------
    >>> sorted(names_of("Turdus merula_Eurasian Blackbird"))
    ['eurasian blackbird', 'turdus merula']
    >>> sorted(names_of("b1352069;mammalia;cetartiodactyla;cervidae;alces;alces;moose"))
    ['alces alces', 'moose']
    >>> sorted(names_of("book_flight"))
    ['book_flight']
    """
    found = class_name(plain_label(species))
    return frozenset(name.lower() for name in (found.scientific, found.common) if name)


def common_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Return what people call each class: its common name, and the scientific one too where several share it.

    A class without a common name has its scientific name, and one that has neither keeps its own.

    Examples
    --------
    >>> common_names(["Turdus merula_Eurasian Blackbird", "b1352069;mammalia;;cervidae;alces;alces;moose"])
    ('Eurasian Blackbird', 'moose')
    >>> common_names(["1;aves;;;turdus;merula;blackbird", "2;aves;;;turdus;maximus;blackbird"])
    ('blackbird (turdus merula)', 'blackbird (turdus maximus)')
    """
    names = [class_name(plain_label(one)) for one in classes]
    found = [one.common or one.scientific or own for one, own in zip(names, classes, strict=True)]
    longer = [f"{one.common} ({one.scientific})" for one in names]
    for instead in (longer, classes):
        uses = Counter(found)
        found = [name if uses[name] == 1 else other for name, other in zip(found, instead, strict=True)]
    return tuple(found)


def _text(path: Path) -> str:
    text = read_text(path, FileFormatError)
    if not text.strip():
        raise FileFormatError(f"{path} is empty; expected species")
    return text
