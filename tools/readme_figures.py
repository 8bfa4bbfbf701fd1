"""Write the figures of README.md and of docs/understand/comparison.md: python tools/readme_figures.py.

The text between the two markers is made here from what `python studies/real_uses.py DATA` measured: three rows for the
README, all for the page. A test renders both again and compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "studies"))

from pages import not_again  # noqa: E402

README = ROOT / "README.md"
COMPARISON = ROOT / "docs" / "understand" / "comparison.md"
RESULTS = ROOT / "studies" / "results"
BEGIN, END = "<!-- figures: python tools/readme_figures.py -->\n", "<!-- end of figures -->\n"
NOT_YET = "Not measured yet.\n"
# Rows of the README: two with a gain, and one where looking at one item at a time is as good or better.
IN_README = ("clips, nothing unknown", "spectra, nothing unknown", "requests, some unknown")
CELLS = {
    "utterances, nothing unknown": ("who speaks, three-second utterances", 60, 3, "4 to 6"),
    "clips, nothing unknown": ("who speaks, half-second clips", 60, 3, "4 to 6"),
    "groceries, nothing unknown": ("groceries in shops, phone photographs", 81, 5, "6"),
    "spectra, nothing unknown": ("mass spectra of another laboratory", 1152, "3 to 6", "10 to 30"),
    "candidates, nothing unknown": ("the same, with candidates by precursor mass", 1152, "3 to 6", "10 to 30"),
    "sounds, nothing unknown": ("environmental sounds", 50, 5, "5"),
    "requests, nothing unknown": ("requests to a company", 57, "1 to 42", "24 to 36"),
    "requests, some unknown": ("all requests to it", 57, "1 to 42", "9 to 21"),
}


def line(cell: str, batches: list[dict[str, Any]]) -> str:
    """Return one row of the table; gains are paired, batch by batch."""
    what, classes, shots, present = CELLS[cell]
    ways = [np.array([one[name] for one in batches]) for name in (better(batches), "control", "joint")]
    joint = ways[-1]
    gains = [gain(joint - way) for way in ways[:-1]]
    about = f"{what}: {classes:,} classes, {shots} examples of each, {present} occur"
    if share := np.mean([one["share"] for one in batches]):
        about += f", {share:.0f}% belong to no class"
    return f"| {' | '.join([about, *(f'{way.mean():.1f}' for way in ways), *gains])} |"


def gain(differences: npt.NDArray[np.float64]) -> str:
    """Return the mean of paired differences, in points, and half of its 95% interval."""
    half = 1.96 * differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.1f} ± {half:.1f}"


def better(batches: list[dict[str, Any]]) -> str:
    """Return the rule for each item alone that is right more often: the linear classifier or the nearest mean."""
    return max(("alone", "means"), key=lambda rule: float(np.mean([one[rule] for one in batches])))


def figures(cells: Iterable[str]) -> str:
    """Return the table of these uses, as far as they were measured, with a sentence about what was called unknown."""
    kept = read("real_uses.json")
    found = {cell: batches for cell in cells if (batches := kept.get(cell))}
    if not found:
        return NOT_YET
    heads = ("data", "one at a time", "`sparse_em`", "handful", "gain on one at a time", "gain on `sparse_em`")
    table = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(line(*one) for one in found.items())]
    rejected = max(np.mean([one["known_rejected"] for one in batches]) for batches in found.values())
    share = f"at most {rejected:.1f}%" if rejected >= 0.05 else "fewer than 0.1%"
    said = f"In each row, {share} of the items that have a class were called unknown."
    return "\n".join([*table, "", " ".join([said, *not_again("real_uses")])]) + "\n"


def read(name: str) -> dict[str, Any]:
    """Return results by the name of their file; nothing if they were not measured."""
    file = RESULTS / name
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def with_figures(text: str) -> str:
    """Return the README's text with the figures as the files have them now."""
    return _between(text, figures(IN_README))


def with_all_figures(text: str) -> str:
    """Return the text of the page with the figures as the files have them now."""
    return _between(text, figures(CELLS))


def _between(text: str, made: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"there must be the lines {BEGIN.strip()!r} and {END.strip()!r}, one after the other")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


if __name__ == "__main__":
    for document, write in ((README, with_figures), (COMPARISON, with_all_figures)):
        document.write_text(write(document.read_text(encoding="utf-8")), encoding="utf-8")
        print(document)
