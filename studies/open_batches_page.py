"""What `open_batches.py` measured: kept in files, printed, compared with an earlier run, and as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from open_batches_data import GROUPS
from pages import NOT_YET, Page, dots, kept, requirements, verdict

RESULTS = Path(__file__).parent / "results" / "open_batches"
CEILINGS = {"ceiling5": 0.05, "ceiling10": 0.1}
ENOUGH_CATALOGUES = 5

Row = dict[str, Any]
Judged = tuple[str, str, bool | None]  # what is required, what was measured, and whether it is reached


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


COLUMNS = {
    "alone": "alone",
    "joint": "joint",
    "gain": "gain",
    "ahead": "ahead",
    "known_rejected": "known-",
    "unknown_rejected": "unkn-",
    "ceiling5": "ceil5",
    "ceiling10": "ceil10",
    "ceiling5_each": "each5",
    "ceiling10_each": "each10",
    "auroc": "auroc",
    "covered": "covered",
    "width": "width",
    "sure": "sure",
    "sure_right": "right",
    "groups": "groups",
}


def printed(found: Row) -> Iterator[str]:
    """Lines of a table: cells and parts.

    `known-`, `unkn-`: rejected; `ceil`, `each`: ceilings pooled and of each batch; `right`: of `sure` ones; `groups`:
    found of those possible.
    """
    yield f"{'cell':19}{'part':12}" + "".join(f"{title:>{_width(name)}}" for name, title in COLUMNS.items())
    means: dict[str, list[Row]] = {}
    for name, cell in found["cells"].items():
        for part, of in cell["parts"].items():
            means.setdefault(part, []).append(summary(of))
            yield f"{name:19}{part:12}" + "".join(_said(column, means[part][-1][column]) for column in COLUMNS)
    for part, rows in means.items():
        columns = {column: [np.ravel(row[column])[0] for row in rows] for column in COLUMNS}
        of = {column: [value for value in values if np.isfinite(value)] for column, values in columns.items()}
        said = (_said(column, float(np.mean(values)) if values else np.nan) for column, values in of.items())
        yield f"{'mean':19}{part:12}" + "".join(said)


def _width(column: str) -> int:
    return 13 if column in ("gain", "ahead") else 8


def _said(column: str, value: Any) -> str:
    text = f"{value[0]:+.1f} ± {value[1]:.1f}" if isinstance(value, list) else f"{value:.1f}"
    return f"{'' if text == 'nan' else text:>{_width(column)}}"


def compared(found: Row, earlier: Row) -> Iterator[str]:
    """Lines of a table: joint accuracy minus that of an earlier run on the same batches, and what both rejected."""
    yield f"{'cell':20}{'part':13}{'joint':>24}{'known rejected':>24}{'unknown rejected':>24}"
    for name, cell in found["cells"].items():
        for part, of in cell["parts"].items():
            before = earlier["cells"].get(name, {"parts": {}})["parts"].get(part, {"rows": []})["rows"]
            batches = {row["batch"]: row for row in before}
            pairs = [(row, batches[row["batch"]]) for row in of["rows"] if row["batch"] in batches]
            line = f"{name:20}{part:13}"
            for column in ("joint", "known_rejected", "unknown_rejected") if pairs else ():
                both = [(new, old) for new, old in pairs if column in new and column in old]
                ahead = estimate([new for new, _ in both], [new[column] - old[column] for new, old in both])
                line += f"{ahead.text(sign='+'):>24}"
            yield line


# Page ----------------------------------------------------------------------------------------------------------------

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


def required(group: str, cells: dict[str, dict[str, Row]]) -> list[Judged]:
    """Return requirements, what was measured, and whether it is reached."""

    def of(parts: Sequence[str], value: Callable[[Row], float]) -> dict[str, float]:
        """Value of every cell and part that has one."""
        found = {f"{n}, {p}": value(by[p]) for n, by in cells.items() for p in parts if p in by}
        return {where: one for where, one in found.items() if np.isfinite(one)}

    def least(what: str, found: dict[str, float], bar: float, digits: int = 1) -> Judged:
        """Require this of every cell and part."""
        if not found:
            return what, NOT_YET, None
        below = sum(value < bar for value in found.values())
        where = min(found, key=found.__getitem__)
        return what, f"{len(found) - below} of {len(found)}; {abs(found[where]):.{digits}f} in {where}", not below

    def found_of(
        what: str, parts: Sequence[str], ceiling: str, bar: float, elsewhere: bool | None = None
    ) -> list[Judged]:
        """Require a share of the ceiling, of both kinds."""
        judged = []
        for kind, name in (("pooled", ceiling), ("of each batch", f"{ceiling}_each")):
            shares = of(parts, partial(_of_ceiling, name))
            if elsewhere is not None:
                shares = {w: v for w, v in shares.items() if GROUPS[group][w.split(",")[0]].elsewhere == elsewhere}
            judged.append(least(f"{what}, percent of the ceiling {kind}: at least {bar}", shares, bar, 0))
        return judged

    closed = of(["0"], lambda row: -row["known_rejected"])
    overall = -float(np.mean(list(closed.values()))) if closed else float("nan")
    covered = float(np.mean(list(of(["0", *OPEN], lambda row: row["covered"]).values())))
    told = [part for part in dict.fromkeys(part for by in cells.values() for part in by) if part.startswith("told")]
    return [
        least("known items, points below each alone: at most 1 and an interval", _ends(cells), -1),
        least("closed: known rejected, at most 3%", closed, -3),
        ("closed: known rejected over all cells, at most 2%", f"{overall:.1f}", overall <= 2 if closed else None),
        least("open: known rejected, at most 8%", of(OPEN, lambda row: -row["known_rejected"]), -8),
        *found_of("unknown rejected, same source", OPEN, "ceiling5", 60, elsewhere=False),
        *found_of("unknown rejected, another source", OPEN, "ceiling5", 30, elsewhere=True),
        ("intervals that cover the share: 85 to 97%", f"{covered:.0f}", 85 <= covered <= 97),
        *found_of("told 0.3: unknown rejected", told, "ceiling10", 85),
        *found_of("ten answers: unknown rejected", ["answers 0.3"], "ceiling5", 80),
        least("ten answers: known rejected, at most 5%", of(["answers 0.3"], lambda row: -row["known_rejected"]), -5),
        least("sure labels right, 30% unknown: at least 95%", of(["0.3"], lambda row: row["sure_right"]), 95),
    ]


def _of_ceiling(ceiling: str, row: Row) -> float:
    return 100 * row["unknown_rejected"] / row[ceiling] if row[ceiling] > 0 else float("nan")


def _ends(cells: dict[str, dict[str, Row]]) -> dict[str, float]:
    return {
        f"{name}, {part}": sum(of[part]["gain"]) for name, of in cells.items() for part in ("0", *OPEN) if part in of
    }


def page() -> Page:
    """Make the page: of the confirmation group once it was run, until then of the tuning group."""
    found = kept(RESULTS, GROUPS)
    group = "confirmation" if "confirmation" in found else "tuning"
    cells = summaries(found[group])
    judged = {name: requirements(required(name, summaries(of))) for name, of in found.items()}
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
            f"{only}{verdict(judged[group], 'open_batches')} on these cells. Ceilings use the truth and are not a "
            "rule. A cell with "
            "one catalogue has intervals over batches that share items."
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
        more={"requirements": [{"group": name, **row} for name, rows in judged.items() for row in rows]},
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
