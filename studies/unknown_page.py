"""Write `docs/measured/unknown.md` from what `unknown.py` measured: python studies/unknown_page.py.

Reads `studies/results/unknown/GROUP/CONDITION.json`.
"""

from __future__ import annotations

from handful.fewshot.reports.tables import markdown_table
from harm_bars import Found, Row
from harm_data import read
from pages import NOT_YET, Page, dots, mean, requirements, verdict
from unknown import RESULTS
from unknown_bars import above_the_trial, bars, strange, thirds
from unknown_conditions import CONDITIONS, GROUPS

TITLES = {
    "nothing": "nothing unknown, 75 items",
    "large": "nothing unknown, 300 to 3,000 items",
    "removed": "three classes that the catalogue lacks",
    "ten": "three of ten classes unknown",
    "scattered": "scattered unknown items",
    "proposals": "three unknown classes of 12 items",
    "requests": "real requests to a company",
    "real": "real items of no class",
}
QUESTION = """\
How well does handful recognise items whose class is not in the catalogue, and what does looking for them cost? The
table has means over the cells of the confirmation group, in percent. *AUROC* is the chance that an unknown item gets a
larger `unknown` than a known one; 50 is a guess. *Distance* is that of the distance from the nearest class mean.
*Rejected* is the share of all items that were called unknown, *known rejected* that of the known ones.
*Gain* is the accuracy on known items minus that of the same method when every item must have a class.
[Unknown items](../do/unknown_items.md) explains how to use it."""
MADE = """\
Intervals in the files are Student's t of 95 %, over the means of catalogues; over shuffles for requests, and over
batches for cells. The method was tuned on the tuning group; the confirmation group was run once, after the last change.
OSLO, OSTIM and EOL are slow and have few batches per cell; EOL is told that half of the items are unknown. The
docstring of `studies/unknown.py` says which data are needed and how batches are drawn. {versions}"""


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


def measured_with() -> str:
    """Say by which versions, and in how much processor time."""
    kept = [part for g in GROUPS for c in CONDITIONS for part in read(RESULTS / g / f"{c}.json").values()]
    versions = "; ".join(sorted({part["by"] for part in kept}))
    return f"Measured with {versions}, in {sum(part['seconds'] for part in kept) / 60:.0f} minutes on one thread."


def table(found: Found) -> str:
    """Render the mean of each condition."""
    keys = ("auroc_ours", "auroc_distance", "share", "said", "called", "called_known", "gain_closed")
    lines = []
    for condition, title in TITLES.items():
        rows = [row for row in found.get(condition, []) if strange(row) or condition in ("nothing", "large")]
        cells = [_mean(rows, key) for key in keys]
        if rows:
            lines.append([title, len(rows), *cells[:-1], f"{mean(row['gain_closed'][0] for row in rows):+.1f}"])
    head = ["AUROC", "distance", "share unknown", "estimated", "rejected", "known rejected", "gain"]
    return markdown_table(["condition", "cells", *head], lines) if lines else NOT_YET


def _mean(rows: list[Row], key: str) -> str:
    values = [row[key][0] for row in rows if key in row]
    return f"{mean(values):.1f}" if values else ""


def shows(found: Found) -> str:
    """Say what the table shows; the numbers are taken from the rows."""
    large = max((row["called"][0] for row in found.get("large", [])), default=0.0)
    two = {row["data"].partition("-")[0]: row["two"][0] for row in found.get("proposals", [])}
    proposed = ", ".join(f"{value:.0f} % on {name}" for name, value in sorted(two.items(), key=lambda one: -one[1]))
    return (
        "`unknown` ranks items better than the plain distance on classes that were removed, and looking for unknown "
        "items costs no accuracy on the known ones. On real requests the plain distance ranks better. How many items "
        "are unknown is estimated roughly. At least two of three unknown classes were proposed as groups that are 80 % "
        f"pure in this share of the batches: {proposed}. In large batches of weak features known items "
        f"were called unknown: {large:.0f} % in the worst cell."
    )


def page() -> Page:
    """Make the page."""
    found = everything()
    rows = found["confirmation"]
    required = {
        group: requirements((bar.requirement, bar.measured, bar.reached) for bar in bars(of))
        for group, of in found.items()
    }
    if seven := [row for of in found.values() for row in thirds(of)]:
        bar = above_the_trial(seven, f"{len(seven)} banks")
        required["both"] = requirements([(bar.requirement, bar.measured, bar.reached)])
    shown = {
        TITLES[condition]: [row for row in rows.get(condition, []) if "auroc_ours" in row]
        for condition in ("removed", "ten", "scattered", "proposals", "requests", "real")
    }
    return Page(
        name="unknown",
        title="Unknown items",
        question=QUESTION,
        alt="AUROC of unknown against known items, by condition: one dot per cell, a mark for the mean",
        figure=lambda: dots(
            {
                title: {
                    "handful": [row["auroc_ours"][0] for row in of],
                    "distance": [row["auroc_distance"][0] for row in of],
                }
                for title, of in shown.items()
            },
            "AUROC, %",
            at=50,
        ),
        table=table(rows),
        shows=shows(rows),
        limits=(
            "These are figures of an earlier default. [One model](../understand/model.md) has replaced it, "
            "and not all of this has been measured again: the model rejects less in batches that are far from the "
            f"catalogue. {verdict(required['confirmation'])} on the confirmation group."
        ),
        made=MADE.format(versions=measured_with()),
        commands=[
            "python studies/unknown.py DATA --group tuning",
            "python studies/unknown.py DATA --group confirmation",
            "python studies/unknown_page.py",
        ],
        rows=[
            {"group": group, "condition": condition, **row}
            for group, of in found.items()
            for condition, cells in of.items()
            for row in cells
        ],
        more={"requirements": [{"group": group, **row} for group, judged in required.items() for row in judged]},
    )


if __name__ == "__main__":
    page().write()
