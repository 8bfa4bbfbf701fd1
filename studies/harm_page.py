"""Write the documents about harm from what `harm.py` measured: python studies/harm_page.py.

Reads `studies/results/harm/GROUP/CONDITION.json`; writes `docs/harm_results.md`, and the text between
`<!-- harm summary -->` and `<!-- end of harm summary -->` in `docs/when_transduction_hurts.md`. It says
so where something was not measured yet. A test renders it again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from handful.fewshot.reports.tables import markdown_table
from harm_bars import STRESS, Found, Row, bars, difference, place, said, short, warned
from harm_conditions import CONDITIONS, sharpness
from harm_data import GROUPS, RESULTS, read

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "harm_results.md"
DOCUMENTS = (ROOT / "docs" / "when_transduction_hurts.md",)
MARKED = re.compile(r"(?P<begin><!-- harm summary -->\n).*?(?P<end><!-- end of harm summary -->\n)", re.DOTALL)
NOT_YET = "Not measured yet."
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
RULES = {"prototype": "NP", "head": "head", "logistic": "logistic"}
PARTS = {"prototype": "NP", "head": "head", "roll_call": "roll_call"}
OPENING = """\
# Where labelling jointly helps and where it does harm, measured

When is it better to label a batch as a whole, and when is it worse than labelling each item alone? This page has the
answers for many kinds of catalogues and batches. [When transduction hurts](when_transduction_hurts.md) explains what
to do about it, and the [glossary](glossary.md) explains the words.

The confirmation group was measured with this version. The tuning group still has the figures of the default before
[one model](methods/roll_call.md) replaced it.

`python studies/harm.py DATA --group GROUP` measures, and `python studies/harm_page.py` writes this page. The docstring
of `studies/harm.py` says which data are needed and how catalogues and batches are drawn.

Accuracy is in percent, on items that belong to a class of the catalogue. All rules get the same vectors, scaled to
length one:

- **NP**: nearest prototype, the nearest class mean. Each item alone.
- **head**: the linear classifier that is fitted to the catalogue. Each item alone, with all classes equally likely.
- **logistic**: the same, but a class is as likely as its share of the examples. If all classes have the same number of
  examples, it agrees with **head**.
- **LR + EMQ**, **NP + EMQ**: EM for the class proportions, on the head's logits and on distances to class means. The
  sharpness is fixed and was chosen on the tuning group{sharpness}.
- **roll_call**: the default. What looking for items of no class gains and costs is in
  [Items of no class, measured](unknown_results.md).

Sentences are encoded by MiniLM (banking77, clinc150, hwu64, requests), photographs by EfficientNet-Lite0 (caltech101,
cub200, tinyimagenet200), characters by a Conv-4 (omniglot659).

How to read the tables:

