"""Write `docs/unknown_results.md` from what `unknown.py` measured: python studies/unknown_page.py.

Reads `studies/results/unknown/GROUP/CONDITION.json`. It says so where something was not measured yet. A test renders it
again and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from handful.fewshot.reports.tables import markdown_table
from harm_bars import Bar, Found, Row
from harm_data import read
from unknown import RESULTS
from unknown_bars import above_the_trial, bars, strange, thirds, where
from unknown_conditions import CONDITIONS, GROUPS
from unknown_scores import PUBLISHED, QUICK

PAGE = Path(__file__).resolve().parents[1] / "docs" / "unknown_results.md"
NOT_YET = "Not measured yet."
OPENING = """\
# Items of no class, measured

How well does handful recognise items whose class is not in the catalogue, and what does looking for them cost?
[None of these](how_to/classify.md#none-of-these) explains how to use it.

The figures below are those of the default of version 0.2.0. It was replaced by [one model](methods/roll_call.md) since,
and not all of this has been measured again.

`python studies/unknown.py DATA --group GROUP` measures, and `python studies/unknown_page.py` writes this page. The
docstring of `studies/unknown.py` says which data are needed and how catalogues and batches are drawn. All figures are
in percent or in points, with 95 % intervals (Student's t). They are computed over the means of catalogues; for requests
over shuffles, which put the same requests into other batches; for cells over the batches of the laboratory.

- **AUROC**: the chance that an unknown item has a larger `unknown` than a known one. 50 is no better than a guess.
- **share**: the share of unknown items. *Said* is `unknown_share`, *error* its mean distance from the truth, *inside*
  how often `unknown_interval` contains the truth, *width* the mean width of that interval.
- **rejected**: items that are called unknown. *Of the known* is the share of known items that are wrongly called so.
  *Open* are batches with enough evidence for something unknown; in all others nothing is rejected.
- **accuracy**: on known items. *Closed* is the default when every item has to have a class, *alone* the head for each
  item alone. *− closed* is the paired difference.
- **precision**, **recall**: of `present_classes`.
- **two found**: batches in which at least two of the three unknown classes are found. A class is found if there is a
  proposal with at least half of its items, and at least 80 % of the proposal belong to the class.

The *trial* was done before the method existed: a regression on distances that is trained on the catalogue, averaged
over the three nearest neighbours in the batch (`calibrated, averaged` below). For requests its figures are those of the
plain distance, and for real items of no class those of the best of four scores. It used three of the six batches of
lung cells; this page uses all six. EOL has to be told the share of unknown items, and is told one half.

```{contents}
:local:
:depth: 2
```
"""
TUNED = (
    "The method was tuned on these data, so these figures say little about other data. A first look at them led to "
    "four changes, out of about 15 variants: lone items count less in batches of many groups, fewer groups count "
    "fully, batches of mostly lone items have one variance, and the interval is that of the share of this batch."
)
SECTIONS = {
    "tuning": ("The tuning group", TUNED),
    "confirmation": (
        "The confirmation group",
        "These data were not used for tuning and were run once, after the last change.",
    ),
}
TITLES = {
    "nothing": "Nothing unknown",
    "large": "Nothing unknown, large batches",
    "removed": "Three classes that the catalogue lacks",
    "ten": "Three of ten classes unknown",
    "scattered": "Scattered unknown items",
    "proposals": "Proposals",
    "requests": "Real requests to a company",
    "real": "Real items of no class",
}
VERDICTS = {True: "reached", False: "**missed**", None: ""}
Column = tuple[str, Callable[[Row], object]]


def with_interval(key: str, title: str, digits: int = 1) -> Column:
    """Mean ± half width, where there is an interval."""

    def shown(row: Row) -> str:
        if key not in row:
            return ""
        mean, half = row[key]
        return f"{mean:.{digits}f} ± {half:.{digits}f}" if half < float("inf") else f"{mean:.{digits}f}"

    return title, shown


def mean(key: str, title: str, digits: int = 1) -> Column:
    """Show the mean alone."""
    return title, lambda row: f"{row[key][0]:.{digits}f}" if key in row else ""


CELL: Column = ("cell", where)
COUNTS: tuple[Column, ...] = (
    ("catalogues", lambda row: row["catalogues"]),
    ("batches", lambda row: row["batches"]),
    ("items", lambda row: f"{row['items']:g}"),
)
SHARE: tuple[Column, ...] = (
    mean("share", "share"),
    mean("said", "said"),
    with_interval("error", "error"),
    mean("covered", "inside", 0),
    mean("width", "width", 0),
    mean("opened", "open", 0),
    mean("called", "rejected"),
    mean("called_known", "of the known"),
)
LABELS: tuple[Column, ...] = (
    mean("accuracy", "accuracy"),
    mean("accuracy_closed", "closed"),
    mean("accuracy_alone", "alone"),
    with_interval("gain_closed", "− closed", 2),
    mean("precision", "precision"),
    mean("precision_closed", "closed"),
    mean("recall", "recall"),
    mean("recall_closed", "closed"),
)
FOUND: tuple[Column, ...] = (
    with_interval("two", "two found", 0),
    mean("found", "found"),
    mean("proposals", "proposals"),
)


def table(rows: Sequence[Row], *columns: Column) -> str:
    """Render rows under titles."""
    return markdown_table([title for title, _ in columns], [[show(row) for _, show in columns] for row in rows])


def scores(rows: Sequence[Row]) -> str:
    """AUROC of ours and of every other score."""
    names = {name: name.replace("_", ", ").replace("doubt", "1 − p") for name in (*QUICK, *PUBLISHED)}
    names |= {name: name.upper() for name in PUBLISHED}
    columns = [mean(f"auroc_{name}", title) for name, title in names.items()]
    return table(rows, CELL, with_interval("auroc_ours", "**ours**"), *columns)


def cells(rows: Sequence[Row]) -> str:
    """Render AUROC, shares and labels of every cell."""
    parts = []
    told = [row for row in rows if "auroc_ours" in row]
    if told:
        parts += ["AUROC:", scores(told)]
        if few := sorted({n for row in told for n in row.get("tasks_of", {}).values()}):
            parts.append(
                f"OSLO, OSTIM and EOL take long, and were given at most {few[-1]} batches of a cell. Ours minus these, "
                "on the same batches:"
            )
            compared = [row for row in told if f"ahead_{PUBLISHED[0]}" in row]
            ahead = [with_interval(f"ahead_{name}", f"− {name.upper()}") for name in PUBLISHED]
            parts.append(table(compared, CELL, *ahead))
    parts += ["Shares:", table(rows, CELL, *COUNTS, *SHARE), "Labels and classes present:", table(rows, CELL, *LABELS)]
    if any(strange(row) and row.get("classes") == 3 for row in rows):
        parts += ["Proposals:", table(rows, CELL, *FOUND)]
    return "\n\n".join(parts)


def proposals(rows: Sequence[Row]) -> str:
    """Render a cell and what happens once proposals are added."""
    again = [{**row["added"], "data": row["data"]} for row in rows]
    columns = (
        ("batches", lambda row: row["batches"]),
        with_interval("labelled_same", "labelled, same batch"),
        mean("rejected_same", "rejected"),
        with_interval("labelled_fresh", "labelled, other items"),
        mean("rejected_fresh", "rejected"),
    )
    text = "All proposals added as classes, and the batch labelled again; items of unknown classes that were found:"
    return "\n\n".join((cells(rows), text, table(again, ("data", where), *columns)))


def judged(required: Sequence[Bar]) -> str:
    """Render requirements and verdicts."""
    lines = [[bar.requirement, bar.measured, VERDICTS[bar.reached]] for bar in required]
    return markdown_table(["requirement", "measured", ""], lines)


def everything() -> dict[str, Found]:
    """Read the rows of every group and condition that were measured."""
    return {
        group: {
            condition: [row for part in parts.values() for row in part["rows"]]
            for condition in CONDITIONS
            if (parts := read(RESULTS / group / f"{condition}.json"))
        }
        for group in GROUPS
    }


def measured_with(group: str) -> str:
    """Say by which versions, and in how much processor time."""
    kept = [part for c in CONDITIONS for part in read(RESULTS / group / f"{c}.json").values()]
    versions = "; ".join(sorted({part["by"] for part in kept}))
    return f"Measured with {versions}, in {sum(part['seconds'] for part in kept) / 60:.0f} minutes on one thread."


def page() -> str:
    """Render the page of all tables."""
    found = everything()
    parts = [OPENING.rstrip()]
    if seven := [row for rows in found.values() for row in thirds(rows)]:
        parts += ["## Both groups", judged([above_the_trial(seven, f"{len(seven)} banks")])]
    for group, (title, about) in SECTIONS.items():
        rows = found[group]
        parts.append(f"## {title}")
        if not rows:
            parts.append(NOT_YET)
            continue
        parts += [about, measured_with(group), f"### {title}: requirements", judged(bars(rows))]
        for condition, heading in TITLES.items():
            if condition not in rows and (condition != "real" or GROUPS[group].strangers):
                parts += [f"### {title}: {heading[0].lower()}{heading[1:]}", NOT_YET]
            elif condition in rows:
                render = proposals if condition == "proposals" else cells
                parts += [f"### {title}: {heading[0].lower()}{heading[1:]}", render(rows[condition])]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
