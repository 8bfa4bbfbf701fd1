"""Field: what a field of work adds to handful, the formats of its files and its rules; each part is optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from handful.reading.header import Asked
from handful.reading.table import Table
from handful.reading.tool_scores import ItemLabel, ToolScores


class Reader(NamedTuple):
    """Items of one kind of file or folder, or what is in hand: `read(path, asked)`, and what such a file can have.

    `columns` says whether vectors are columns with a name: not in a bank, arrays alone, spectra, or images. `rows` says
    whether single rows can be unreadable, `header` whether the names of columns are in one of its lines, `pickles`
    whether it may contain pickled objects, and `holds_both` whether one file can be catalogue and batch, the rows with
    a label and those without. `files` returns all files that are read for a path, by name, where there are others.
    """

    read: Callable[[Any, Asked], Table]
    columns: bool = True
    rows: bool = False
    header: bool = False
    pickles: bool = False
    holds_both: bool = False
    files: Callable[[Path], dict[str, Path]] | None = None


class Writer(NamedTuple):
    """Labels of a batch in one format: `write(found, path)`, where `found` is what `handful.classify` returned.

    With `into_copy`, the file is a copy of the batch, `found.about.batch.source`, with labels in it. `probabilities`
    says whether the probabilities of all classes are written too. `written` says on the terminal what is in the file,
    and `beside` are the endings of files that are written beside it, with what each of them is.
    """

    write: Callable[[Any, Path], None]
    into_copy: bool = False
    probabilities: bool = False
    written: str = "predictions, one row per item"
    beside: Mapping[str, str] = MappingProxyType({})


class ScoreFormat(NamedTuple):
    """Scores that another tool wrote: what the file is called, whether a content is that, and its reader.

    `holds` gets the content of a `.json` file, or the first line of any other.
    """

    title: str
    holds: Callable[[Any], bool]
    read: Callable[[Path], ToolScores]


class SiteFormat(NamedTuple):
    """Where and when files were made: whether a path is such a file, its columns, and labels written into a copy.

    `read` returns columns, among them `file`; `write(source, answers, out)` gets the answers by their rows. `files`
    returns all files that are read, by name, and `replaces` is the name of the one that the copy may replace.
    """

    title: str
    holds: Callable[[Path], bool]
    read: Callable[[Path], dict[str, list[Any]]]
    write: Callable[[Path, Mapping[int, ItemLabel], Path], None]
    files: Callable[[Path], dict[str, Path]]
    replaces: str


class ClassName(NamedTuple):
    """What people call a class: its scientific name, empty if it has none, its common name, and its taxa by level."""

    scientific: str
    common: str
    taxa: Mapping[str, str] = MappingProxyType({})


# Returns the classes that each item can have, see `Field.candidates`.
CandidateRule = Callable[[Table, str | None, Mapping[str, Any], float], list[list[str] | None]]
# Levels of a taxonomy above the species, from the highest.
TAXA = ("class", "order", "family", "genus")


@dataclass(frozen=True)
class Field:
    """What a field of work adds, by the ending of its files, in lower case and with the dot.

    Attributes
    ----------
    readers : mapping of str to Reader
        Files of catalogues and batches.
    writers : mapping of str to Writer
        Files of labels.
    tasks : mapping of str to Writer
        Files of labels as tasks for people who label in another tool. Unknown items have the label
        `found.about.unknown_label`.
    scores : tuple of ScoreFormat
        Files of scores that other tools wrote.
    sites : tuple of SiteFormat
        Files that say where and when pictures or recordings were made.
    name_of : callable, optional
        Returns a `ClassName` for the label of a class, or None if it is not written as in this field.
    candidates : mapping of str to callable
        Rules that choose the classes that an item can have, by name: for `candidates="precursor:0.01"`,
        `rule(catalogue, labels, columns, 0.01)` returns a list of classes for each item, or None for all. An item with
        an empty list belongs to no class.

    Examples
    --------
    >>> import numpy as np
    >>> def read_weights(path, asked):
    ...     vectors = [[float(line)] for line in path.read_text().split()]
    ...     return Table(str(path), len(vectors), vectors=np.array(vectors))
    >>> Field(readers={".weights": Reader(read_weights, columns=False)}).readers[".weights"].holds_both
    False
    """

    readers: Mapping[str, Reader] = field(default_factory=dict)
    writers: Mapping[str, Writer] = field(default_factory=dict)
    tasks: Mapping[str, Writer] = field(default_factory=dict)
    scores: tuple[ScoreFormat, ...] = ()
    sites: tuple[SiteFormat, ...] = ()
    name_of: Callable[[str], ClassName | None] | None = None
    candidates: Mapping[str, CandidateRule] = field(default_factory=dict)
