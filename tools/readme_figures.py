"""Write the figures of README.md from the files of the studies: python tools/readme_figures.py.

The text between the two markers in README.md is made here from the clean cells of `studies/results/harm`, which
`python studies/harm.py DATA --group GROUP` writes. A test renders it again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "studies" / "results" / "harm"
BEGIN, END = "<!-- figures: python tools/readme_figures.py -->\n", "<!-- end of figures -->\n"
NOT_YET = "Not measured yet.\n"
# Banks that nothing was tuned on come first.
GROUPS = {"confirmation": "Not used for tuning", "tuning": "Used for tuning"}
SHOTS, PRESENT = 5, (5, 20)
ALONE = ("prototype", "head")
KINDS = {"minilm": "sentences", "efflite0": "photographs", "conv4": "characters"}


def cells(group: str) -> list[dict[str, Any]]:
    """Return the cells shown of a group, as the study saved them."""
    file = RESULTS / group / "clean.json"
    parts = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    rows = [row for part in parts.values() for row in part["rows"]]
    return [row for row in rows if row["shots"] == SHOTS and row["present"] in PRESENT]


def line(rows: Sequence[dict[str, Any]]) -> str:
    """Return one row of the table; the gain is over the better of the two rules that label each item alone."""
    name, _, encoder = rows[0]["data"].rpartition("-")
    shown = [f"{name}, {KINDS[encoder]}", str(rows[0]["classes"])]
    for row in sorted(rows, key=lambda row: PRESENT.index(row["present"])):
        found = row["accuracy"]
        alone = max(ALONE, key=found.__getitem__)
        gain, half = row["ahead"][alone]
        shown += [f"{found[alone]:.1f}", f"{found['roll_call']:.1f}", f"{gain:+.1f} ± {half:.1f}"]
    return f"| {' | '.join(shown)} |"


def figures() -> str:
    """Return the table, one row for each data set that was measured, and what each group is."""
    found = {group: rows for group in GROUPS if (rows := cells(group))}
    if not found:
        return NOT_YET
    measured = [what for present in PRESENT for what in (f"{present} occur: alone", "jointly", "gain")]
    table = [f"| data | classes | {' | '.join(measured)} |", "|---" * (2 + len(measured)) + "|"]
    about = []
    for group, rows in found.items():
        names = list(dict.fromkeys(row["data"] for row in rows))
        table += [line([row for row in rows if row["data"] == name]) for name in names]
        about.append(f"{GROUPS[group]}: {', '.join(name.rpartition('-')[0] for name in names)}.")
    batches = sorted({row["batches"] for rows in found.values() for row in rows})
    about.append(f"Each figure is a mean over {' or '.join(map(str, batches))} batches.")
    return "\n".join(table) + "\n\n" + " ".join(about) + "\n"


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
