"""Which tool wrote a file of scores: told by what is in it, not by its name."""

from __future__ import annotations

import os
from pathlib import Path

from handful.errors import FileFormatError
from handful.exchange.birdnet import layout_of, read_birdnet
from handful.exchange.json_files import JsonFile
from handful.exchange.megadetector import read_megadetector
from handful.exchange.scored import ToolScores
from handful.exchange.speciesnet import read_speciesnet
from handful.machine.untrusted import absent, refuse_irregular


def read_scores(path: Path) -> ToolScores:
    r"""Read scores of SpeciesNet or MegaDetector (JSON), BirdNET (CSV) or a Raven selection table.

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
    if path.suffix.lower() == ".json":
        content = JsonFile.read(path, "scores of SpeciesNet or MegaDetector").content
        if isinstance(content, dict) and "predictions" in content:
            return read_speciesnet(path)
        if isinstance(content, dict) and "images" in content:
            return read_megadetector(path)
    else:
        with path.open("rb") as stream:
            first = stream.readline(100_000).decode("utf-8-sig", "replace")
        if layout_of(first.strip()) is not None:
            return read_birdnet(path)
    raise FileFormatError(
        f"{path} has no scores in a known format; expected predictions of SpeciesNet or results of MegaDetector "
        "(.json), BirdNET's table of results (.csv) or a selection table of Raven (.txt)"
    )
