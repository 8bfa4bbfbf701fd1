"""Write the figures of README.md from the files of the studies: python tools/readme_figures.py.

The text between the two markers in README.md is made here from `studies/results/calibrated/*.json`, which
`python studies/calibrated.py BANK …` writes. A test renders it again and compares.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "studies" / "results" / "calibrated"
BEGIN, END = "<!-- figures: python tools/readme_figures.py -->\n", "<!-- end of figures -->\n"
# Five shots, five classes present: the paper's own setting.
CELL = "5/5"


def figures() -> str:
    """Return the table, one row for each bank whose cell is there."""
    lines = ["| bank | K | tasks | each item alone | jointly | gain |", "|---|---|---|---|---|---|"]
    for file in sorted(RESULTS.glob("*.json")):
        cell = json.loads(file.read_text(encoding="utf-8")).get(CELL)
        if cell is not None:
            sizes = f"{file.stem} | {cell['n_classes']} | {cell['n_tasks']}"
            accuracy = f"{cell['nearest_prototype']:.1f} | {cell['calibrated_paddle']:.1f}"
            lines.append(f"| {sizes} | {accuracy} | {cell['gain']:+.1f} ± {cell['gain_interval']:.1f} |")
    return "\n".join(lines) + "\n"


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
