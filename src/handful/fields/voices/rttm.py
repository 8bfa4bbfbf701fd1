"""RTTM: who speaks when. One line per stretch of speech, `SPEAKER file channel start duration <NA> <NA> name …`.

Fields stand between spaces, so a name cannot hold any; `_` is written instead. `speaker` is a name, or the number of a
cluster of a diarisation tool. Lines about other things (`SPKR-INFO`, `LEXEME`, …) and comments (`;;`) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from handful.errors import FileFormatError, OptionError
from handful.machine.outputs import written_whole
from handful.machine.untrusted import finite, lines_of, read_text, writable

ENDING = ".rttm"
# Columns of a segment, and other names of the first: `numpy.savez` can save no array that is called `file`.
FILE_NAMES = ("file", "recording", "uri")
COLUMNS = ("file", "start", "end", "speaker", "channel")
# What else a line may be about.
OTHER_TYPES = (
    *("SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER", "EDIT", "IP", "SU", "CB"),
    *("A/P", "SPKR-INFO"),
)
FEWEST_FIELDS = 8
MOST_FIELDS = 10
MISSING = "<NA>"
# Seconds beyond which a double cannot hold milliseconds, about 300 years.
LATEST = 1e10


class Segment(NamedTuple):
    """A stretch of speech in seconds, who speaks there, and how certain that is."""

    file: str
    start: float
    end: float
    speaker: str
    confidence: float
    channel: str = "1"


def read_rttm(path: Path) -> dict[str, list[Any]]:
    """Return the columns `file`, `start`, `end`, `speaker` and `channel`, one row per stretch, in their order.

    A name that is missing (`<NA>`) is None.
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for number, line in enumerate(lines_of(read_text(path, FileFormatError)), 1):
        fields = line.split()
        if not fields or line.lstrip().startswith(";;") or fields[0] in OTHER_TYPES:
            continue
        where = f"line {number} of {path}"
        if fields[0] != "SPEAKER":
            raise FileFormatError(
                f"{where} must begin with SPEAKER, or with another type of RTTM, got {fields[0]!r:.40}"
            )
        if not FEWEST_FIELDS <= len(fields) <= MOST_FIELDS:
            raise FileFormatError(
                f"{where} must have {FEWEST_FIELDS} to {MOST_FIELDS} fields between spaces, got {len(fields)}; a name "
                "cannot contain spaces"
            )
        start, duration = (_seconds(text, where) for text in fields[3:5])
        speaker = None if fields[7] == MISSING else fields[7]
        # Digits beyond those of the file would be those of binary fractions.
        row = (fields[1], start, round(start + duration, 6), speaker, fields[2])
        for name, value in zip(COLUMNS, row, strict=True):
            columns[name].append(value)
    if not columns["file"]:
        raise FileFormatError(f"{path} has no line that begins with SPEAKER, so there are no segments")
    return columns


def _seconds(text: str, where: str) -> float:
    try:
        found = finite(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= LATEST:
        raise FileFormatError(
            f"{where} must have start and duration in seconds, from 0 to {LATEST:,.0f}, got {text!r:.40}"
        )
    return found


def write_rttm(segments: Sequence[Segment], out: Path) -> None:
    """Write one SPEAKER line per segment, in their order; the file appears complete or not at all.

    Spaces within names become `_`; two names that this makes equal are refused.
    """
    files, speakers = (_fields({getattr(one, name) for one in segments}, name) for name in ("file", "speaker"))
    for number, one in enumerate(segments):
        if not (math.isfinite(one.start) and math.isfinite(one.end) and 0 <= one.start <= one.end):
            raise FileFormatError(
                f"segment {number} must have a start and an end in seconds, got {one.start} and {one.end}; correct them"
            )
    with written_whole(out) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as stream:
        for one in segments:
            times = f"{one.start:.3f} {one.end - one.start:.3f}"
            who = f"{MISSING} {MISSING} {speakers[one.speaker]} {one.confidence:.4f} {MISSING}"
            stream.write(f"SPEAKER {files[one.file]} {_field(one.channel)} {times} {who}\n")


def _fields(names: set[str], what: str) -> dict[str, str]:
    """Return each name as one field of a line."""
    fields = {name: _field(name) for name in sorted(names)}
    taken: dict[str, str] = {}
    for name, field in fields.items():
        if (other := taken.setdefault(field, name)) != name:
            raise OptionError(
                f"{what}s {other!r} and {name!r} are both {field!r} in RTTM, which has no spaces; rename one of them"
            )
    return fields


def _field(name: str) -> str:
    return "_".join(writable(name).split()) or MISSING


def segments_of(
    columns: Mapping[str, Sequence[Any]], names: Sequence[str], certainty: Sequence[float]
) -> list[Segment]:
    """Return the segments of a batch that has the columns `file`, `start` and `end`, with these names."""
    file = next((name for name in FILE_NAMES if name in columns), FILE_NAMES[0])
    lost = next((name for name in (file, "start", "end") if name not in columns), None)
    if lost is not None:
        raise OptionError(
            f"RTTM needs the columns file (or recording), start and end of the batch, and there is no {lost!r}; add "
            "it, give the .rttm file as the batch, or write .csv or .parquet"
        )
    found = []
    for row, (start, end) in enumerate(zip(columns["start"], columns["end"], strict=True)):
        try:
            times = finite(start), finite(end)
        except ValueError:
            times = (math.nan, math.nan)
        channel = str(columns["channel"][row]) if "channel" in columns else "1"
        found.append(Segment(str(columns[file][row]), *times, names[row], certainty[row], channel))
    return found