- A *cell* is one row: one data set under one condition.
- *Alone* is the best of NP, head and logistic in the cell, named in brackets.
- Columns that begin with − show `roll_call` minus another rule on the same batches, with a 95 % interval (Student's t).
  It is computed over the means of catalogues if there are five or more, because the batches of one catalogue are not
  independent, and over batches otherwise. Requests and cells of a laboratory occur in several batches, so their
  intervals are computed over items.
- A batch is *harmed* if it is more than 5 points below alone, and *warned* if its answer came with a diagnostic.
- A cell is *below by an interval* if the whole interval of the difference is below zero.

```{{contents}}
:local:
:depth: 2
```
"""
SECTIONS = {
    "tuning": ("The tuning group", "The method was tuned on these data, so these figures say little about other data."),
    "confirmation": (
        "The confirmation group",
        "These data were not used for tuning and were run once, with one exception. In the first run, one class "
        "got most items in some catalogues with wrong labels. The fault was found and fixed on clinc150. Unequal "
        "shots, requests, laboratories and mislabelled examples were then measured again, in both groups. In the first "
        "run of this group requests were 3.4 points below alone on average and mislabelled examples 7.3 above it; "
        "unequal shots and laboratories were within a point of the figures here.",
    ),
}
TITLES = {
    "clean": "Clean data",
    "shots": "Unequal numbers of examples",
    "requests": "Real requests to a company",
    "laboratories": "Two laboratories",
    "shifted": "The batch differs from the catalogue",
    "wrong_labels": "Mislabelled examples",
    "confusable": "Classes that resemble one another",
    "stray": "A single item of another class",
    "sizes": "From one item to 5,000",
    "unknown": "Items of no class",
}
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
MEANING = (
    "Means over the cells of a condition. *Each item alone* is the best of three rules in each cell. The lowest gain "
    "is that of the cell whose 95 % interval ends lowest. A batch is harmed if it is more than 5 points below the rule."
)
WHOSE = {
    "confirmation": "Nothing was tuned on these data.",
    "tuning": "The method was tuned on these data, so other data may give less.",
}
Column = tuple[str, Callable[[Row], object]]


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


def plain(key: str, title: str) -> Column:
    """Show a value as it is."""
    return title, lambda row: row[key]


def accuracy(rule: str, title: str) -> Column:
    """Accuracy of a rule."""
    return title, lambda row: f"{row['accuracy'][rule]:.1f}"


def ahead(rule: str, title: str) -> Column:
    """Paired difference with its interval."""
    return title, lambda row: said(*difference(row, rule))


def table(rows: Sequence[Row], *columns: Column) -> str:
    """Render rows under titles."""
    return markdown_table([title for title, _ in columns], [[show(row) for _, show in columns] for row in rows])


BANK: Column = ("data", lambda row: short(row["data"]))
PRESENT: Column = plain("present", "present")
OPEN: Column = ("items of no class", lambda row: "yes" if row["open"] else "no")
OUTCOME: tuple[Column, ...] = (
    ("alone", lambda row: f"{row['accuracy'][row['alone']]:.1f} ({RULES[row['alone']]})"),
    accuracy("roll_call", "roll_call"),
    ahead("alone", "− alone"),
)
COUNTS: tuple[Column, ...] = (
    plain("catalogues", "catalogues"),
    plain("batches", "batches"),
    ("items", lambda row: f"{row['items']:g}"),
)
ALONE: tuple[Column, ...] = tuple(accuracy(rule, title) for rule, title in RULES.items())
HARM: tuple[Column, ...] = (
    ("harmed (warned)", lambda row: "{} ({})".format(*row["warnings"]["cell"]["harmed"])),
    ("others (warned)", lambda row: "{} ({})".format(*row["warnings"]["cell"]["others"])),
)
STRANGERS: tuple[Column, ...] = (
    ("AUROC of 1 − p", lambda row: f"{row['auroc_probability']:.2f}" if "auroc_probability" in row else ""),
    ("AUROC of the distance", lambda row: f"{row['auroc_distance']:.2f}" if "auroc_distance" in row else ""),
)
UNDER_TABLE = "Sizes of these cells, every rule that labels each item alone, and batches harmed:"


def cells(rows: Sequence[Row], *where: Column) -> str:
    """Render what came out of each cell, and then what is behind it: two tables that a narrow screen can show."""
    behind = table(rows, *where, *COUNTS, *ALONE, *HARM)
    parts = [table(rows, *where, *OUTCOME), UNDER_TABLE, behind]
    if any("auroc_probability" in row for row in rows):
        told = [row for row in rows if "auroc_probability" in row]
        parts += ["How well items of no class can be separated from the others:", table(told, *where, *STRANGERS)]
    return "\n\n".join(parts)


def clean(rows: Sequence[Row]) -> str:
    """Render accuracies, the field, probabilities and presence on clean data."""
    where: tuple[Column, ...] = (BANK, plain("shots", "shots"), PRESENT)
    fit: Column = ("seconds to fit", lambda row: f"{row['fit_seconds']:.1f}")
    field = table(
        rows,
        *where,
        accuracy("head_emq", "LR + EMQ"),
        accuracy("prototype_emq", "NP + EMQ"),
        accuracy("roll_call", "roll_call"),
        ahead("head_emq", "− LR + EMQ"),
        ahead("prototype_emq", "− NP + EMQ"),
    )
    rules = {"roll_call": "roll_call", "prototype_emq": "NP + EMQ", "head_emq": "LR + EMQ"}
    errors, losses = (
        table(rows, *where, *(_of(key, rule, title, digits) for rule, title in rules.items()))
        for key, digits in (("calibration_error", 1), ("log_loss", 2))
    )
    return "\n\n".join(
        (
            table(rows, *where, *OUTCOME),
            UNDER_TABLE,
            table(rows, *where, *COUNTS, fit, *ALONE, *HARM),
            "Against the field:",
            field,
            "Expected calibration error, in points:",
            errors,
            "Log loss, in nats:",
            losses,
            "`presence` in up to ten bins: its mean → how many of these classes are really there, both in percent "
            "(number of cases):",
            table(rows, *where, ("said → there (cases)", _bins)),
        )
    )


def _of(key: str, rule: str, title: str, digits: int) -> Column:
    return title, lambda row: f"{row[key][rule]:.{digits}f}"


def _bins(row: Row) -> str:
    return "; ".join(f"{b['said']:.0f} → {b['there']:.0f} ({b['cases']})" for b in row["presence"])


def shots(rows: Sequence[Row]) -> str:
    """Render unequal shots, poor and rich classes apart."""
    apart = [
        table(rows, BANK, PRESENT, *(_part(size, rule, title) for rule, title in PARTS.items()))
        for size in ("few", "many")
    ]
    return "\n\n".join(
        (
            cells(rows, BANK, plain("most_shots", "most examples"), PRESENT),
            "Items of classes with 3 examples or fewer:",
            apart[0],
            "Items of classes with 20 examples or more:",
            apart[1],
        )
    )


def _part(size: str, rule: str, title: str) -> Column:
    return title, lambda row: f"{row[size][rule]:.1f}" if size in row else ""


def unknown(rows: Sequence[Row]) -> str:
    """Render items of classes that the catalogue lacks."""
    known = [row for row in rows if "ahead" in row]
    share: Column = ("unknown items", lambda row: f"{100 * row['unknown']:.0f} %")
    strange = table(
        rows,
        BANK,
        share,
        ("mean probability of unknown items", lambda row: f"{row['said_of_unknown']:.2f}" if row["unknown"] else ""),
        ("classes called present that are not", lambda row: f"{row['false_classes']:.0f} %"),
        ("warned", lambda row: f"{row['warned']} of {row['batches']}"),
    )
    return f"{cells(known, BANK, share)}\n\nUnknown items and present classes, as reported by the default:\n\n{strange}"


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "clean": clean,
    "shots": shots,
    "requests": lambda rows: cells(rows, BANK, plain("batch", "batch"), OPEN),
    "laboratories": lambda rows: cells(rows, ("examples per type", lambda row: row["most_shots"] or "all"), OPEN),
    "shifted": lambda rows: cells(rows, BANK, ("change", lambda row: CHANGES[row["change"]]), PRESENT),
    "wrong_labels": lambda rows: cells(rows, BANK, ("mislabelled", lambda row: f"{100 * row['wrong']:.0f} %"), PRESENT),
    "confusable": lambda rows: cells(rows, BANK, PRESENT),
    "stray": lambda rows: cells(rows, BANK),
    "sizes": lambda rows: cells(rows, BANK, PRESENT, plain("size", "items asked for")),
    "unknown": unknown,
}


def warnings_table(found: Found) -> str:
    """Render who was warned, condition by condition."""
    lines: list[list[Any]] = []
    for condition in STRESS:
        counts = warned(found.get(condition, []), "cell")
        names: dict[str, list[int]] = {}
        for row in found.get(condition, []):
            for name, (harmed, others) in row.get("warnings", {}).get("diagnostics", {}).items():
                names[name] = [a + b for a, b in zip(names.get(name, [0, 0]), (harmed, others), strict=True)]
        by_name = ", ".join(f"`{name}` {harmed} and {others}" for name, (harmed, others) in sorted(names.items()))
        lines.append([TITLES[condition], *("{} ({})".format(*counts[kind]) for kind in ("harmed", "others")), by_name])
    return markdown_table(["condition", "harmed (warned)", "others (warned)", "diagnostics, harmed and others"], lines)


def summary(found: dict[str, Found]) -> str:
    """Render the short table, one line per condition: of the data that were not tuned on, if they were measured."""
    group = "confirmation" if found["confirmation"] else "tuning"
    rows = found[group]
    usual = [row for row in rows.get("clean", []) if row["present"] != "all"]
    lines = {
        "clean, 5 or 10 examples per class, 5 or 20 present": [row for row in usual if row["shots"] > 1],
        "clean, one example per class, 5 or 20 present": [row for row in usual if row["shots"] == 1],
        "clean, all classes present": [row for row in rows.get("clean", []) if row["present"] == "all"],
        **{IN_SHORT[name]: [row for row in rows.get(name, []) if "ahead" in row] for name in STRESS},
    }
    entries = []
    for what, chosen in ((what, chosen) for what, chosen in lines.items() if chosen):
        alone, ours = (
            sum(row["accuracy"][row["alone"] if rule == "alone" else rule] for row in chosen) / len(chosen)
            for rule in ("alone", "roll_call")
        )
        lowest = min(chosen, key=lambda row: sum(difference(row, "alone")))
        counts = warned(chosen, "cell")
        harmed, batches = counts["harmed"][0], counts["harmed"][0] + counts["others"][0]
        worst = f"{said(*difference(lowest, 'alone'))} ({place(lowest)})"
        entries.append([what, f"{alone:.1f}", f"{ours:.1f}", worst, f"{harmed} of {batches}"])
    if not entries:
        return NOT_YET
    header = ["condition", "each item alone", "jointly", "lowest gain of a cell", "batches harmed"]
    return f"{markdown_table(header, entries)}\n\n{MEANING} {WHOSE[group]}"


def page() -> str:
    """Render the page of all tables."""
    found = everything()
    chosen = ""
    if len(read(RESULTS / "tuning" / "emq.json")) == len(GROUPS["tuning"].banks):
        temperature, factor = sharpness()
        chosen = f": logits divided by {temperature:g}, unit vectors times {factor:g}"
    parts = [OPENING.format(sharpness=chosen).rstrip()]
    for group, (title, about) in SECTIONS.items():
        rows = found[group]
        parts.append(f"## {title}")
        if not rows:
            parts.append(NOT_YET)
            continue
        parts += [about, measured_with(group)]
        verdicts = {True: "reached", False: "**missed**", None: "required of the confirmation group"}
        required = bars(rows)
        judged = [[bar.requirement, bar.measured, verdicts[bar.reached]] for bar in required]
        parts += [f"### {title}: requirements", markdown_table(["requirement", "measured", ""], judged)]
        for condition, heading in TITLES.items():
            parts += [f"### {title}: {heading[0].lower()}{heading[1:]}"]
            parts.append(TABLES[condition](rows[condition]) if condition in rows else NOT_YET)
        parts += [f"### {title}: who was warned", warnings_table(rows)]
    return "\n\n".join(parts) + "\n"


def with_summary(text: str) -> str:
    """Return a document with the short table as the results are now."""
    short = summary(everything())
    return MARKED.sub(lambda match: f"{match['begin']}\n{short}\n\n{match['end']}", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for document in DOCUMENTS:
        document.write_text(with_summary(document.read_text(encoding="utf-8")), encoding="utf-8")
    print(*(PAGE, *DOCUMENTS), sep="\n")
