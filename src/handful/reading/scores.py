"""Which tool wrote a file of scores: told by what is in it, not by its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError
from handful.machine.json_files import JsonFile
from handful.machine.untrusted import absent, refuse_irregular
from handful.reading.field import ScoreFormat
from handful.reading.registry import score_formats
from handful.reading.tool_scores import ToolScores

# Bytes of the first line that tell the format.
MOST_OF_A_LINE = 100_000


def read_scores(path: Path) -> ToolScores:
    r"""Read scores in any format that a field has: of SpeciesNet, MegaDetector, BirdNET or Raven.

    Examples
    --------
    >>> import tempfile
    >>> table = Path(tempfile.mkdtemp()) / "birds.csv"
    >>> header = "Start (s),End (s),Scientific name,Common name,Confidence"
    >>> _ = table.write_text(f"{header}\n0,3,Turdus merula,Blackbird,0.8\n")
    >>> read_scores(table).classes
    [['Turdus merula_Blackbird']]
    """
    refuse_irregular(path, FileFormatError)
    if not os.path.exists(path):
        raise absent(path, FileFormatError)
    found = score_format(path)
    if found is None:
        raise FileFormatError(f"{path} has no scores in a known format; expected {_titles()}")
    return found.read(path)


def score_format(path: Path) -> ScoreFormat | None:
    """Return the format of a file of scores; None if it has no scores in a known format."""
    content: Any
    if path.suffix.lower() == ".json":
        content = JsonFile.read(path, _titles()).content
    else:
        with path.open("rb") as stream:
            content = stream.readline(MOST_OF_A_LINE).decode("utf-8-sig", "replace").strip()
    return next((one for one in score_formats() if one.holds(content)), None)


def _titles() -> str:
    return " or ".join(one.title for one in score_formats())
