"""What `open_batches.py` measured: kept in files, and as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from open_batches_data import GROUPS
from pages import NOT_YET, Page, dots, kept

RESULTS = Path(__file__).parent / "results" / "open_batches"
CEILINGS = {"ceiling5": 0.05, "ceiling10": 0.1}
ENOUGH_CATALOGUES = 5

Row = dict[str, Any]


def load(file: Path) -> Row:
    """Read what was kept."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


def estimate(rows: Sequence[Row], values: Sequence[float]) -> MeanEstimate:
    """Mean of one value per batch with its interval."""
    numbers, of = np.array([row["catalogue"] for row in rows]), np.asarray(values, float)
    which = np.unique(numbers)
    if len(which) >= ENOUGH_CATALOGUES:
        of = np.array([of[numbers == number].mean() for number in which])
    return MeanEstimate.of(of)


def mean(rows: Sequence[Row], name: str) -> float:
    """Mean over the batches that have a figure; not a number if none has."""
    values = [row[name] for row in rows if name in row]
    return float(np.mean(values)) if values else float("nan")


def summary(part: Row) -> Row:
    """Means of a cell and part; `gain` is joint minus alone, and `ahead` minus the control, as `[mean, half width]`."""
    rows = part["rows"]
    gain = estimate(rows, [row["joint"] - row["alone"] for row in rows])
    ahead = estimate(rows, [row["joint"] - row["control"] for row in rows])
    sure, possible = (sum(row[name] for row in rows) for name in ("sure", "possible"))
    names = ("alone", "joint", "known_rejected", "unknown_rejected", "auroc", "covered", "width", "said", "share")
    return {
        **{name: mean(rows, name) for name in names},
        **{name: part.get(name, float("nan")) for name in CEILINGS},
        **{f"{name}_each": mean(rows, name) for name in CEILINGS},
        "gain": [gain.mean, gain.half_width],
        "ahead": [ahead.mean, ahead.half_width],
        "sure": sure / sum(row["items"] for row in rows) * 100,
        "sure_right": 100 * sum(row["sure_right"] for row in rows) / sure if sure else float("nan"),
        "groups": 100 * sum(row["groups"] for row in rows) / possible if possible else float("nan"),
    }


QUESTION = """\
What does handful do where some items belong to no class of the catalogue? *Gain* is the accuracy on known items,
jointly minus each alone, in points, where 0, 30 or 70% of 75 items are unknown; *ahead* is jointly minus `sparse_em`,
the simple control: the same linear classifier, and EM of the shares of the classes. *Known* and *unknown* are percent
rejected; in brackets the unknown items above the threshold that rejects 5% of the known ones, chosen in hindsight for
all batches of the cell and share together. *Told*: known/unknown rejected where a share of 0.3 was told and is 0.15,
0.3 or 0.6. *Answers*: the same where 30% are unknown and a person answered ten questions. *Covered*:
batches whose interval has the true share. *Sure*: right ones among labels with a chance of at least 0.95, with 30%
unknown."""
MADE = """\
The number in a name is that of examples per class. Ten classes are not in the catalogue, three of which occur in a
batch; *oos* are real requests of no class. *curekart*, *powerplay11* and *sofmattress* are requests to companies,
*lung* cells of another laboratory. Each cell and share has 40 batches, or 8 with answers where a fit is slow; the
docstring of `studies/open_batches.py` says how they are drawn."""
SHOWN = ("0", "0.3", "0.7")
OPEN = ("0.1", "0.3", "0.7")


def summaries(found: Row) -> dict[str, dict[str, Row]]:
    """Means by cell and part."""
    return {name: {part: summary(of) for part, of in cell["parts"].items()} for name, cell in found["cells"].items()}


