"""Mass spectra in `.mgf`: answers go into a copy, as three parameters of each spectrum; all other lines stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handful.errors import FileFormatError
from handful.fields.spectra.read import BEGIN
from handful.machine.outputs import written_whole
from handful.machine.untrusted import printable, read_bytes, writable
from handful.reading.delimited import encoding_of

if TYPE_CHECKING:
    from handful.estimators import Answer

OURS = "HANDFUL_"


class Compound(NamedTuple):
    """The compound of a spectrum, its certainty, and the chance that it is none of the library (None: not judged)."""

    label: str
    certainty: float
    unknown: float | None


def write_spectra(found: Answer, out: Path) -> None:
    """Write the compounds of `found` into a copy of the `.mgf` file that the spectra came from."""
    from handful.classification.labelled import about_of, predictions

    table = predictions(found)
    source = about_of(found).batch.source
    rows = zip(table["row"], table["label"], table["certainty"], table["unknown"], strict=True)
    assert source is not None
    write_mgf(source, {row: Compound(*rest) for row, *rest in rows}, out)


def write_mgf(source: Path, answers: Mapping[int, Compound], out: Path) -> None:
    """Write a copy of `source` to `out`, which may be the same; `answers` are those of spectra, counted from 0.

    Parameters of ours that are there already are replaced. The file appears complete or not at all.
    """
    encoding = encoding_of(source)
    text = read_bytes(source, FileFormatError).decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    ending = "\r\n" if "\r\n" in text else "\n"
    number = -1
    lines = list[str]()
    for line in re.split("\r\n|\n|\r", text):
        if line.lstrip().upper().startswith(OURS):
            continue
        lines.append(line)
        if line.strip().upper() == BEGIN:
            number += 1
            lines.extend(_lines_of(answers[number]) if number in answers else ())
    with written_whole(out) as unfinished:
        unfinished.write_bytes(ending.join(lines).encode(encoding, "surrogateescape"))


def _lines_of(answer: Compound) -> list[str]:
    # A name from a library may hold ends of lines, which would be lines of the copy.
    lines_of_answer = [f"{OURS}LABEL={printable(writable(answer.label))}", f"{OURS}CERTAINTY={answer.certainty:.4f}"]
    return lines_of_answer if answer.unknown is None else [*lines_of_answer, f"{OURS}UNKNOWN={answer.unknown:.4f}"]
