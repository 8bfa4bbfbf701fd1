"""Which format a file has: READERS of the core by ending, and FIELDS, those of handful and of other packages.

Packages below `handful.fields` each have a `FIELD`. Another package declares its own as an entry point of the group
`handful.fields`, and a program calls `register_field`. Nothing else in handful knows a field by its name.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType
from typing import Any

from handful.errors import OptionError
from handful.machine.registry import Registry
from handful.reading.delimited import read_delimited
from handful.reading.field import CandidateRule, ClassName, Field, Reader, ScoreFormat, SiteFormat, Writer
from handful.reading.json_lines import read_json_lines
from handful.reading.lines import read_text
from handful.reading.numpy_files import read_npy, read_npz, read_pickle
from handful.reading.parquet import read_parquet
from handful.reading.spreadsheet import read_spreadsheet

DELIMITED = Reader(read_delimited, rows=True, header=True)
PARQUET = Reader(read_parquet, rows=True)
# Kinds of files by the ending of their names; text can also be packed, `.csv.gz`.
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        ".csv": DELIMITED,
        ".tsv": DELIMITED,
        ".txt": Reader(read_text, rows=True, header=True),
        ".jsonl": Reader(read_json_lines, rows=True),
        ".xlsx": Reader(read_spreadsheet, rows=True, header=True),
        ".parquet": PARQUET,
        ".pq": PARQUET,
        ".npz": Reader(read_npz, pickles=True),
        ".npy": Reader(read_npy, columns=False, pickles=True),
        **dict.fromkeys((".pt", ".pth", ".pkl", ".pickle", ".plk"), Reader(read_pickle, pickles=True)),
    }
)
# What tables of labels are written as.
TABLE_ENDINGS = (".parquet", ".csv", ".xlsx")
GROUP = "handful.fields"
FOLDER = Path(__file__).parents[1] / "fields"


def _checked(name: str, value: Field) -> None:
    if not isinstance(value, Field):
        raise OptionError(f"field {name!r} must be a handful.reading.Field, got {type(value).__name__}")
    for part, taken in (("readers", READERS), ("writers", TABLE_ENDINGS), ("tasks", ())):
        for ending in getattr(value, part):
            if not ending.startswith(".") or ending != ending.lower():
                raise OptionError(
                    f"field {name!r} must have endings in lower case with a dot, such as '.mgf', got {ending!r} in "
                    f"its {part}"
                )
            if ending in taken:
                raise OptionError(f"handful has {part} of {ending} files already; choose another ending")


def _own() -> Iterator[EntryPoint]:
    """Yield handful's own fields: the packages below `handful.fields`, not loaded yet."""
    for found in pkgutil.iter_modules([str(FOLDER)]):
        yield EntryPoint(found.name, f"{GROUP}.{found.name}:FIELD", GROUP)


FIELDS: Registry[Field] = Registry(GROUP, {}, _checked, own_points=tuple(_own()))


def register_field(name: str, field: Field) -> None:
    """Add a field for the rest of the program; an entry point of the group `handful.fields` adds one to all programs.

    If two fields know the same ending, that of handful counts, and then the one that was added first.

    Parameters
    ----------
    name : str
        What the field is called; those of handful are taken.
    field : Field
        Its formats and rules.

    Examples
    --------
    >>> register_field("a field without files", Field())
    >>> "a field without files" in FIELDS
    True
    """
    FIELDS.register(name, field)


def reader_of(ending: str) -> Reader | None:
    """Return the reader of files with this ending; None if there is none."""
    return READERS.get(ending) or _of_fields("readers").get(ending)


def readers() -> dict[str, Reader]:
    """Return all readers by the endings of their files."""
    return {**READERS, **_of_fields("readers")}


def writers() -> dict[str, Writer]:
    """Return the writers of labels into files of fields, by the endings of these files."""
    return _of_fields("writers")


def writer_of(path: Path | None) -> Writer | None:
    """Return the writer of labels into a file of a field, by the ending of the path; None if there is none."""
    return None if path is None else writers().get(path.suffix.lower())


def task_writers() -> dict[str, Writer]:
    """Return the writers of tasks for people who label in another tool, by the endings of their files."""
    return _of_fields("tasks")


def score_formats() -> tuple[ScoreFormat, ...]:
    """Return the formats of scores that other tools wrote."""
    return tuple(one for field in FIELDS.values() for one in field.scores)


def site_formats() -> tuple[SiteFormat, ...]:
    """Return the formats of files that say where and when pictures or recordings were made."""
    return tuple(one for field in FIELDS.values() for one in field.sites)


def site_format(path: Path) -> SiteFormat | None:
    """Return the format of a file that says where and when files were made; None for a plain table."""
    return next((one for one in site_formats() if one.holds(path)), None)


def class_name(label: str) -> ClassName:
    """Return what people call a class: as its field writes names, or its label."""
    rules = (field.name_of for field in FIELDS.values() if field.name_of is not None)
    return next((found for rule in rules if (found := rule(label)) is not None), ClassName("", label))


def is_copied(path: Path | None) -> bool:
    """Whether labels go into a copy of a file with this ending."""
    writer = writer_of(path)
    return writer is not None and writer.into_copy


def candidate_rule(asked: Any) -> tuple[CandidateRule, float] | None:
    """Return the rule that `precursor:0.01` names, and its number; None for anything else, such as a path."""
    if not isinstance(asked, (str, os.PathLike)):
        return None
    name, colon, number = os.fspath(asked).partition(":")
    rules: dict[str, CandidateRule] = _of_fields("candidates")
    if not colon or name not in rules:
        return None
    try:
        return rules[name], float(number)
    except ValueError as error:
        raise OptionError(f"candidates by {name} need a number, such as {name}:0.01, got {asked}") from error


def _of_fields(part: str) -> dict[str, Any]:
    """Return one part of all fields; of two values with one key, the first."""
    found = dict[str, Any]()
    for field in FIELDS.values():
        for key, value in getattr(field, part).items():
            found.setdefault(key, value)
    return found
