"""Write `docs/measured/harm.md` from what `harm.py` measured: python studies/harm_page.py.

Reads `studies/results/harm/GROUP/CONDITION.json`.
"""

from __future__ import annotations

from collections.abc import Sequence

from handful.fewshot.reports.tables import markdown_table
from harm_bars import STRESS, Found, Row, bars, difference, place, presence_gap, said, warned
from harm_conditions import CONDITIONS
from harm_data import GROUPS, RESULTS, read
from pages import NOT_YET, Page, dots, mean, requirements, verdict

IN_SHORT = {
    "shots": "from 1 to 50 examples per class",
    "requests": "real requests to a company",
    "laboratories": "cells from another laboratory",
    "shifted": "photographs or sentences after a change, clean catalogue",
    "wrong_labels": "10 or 20 % of the examples mislabelled",
    "confusable": "only classes that resemble one another",
    "stray": "the single item of a sixth class, among 74 of five",
    "sizes": "batches of 1 to 5,000 items",
    "unknown": "batches in which up to half the items belong to no class",
}
QUESTION = """\
When is it better to label a batch as a whole, and when is it worse than labelling each item alone? Accuracy is in
percent, on items that belong to a class of the catalogue. *Each item alone* is the best of three rules in each cell:
nearest class mean, the linear classifier fitted to the catalogue, and plain logistic regression. A *cell* is one data
set under one condition. *Lowest gain* is that of the cell whose 95 % interval ends lowest, and a batch is *harmed* if
it is more than 5 points below the rule. Nothing was tuned on the data of this table.
[When it hurts](../understand/when_it_hurts.md) says what to do about it."""
MADE = """\
Sentences are encoded by MiniLM, photographs by EfficientNet-Lite0, characters by a Conv-4. Intervals are Student's t
over the means of catalogues where there are five or more, else over batches, and over items for requests and cells of a
laboratory. The method was tuned on the tuning group (clinc150, cub200, omniglot659), whose rows still have the figures
of the default before [one model](../understand/model.md) replaced it; the confirmation group has those of the model.
An earlier default was changed once because of the confirmation group: its first run showed a fault with wrong labels,
which was fixed on clinc150. Before that, requests were 3.4 points below alone on average. The docstring of
`studies/harm.py` says which data are needed and how catalogues and batches are drawn. {versions}"""


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


def lines(rows: Found) -> dict[str, Sequence[Row]]:
    """Return the cells of each line of the table."""
    clean = rows.get("clean", [])
    usual = [row for row in clean if row["present"] != "all"]
    found: dict[str, Sequence[Row]] = {
        "clean, 5 or 10 examples per class, 5 or 20 present": [row for row in usual if row["shots"] > 1],
        "clean, one example per class, 5 or 20 present": [row for row in usual if row["shots"] == 1],
        "clean, all classes present": [row for row in clean if row["present"] == "all"],
        **{IN_SHORT[name]: [row for row in rows.get(name, []) if "ahead" in row] for name in STRESS},
    }
    return {what: chosen for what, chosen in found.items() if chosen}


def table(rows: Found) -> str:
    """Render the mean and the worst cell of each condition."""
    entries = []
    for what, chosen in lines(rows).items():
        alone, ours = (
            mean(row["accuracy"][row["alone"] if rule == "alone" else rule] for row in chosen)
            for rule in ("alone", "roll_call")
        )
        lowest = min(chosen, key=lambda row: sum(difference(row, "alone")))
        counts = warned(chosen, "cell")
        harmed, batches = counts["harmed"][0], counts["harmed"][0] + counts["others"][0]
        worst = f"{said(*difference(lowest, 'alone'))} ({place(lowest)})"
        entries.append([what, f"{alone:.1f}", f"{ours:.1f}", worst, f"{harmed} of {batches}"])
    if not entries:
        return NOT_YET
    return markdown_table(["condition", "each item alone", "jointly", "lowest gain of a cell", "harmed"], entries)


def shows(rows: Found) -> str:
    """Say what the table shows; the numbers are taken from the rows."""
    stress = warned([row for name in STRESS for row in rows.get(name, [])], "cell")
    return (
        "Where few classes of the catalogue occur, labelling jointly gains in nearly every cell, also with noise, "
        "wrong labels or unequal numbers of examples. Where all classes occur, on real requests and on cells of "
        "another laboratory, there is nothing to gain and a little to lose. A single item of a class that is "
        "otherwise absent is often given to one of the large classes: that is the price of the gain. Warnings do not "
        f"help to find the batches that were harmed: {stress['harmed'][1]} of {stress['harmed'][0]} had one, as had "
        f"{stress['others'][1]} of the {stress['others'][0]} others."
    )


def probabilities(clean: Sequence[Row]) -> str:
    """Say how good probabilities and presence are on clean data."""
    few = [row for row in clean if "calibration_error" in row and row["present"] != "all"]
    if not few:
        return ""
    many, once = (
        mean(row["calibration_error"]["roll_call"] for row in few if (row["shots"] > 1) == several)
        for several in (True, False)
    )
    gaps = [presence_gap(row) for row in few]
    return (
        f"The mean calibration error of the probabilities is {many:.1f} points with 5 or 10 examples per class and "
        f"{once:.1f} with one. `presence` is less reliable: of its ten bins, the worst of a cell is off by "
        f"{mean(gaps):.0f} points on average, and by {max(gaps):.0f} at most. "
    )


def page() -> Page:
    """Make the page."""
    found = everything()
    rows = found["confirmation"]
    required = {
        group: requirements((bar.requirement, bar.measured, bar.reached) for bar in bars(of))
        for group, of in found.items()
    }
    limits = (
        f"{verdict(required['confirmation'])} on the confirmation group. {probabilities(rows.get('clean', []))}Four "
        "data sets of sentences and photographs, one company and one pair of laboratories do not stand for every use."
    )
    return Page(
        name="harm",
        title="Gain and harm",
        question=QUESTION,
        alt="Points gained over labelling each item alone, by condition: one dot per cell, a mark for the mean",
        figure=lambda: dots(
            {
                what: {"gain": [difference(row, "alone")[0] for row in chosen]}
                for what, chosen in lines(everything()["confirmation"]).items()
            },
            "points gained over each item alone",
            at=0,
        ),
        table=table(rows),
        shows=shows(rows),
        limits=limits,
        made=MADE.format(versions=measured_with()),
        commands=[
            "python studies/harm.py DATA --group tuning",
            "python studies/harm.py DATA --group confirmation",
            "python studies/harm_page.py",
        ],
        rows=[
            {"group": group, "condition": condition, **_plain(row)}
            for group, of in found.items()
            for condition, cells in of.items()
            if condition != "emq"
            for row in cells
        ],
        more={"requirements": [{"group": group, **row} for group, judged in required.items() for row in judged]},
    )


def _plain(row: Row) -> Row:
    """Name the numbers of batches, and write the bins of presence as text: said → there, in percent (cases)."""
    counts = {kind: dict(zip(("batches", "warned"), n, strict=True)) for kind, n in _counts(row).items()}
    bins = "; ".join(f"{b['said']:.0f} → {b['there']:.0f} ({b['cases']})" for b in row.get("presence", []))
    return {**{key: value for key, value in row.items() if key != "warnings"}, "presence": bins, **counts}


def _counts(row: Row) -> dict[str, list[int]]:
    found: dict[str, list[int]] = row.get("warnings", {}).get("cell", {})
    return found


if __name__ == "__main__":
    page().write()