def table(cells: dict[str, dict[str, Row]]) -> str:
    """Render one line per cell."""

    def each(of: dict[str, Row], name: str, parts: Sequence[str], form: str = ".0f") -> str:
        return "/".join(f"{np.ravel(of[part][name])[0]:{form}}" for part in parts if part in of)

    def both(of: dict[str, Row], before: str) -> str:
        parts = [values for part, values in of.items() if part.startswith(before)]
        rejected = [[one[name] for one in parts] for name in ("known_rejected", "unknown_rejected")]
        return "/".join(f"{np.mean(values):.0f}" for values in rejected) if parts else "–"

    lines = [
        [
            name,
            each(of, "gain", SHOWN, "+.1f"),
            each(of, "ahead", SHOWN, "+.1f"),
            each(of, "known_rejected", SHOWN),
            f"{each(of, 'unknown_rejected', SHOWN[1:])} ({each(of, 'ceiling5', SHOWN[1:])})",
            both(of, "told"),
            both(of, "answers"),
            f"{np.mean([values['covered'] for part, values in of.items() if part in ('0', *OPEN)]):.0f}",
            each(of, "sure_right", ("0.3",)).replace("nan", "–"),
        ]
        for name, of in cells.items()
    ]
    head = [
        "gain 0/30/70%",
        "ahead 0/30/70%",
        "known 0/30/70%",
        "unknown 30/70%",
        "told",
        "answers",
        "covered",
        "sure",
    ]
    return markdown_table(["cell", *head], lines) if lines else NOT_YET


def page() -> Page:
    """Make the page: of the confirmation group once it was run, until then of the tuning group."""
    found = kept(RESULTS, GROUPS)
    group = "confirmation" if "confirmation" in found else "tuning"
    cells = summaries(found[group])
    only = "" if group == "confirmation" else "These are the cells that the method is tuned on; the others are sealed. "
    return Page(
        name="open_batches",
        title="Open batches",
        question=QUESTION,
        alt="Points gained on known items by cell and share unknown: one dot per catalogue, a mark for the mean",
        figure=lambda: dots(
            {
                name: {f"{float(part):.0%} unknown": gains(cell["parts"][part]["rows"]) for part in SHOWN}
                for name, cell in found[group]["cells"].items()
            },
            "points gained on known items",
            at=0,
        ),
        table=table(cells),
        shows=shows(cells),
        limits=(
            f"{only}Ceilings use the truth and are not a rule. A cell with one catalogue has intervals over batches "
            "that share items."
        ),
        made=MADE,
        commands=[
            "python studies/open_batches.py DATA --group tuning",
            "python studies/open_batches.py DATA --group confirmation",
            "python studies/open_batches.py --page",
        ],
        rows=[
            {"group": name, "cell": cell, "part": part, **{key: v for key, v in row.items() if np.isfinite(v).all()}}
            for name, of in found.items()
            for cell, parts in summaries(of).items()
            for part, row in parts.items()
        ],
    )


def gains(rows: Sequence[Row]) -> list[float]:
    """Points gained on known items, by catalogue."""
    numbers = sorted({row["catalogue"] for row in rows})
    of = {n: [row["joint"] - row["alone"] for row in rows if row["catalogue"] == n] for n in numbers}
    return [float(np.mean(values)) for values in of.values()]


def shows(cells: dict[str, dict[str, Row]]) -> str:
    """Say what the table shows; the numbers are taken from the cells."""

    def average(name: str, part: str) -> float:
        return float(np.nanmean([np.ravel(of[part][name])[0] for of in cells.values()]))

    worst = {part: min(cells, key=lambda name: cells[name][part]["gain"][0]) for part in SHOWN}
    said = [
        f"{100 * float(p):.0f}% unknown: {average('gain', p):+.1f}, from {cells[w][p]['gain'][0]:+.1f} ({w})"
        for p, w in worst.items()
    ]
    over_control = [f"{100 * float(part):.0f}% unknown: {average('ahead', part):+.1f}" for part in SHOWN]
    return (
        f"Points gained on known items, as means over the cells, with the lowest: {'; '.join(said)}. "
        f"Over the simple control: {'; '.join(over_control)}. "
        f"With nothing unknown, {average('known_rejected', '0'):.1f}% of the items are rejected. "
        f"With 30% unknown, {average('unknown_rejected', '0.3'):.0f}% of the unknown items are rejected; the ceiling "
        f"is {average('ceiling5', '0.3'):.0f}%, and {average('ceiling5_each', '0.3'):.0f}% if a threshold is chosen "
        "for each batch."
    )
