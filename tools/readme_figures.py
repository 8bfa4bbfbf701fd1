"""Write the figures of README.md from what was measured: python tools/readme_figures.py.

The text between the two markers in README.md is made here. Its table is that of `python studies/real_uses.py DATA`, the
sentences below it are those of `studies/open_batches.py`, `studies/sessions.py` and `tools/draw_paddle.py`. A test
renders it again and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "studies"))

from pages import not_again  # noqa: E402

README = ROOT / "README.md"
RESULTS = ROOT / "studies" / "results"
BEGIN, END = "<!-- figures: python tools/readme_figures.py -->\n", "<!-- end of figures -->\n"
NOT_YET = "Not measured yet.\n"
ITEMS = 80  # of a batch of `studies/sessions.py`
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
        about += f", {share:.0f} % belong to no class"
    return f"| {' | '.join([about, *(f'{way.mean():.1f}' for way in ways), *gains])} |"


def gain(differences: npt.NDArray[np.float64]) -> str:
    """Return the mean of paired differences, in points, and half of its 95 % interval."""
    half = 1.96 * differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.1f} ± {half:.1f}"


def better(batches: list[dict[str, Any]]) -> str:
    """Return the rule for each item alone that is right more often: the linear classifier or the nearest mean."""
    return max(("alone", "means"), key=lambda rule: float(np.mean([one[rule] for one in batches])))


def figures() -> str:
    """Return the table, one row for each use that was measured."""
    kept = read("real_uses.json")
    found = {cell: batches for cell in CELLS if (batches := kept.get(cell))}
    if not found:
        return NOT_YET
    heads = ("data", "each alone", "`sparse_em`", "jointly", "gain on each alone", "gain on `sparse_em`")
    table = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(line(*one) for one in found.items())]
    counts = " or ".join(map(str, sorted({len(batches) for batches in found.values()})))
    rejected = max(np.mean([one["known_rejected"] for one in batches]) for batches in found.values())
    share = f"at most {rejected:.1f} %" if rejected >= 0.05 else "fewer than 0.1 %"
    said = f"In each row, {share} of the items that have a class were called unknown."
    said = " ".join([f"Each figure is a mean over {counts} batches. {said}", *not_again("real_uses")])
    return "\n".join([*table, "", said, "", *sentences()]) + "\n"


def read(name: str) -> dict[str, Any]:
    """Return results by the name of their file; nothing if they were not measured."""
    file = RESULTS / name
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def sentences() -> list[str]:
    """Return what is found of unknown items, what a review takes, and how PADDLE compares, one sentence each."""
    cells = read("open_batches/confirmation.json")["cells"].values()

    def rejected(part: str) -> str:
        unknown, known = (
            np.mean([np.mean([row[name] for row in cell["parts"][part]["rows"]]) for cell in cells])
            for name in ("unknown_rejected", "known_rejected")
        )
        return f"{unknown:.0f} % of these, and {known:.0f} % of the others"

    halves = [row for file in sorted((RESULTS / "sessions/confirmation").glob("*.json")) for row in careful(file)]
    stop, seen, wrong = (np.mean([n for row in halves for n in row[name]]) for name in ("stop", "all", "wrong"))
    ways: dict[str, list[float]] = {}
    for bank in read("paddle.json").values():
        for way, accuracies in bank.items():
            ways.setdefault(way, []).extend(accuracies)
    published, found = (np.mean(ways[f"PADDLE, {scale} scale"]) for scale in ("published", "found"))
    alone, default = (np.mean(ways[way]) for way in ("nearest prototype", "the default of handful"))
    return [
        "- [Unknown items](docs/measured/open_batches.md), where 30 % belong to no class: "
        f"{rejected('0.3')}, are called unknown; {rejected('told 0.3')}, if you say how many to expect; "
        f"{rejected('answers 0.3')}, after ten answers.",
        f"- [A review](docs/measured/sessions.md) of 80 items: it says that you may stop after {stop:.0f} answers, "
        f"when {100 * wrong / ITEMS:.1f} % of the labels are wrong, and a class with one or two items may still be "
        f"missed; all items are seen in {seen:.0f} decisions.",
        f"- [PADDLE](docs/measured/scale.md) on sentences and photographs: {found:.1f} % at the found scale, "
        f"{published:.1f} at the published one; on vectors of unit length {alone:.1f} by the nearest prototype, "
        f"{default:.1f} by the default." + "".join(f" {sentence}" for sentence in not_again("paddle")),
    ]


def careful(file: Path) -> list[dict[str, Any]]:
    """Return the sessions of one bank with a person who makes no mistakes."""
    parts = json.loads(file.read_text(encoding="utf-8"))
    rows = [row for name, rows in parts.items() if name.startswith("sessions") for row in rows]
    return [row for row in rows if row["person"] == "careful"]


def with_figures(text: str) -> str:
    """Return the README's text with the figures as the files have them now."""
    before, _, rest = text.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"README.md must have the lines {BEGIN.strip()!r} and {END.strip()!r}, one after the other")
    return f"{before}{BEGIN}\n{figures()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_figures(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(README)
