"""Write the documents about harm from what `harm.py` measured: python studies/harm_page.py.

Reads `studies/results/harm.json`; writes the text between `<!-- harm NAME -->` and `<!-- end of harm NAME -->` in
`docs/harm_results.md`, `docs/when_transduction_hurts.md` and `README.md`. A test renders it again and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from handful.reports.tables import markdown_table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results" / "harm.json"
DOCUMENTS = tuple(ROOT / name for name in ("README.md", "docs/when_transduction_hurts.md", "docs/harm_results.md"))
MARKED = re.compile(r"(?P<begin><!-- harm (?P<name>\w+) -->\n).*?(?P<end><!-- end of harm (?P=name) -->\n)", re.DOTALL)
CHANGES = {
    "unchanged": "unchanged",
    "typos": "typing mistakes",
    "dropped": "30 % of the words missing",
    "capitals": "capitals and exclamation marks",
    "blur": "blurred",
    "noise": "noisy",
    "contrast": "pale",
    "jpeg": "compressed too much",
    "grey": "grey",
}
Row = dict[str, Any]
# What is kept of each condition: `by`, the version and method, and `rows`.
Found = dict[str, dict[str, Any]]


def points(row: Row) -> str:
    """Points of accuracy that labelling jointly adds, with an interval where batches are independent."""
    if "half_width" in row:
        return f"{row['gain']:+.1f} ± {row['half_width']:.1f}"
    return f"{row['jointly'] - row['alone']:+.1f}"


def one(rows: list[Row], **wanted: object) -> Row:
    """Return the only row with these values."""
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found


def company(row: Row) -> str:
    """Name of the company whose requests they are."""
    return str(row["data"]).split("-")[1]


def summary(found: Found) -> str:
    """Render the short table: one line for each way to come to harm."""
    lines: list[tuple[str, Row]] = []
    for row in found["requests"]["rows"]:
        if row["batch"] == 75:
            which = ", with requests that fit no intent in the batch" if row["open"] else ""
            lines.append((f"real requests to a company ({company(row)}){which}", row))
    cells = one(found["laboratories"]["rows"], most_examples=5)
    lines.append(("cells from another laboratory, at most 5 examples per type", cells))
    strange = {**cells, "jointly": cells["jointly_open"]}
    lines.append(("the same, with cells of unknown types in the batch", strange))
    for data, change, what in (
        ("caltech101-efflite0", "blur", "blurred photographs, clean catalogue"),
        ("clinc150-minilm", "typos", "sentences with typing mistakes, clean catalogue"),
    ):
        for present in (5, 20):
            row = one(found["shifted"]["rows"], data=data, change=change, present=present)
            lines.append((f"{what}, {present} classes present", row))
    for data in ("hwu64-minilm", "tinyimagenet200-efflite0"):
        row = one(found["shots"]["rows"], data=data)
        few = {"alone": row["alone_few"], "jointly": row["jointly_few"]}
        lines.append((f"1 to 50 examples per class ({data}), items of classes with 3 or fewer", few))
    for data in ("clinc150-minilm", "hwu64-minilm"):
        row = one(found["wrong_labels"]["rows"], data=data, wrong=0.2)
        lines.append((f"20 % of the examples wrongly labelled ({data})", row))
    cells_of = [[what, f"{row['alone']:.1f}", f"{row['jointly']:.1f}", points(row)] for what, row in lines]
    return markdown_table(["condition", "each item alone", "jointly", "difference"], cells_of)


def requests(rows: list[Row]) -> str:
    """Render real requests."""
    lines = [
        [
            company(row),
            row["intents"],
            "yes" if row["open"] else "no",
            row["batch"],
            row["batches"],
            f"{row['alone']:.1f}",
            f"{row['jointly']:.1f}",
            points(row),
            row["warned"],
            f"{row['auroc_probability']:.2f}" if row["open"] else "",
            f"{row['auroc_distance']:.2f}" if row["open"] else "",
        ]
        for row in rows
    ]
    titles = ["company", "intents", "requests of no intent", "batch", "batches", "alone", "jointly", "difference"]
    return markdown_table([*titles, "warned", "AUROC of 1 − p", "AUROC of the distance"], lines)


def laboratories(rows: list[Row]) -> str:
    """Render cells of two laboratories."""
    lines = [
        [
            row["most_examples"] or "all there are",
            row["catalogues"],
            row["batches"],
            f"{row['alone']:.1f}",
            f"{row['jointly']:.1f}",
            f"{row['jointly_open']:.1f}",
            row["warned"],
        ]
        for row in rows
    ]
    titles = ["examples per type, at most", "catalogues", "batches", "alone", "jointly"]
    return markdown_table([*titles, "jointly, unknown cells in the batch too", "warned"], lines)


def compared(rows: list[Row], *named: tuple[str, str]) -> str:
    """Render paired accuracies under the conditions named, key and title."""
    lines = [
        [
            *(_said(key, row[key]) for key, _ in named),
            row["batches"],
            f"{row['alone']:.1f}",
            f"{row['jointly']:.1f}",
            points(row),
            f"{row['harmed']} ({row['harmed_warned']})",
        ]
        for row in rows
    ]
    titles = [*(title for _, title in named), "batches", "alone", "jointly", "difference"]
    return markdown_table([*titles, "harmed by more than 5 points (warned)"], lines)


def shots(rows: list[Row]) -> str:
    """Render unequal shots, poor and rich classes apart."""
    keys = ("alone", "jointly", "alone_few", "jointly_few", "alone_many", "jointly_many")
    lines = [
        [row["data"], row["batches"], *(f"{row[key]:.1f}" for key in keys), f"{row['harmed']} ({row['harmed_warned']})"]
        for row in rows
    ]
    titles = ["bank", "batches", "alone", "jointly", "alone, 3 examples or fewer", "jointly", "alone, 20 or more"]
    return markdown_table([*titles, "jointly", "harmed by more than 5 points (warned)"], lines)


def unknown(rows: list[Row]) -> str:
    """Render items of classes that the catalogue lacks."""
    lines = [
        [
            row["data"],
            f"{100 * row['unknown']:.0f} %",
            *(f"{100 * row[key]:.1f}" if key in row else "" for key in ("alone", "jointly")),
            *(f"{row[key]:.2f}" if key in row else "" for key in ("said_of_unknown", "auroc_probability")),
            f"{row['auroc_distance']:.2f}" if "auroc_distance" in row else "",
            f"{100 * row['false_classes']:.0f} %",
            f"{row['warned']} of {row['batches']}",
        ]
        for row in rows
    ]
    titles = ["bank", "unknown items", "known items, alone", "jointly", "mean probability of unknown items"]
    more = ["AUROC of 1 − p", "AUROC of the distance", "classes called present that are not", "warned"]
    return markdown_table([*titles, *more], lines)


def certainty(rows: list[Row]) -> str:
    """Render accuracy against confidence, and presence against what is there."""
    lines = [
        [
            row["data"],
            row["present"],
            row["batches"],
            f"{row['accuracy']:.1f}",
            f"{row['confidence']:.1f}",
            f"{row['calibration_error']:.1f}",
            f"{row['surely_present']:.1f}",
            *(f"{step['there']:.0f} ({step['classes']})" if step["classes"] else "" for step in row["presence"]),
        ]
        for row in rows
    ]
    steps = [step["from"] for step in rows[0]["presence"]]
    ranges = [f"{low:g} – {high:g}" for low, high in pairwise(steps)]
    titles = ["bank", "classes present", "batches", "accuracy", "mean probability", "calibration error"]
    return markdown_table([*titles, "really there of presence ≥ 0.99", *ranges, f"from {steps[-1]:g}"], lines)


TABLES: dict[str, Callable[[Found], str]] = {
    "by": lambda found: f"Measured with {'; '.join(sorted({kept['by'] for kept in found.values()}))}.",
    "summary": summary,
    "requests": lambda found: requests(found["requests"]["rows"]),
    "laboratories": lambda found: laboratories(found["laboratories"]["rows"]),
    "shifted": lambda found: compared(
        found["shifted"]["rows"], ("data", "bank"), ("change", "change"), ("present", "classes present")
    ),
    "shots": lambda found: shots(found["shots"]["rows"]),
    "wrong_labels": lambda found: compared(found["wrong_labels"]["rows"], ("data", "bank"), ("wrong", "wrong labels")),
    "unknown": lambda found: unknown(found["unknown"]["rows"]),
    "certainty": lambda found: certainty(found["certainty"]["rows"]),
}


def with_tables(text: str) -> str:
    """Return a document with its tables, each between its two markers, as the results are now."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))

    def rendered(match: re.Match[str]) -> str:
        return f"{match['begin']}\n{TABLES[match['name']](found)}\n\n{match['end']}"

    return MARKED.sub(rendered, text)


def _said(key: str, value: Any) -> object:
    if key == "wrong":
        return f"{100 * value:.0f} %"
    return CHANGES[value] if key == "change" else value


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(with_tables(document.read_text(encoding="utf-8")), encoding="utf-8")
        print(document)
