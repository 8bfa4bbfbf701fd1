"""BirdNET's results: the CSV table, and the selection table of Raven, with one row per stretch of sound and species.

An item is a stretch of a recording; its rows have a species and a confidence each. Answers are added as two columns on
the right, the same in all rows of an item; rows, columns and numbers stay as they are.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.outputs import written_whole
from handful.machine.untrusted import finite, read_bytes, read_text
from handful.reading.class_names import plain_label
from handful.reading.tool_scores import ItemLabel, ToolScores, checked_scores

# Columns of an answer.
LABEL = "handful label"
CERTAINTY = "handful certainty"


@dataclass(frozen=True)
class SoundTable:
    """Which columns hold what: beginning and end of the stretch, name and second name of the species, and file."""

    kind: str
    delimiter: str
    start: str
    end: str
    species: str
    common: str
    files: tuple[str, ...]


TABLE = SoundTable(
    "BirdNET's table of results", ",", "Start (s)", "End (s)", "Scientific name", "Common name", ("File", "Begin Path")
)
RAVEN = SoundTable(
    "a selection table of Raven", "\t", "Begin Time (s)", "End Time (s)", "Species Code", "Common Name",
    ("Begin Path", "Begin File", "File"),
)  # fmt: skip


def layout_of(header: str) -> SoundTable | None:
    """Return the layout whose columns a line of names has; None if it is another table."""
    for layout in (TABLE, RAVEN):
        names = {name.strip().strip('"') for name in header.split(layout.delimiter)}
        if {layout.start, layout.end, layout.common, "Confidence"} <= names:
            return layout
    return None


def _header_and_rows(
    path: Path, text: str, layout: SoundTable, rules: dict[str, Any]
) -> tuple[list[str], list[list[str]]]:
    try:
        header, *rows = (row for row in csv.reader(io.StringIO(text, newline=""), **rules) if row)
    except csv.Error as error:
        raise FileFormatError(f"{path} is not {layout.kind} ({error}); write it again") from error
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise FileFormatError(f"row {number} of {path} has {len(row)} values, its header {len(header)}")
    if not rows:
        raise FileFormatError(f"{path} has no rows, so there is nothing to label")
    return header, rows


def read_birdnet(path: Path) -> ToolScores:
    """Read all rows, and put those of one stretch together; of a species that occurs twice, the better row counts."""
    text = read_text(path, FileFormatError)
    layout = layout_of(text.split("\n", 1)[0].strip("\r"))
    if layout is None:
        raise FileFormatError(
            f"{path} is neither {TABLE.kind} nor {RAVEN.kind}; these have columns such as {TABLE.start!r}, "
            f"{TABLE.end!r}, {TABLE.common!r} and 'Confidence'"
        )
    # Raven reads quotes as letters, and its tables have none.
    rules: dict[str, Any] = {"delimiter": layout.delimiter, "quoting": csv.QUOTE_MINIMAL}
    if layout is RAVEN:
        rules |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
    header, rows = _header_and_rows(path, text, layout, rules)
    index = {name.strip(): number for number, name in enumerate(header)}
    column_of_file = next((name for name in layout.files if name in index), None)
    stretches: dict[tuple[str, str, str], dict[str, float]] = {}
    item_of = list[int]()
    order: dict[tuple[str, str, str], int] = {}
    for number, row in enumerate(rows):
        file = row[index[column_of_file]] if column_of_file else path.name
        key = (file, row[index[layout.start]], row[index[layout.end]])
        common = plain_label(row[index[layout.common]])
        scientific = plain_label(row[index[layout.species]]) if layout.species in index else ""
        # As in the lists of species; Raven's tables have a code instead of the scientific name.
        species = f"{scientific}_{common}" if layout is TABLE else common
        try:
            confidence = finite(row[index["Confidence"]])
        except ValueError:
            confidence = -1.0
        checked_scores([species], [confidence], f"row {number} of {path}")
        item_of.append(order.setdefault(key, len(order)))
        scores = stretches.setdefault(key, {})
        scores[species] = max(confidence, scores.get(species, 0.0))

    marked = read_bytes(path, FileFormatError).startswith(codecs.BOM_UTF8)

    def write(answers: Sequence[ItemLabel], out: Path) -> None:
        kept = [number for number, name in enumerate(header) if name not in (LABEL, CERTAINTY)]
        ending = "\r\n" if "\r\n" in text else "\n"
        encoding = "utf-8-sig" if marked else "utf-8"
        with written_whole(out) as unfinished, unfinished.open("w", encoding=encoding, newline="") as stream:
            writer = csv.writer(stream, **rules, lineterminator=ending)
            writer.writerow([*(header[number] for number in kept), LABEL, CERTAINTY])
            for row, item in zip(rows, item_of, strict=True):
                answer = answers[item]
                writer.writerow([*(row[number] for number in kept), answer.label, f"{answer.certainty:.4f}"])

    keys = list(stretches)
    return ToolScores(
        "sigmoid",
        tuple(f"{file} {start}–{end} s" for file, start, end in keys),
        tuple(file for file, _, _ in keys),
        [list(stretches[key]) for key in keys],
        [list(stretches[key].values()) for key in keys],
        write,
        {"file": [key[0] for key in keys], "start": [key[1] for key in keys], "end": [key[2] for key in keys]},
    )
