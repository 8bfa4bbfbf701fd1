"""How many decisions label a batch without a single example: `handful.Session(X)` beside simpler ways.

    python studies/from_nothing.py DATA [--group tuning] [--banks grocery-efflite0 ...] [--parts "15 classes, 1"]
    python studies/from_nothing.py --render

A batch has 300 items of 15 or of 40 classes, or 120 of 6, of sizes `n ∝ rank^-0.7`. There are no examples and no names.
A simulated person who knows the truth answers what the session asks, until everything has been seen. On a sheet, the
person names the commonest class with one decision; every other item is one more. After every decision it is noted how
many labels are right; an item that is not named yet counts as wrong. It is also noted when the session first says that
the person may stop.

Beside it, on the same items:

- `random`: items in random order, one decision each, and logistic regression on the answers;
- `typical`: the most typical item of the largest cluster that has no answer yet, with one cluster more than answers
  (TypiClust, Hacohen et al., ICML 2022), and the same regression;
- `clusters`: k-means with the true number of classes; every cluster has the name of its most typical item.

Results are kept in `studies/results/from_nothing/`; what is there is not measured again without `--again`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from bank_data import Floats, Ints, rng_of
from handful import Session
from handful_fewshot.reports.tables import markdown_table
from pages import NOT_YET, Cells, Page, dots, kept, mean, measure_groups
from sessions import CALTECH, CLIPS, GROCERIES, TINY, Person, read, short

RESULTS = Path(__file__).parent / "results" / "from_nothing"
CLINC, BANKING = "clinc150-minilm", "banking77-minilm"
GROUPS = {
    "confirmation": (CALTECH, GROCERIES, BANKING, "cub200-efflite0", TINY, CLIPS, "omniglot659-conv4"),
    "tuning": (CLINC, "esc50-birdnet"),
}
POWER = -0.7  # sizes of classes by their rank
SESSIONS = 4  # of a part
REGRESSED = 2  # sessions of the first part that simpler ways are measured on as well
MOST_REGRESSED = 160  # answers of a simpler way, at most
INVERSE_RIDGE = 30.0
RIGHT = (0.8, 0.9, 0.95)
WAYS = ("random", "typical")
# Most clusters of TypiClust, and neighbours that say how typical an item is.
MOST_CLUSTERS = 60
NEIGHBOURS = 20


class Cell(NamedTuple):
    """Classes and items of a batch."""

    classes: int
    items: int

    def __str__(self) -> str:
        return f"{self.items} items of {self.classes} classes"


CELLS = (Cell(15, 300), Cell(40, 300), Cell(6, 120))
PARTS = {CELLS[0]: 4, CELLS[1]: 2, CELLS[2]: 2}
Row = dict[str, Any]


def drawn(folder: Path, number: int, cell: Cell) -> tuple[Floats, Ints]:
    """Draw a batch: large classes first, each of a class of the bank that has as many rows."""
    features, labels = read(folder)
    rng = rng_of(folder.name, "from nothing", number, *cell)
    share = np.arange(1, cell.classes + 1) ** POWER
    sizes = np.maximum(2, (cell.items * share / share.sum()).round()).astype(int).tolist()
    left = rng.permutation(np.unique(labels)).tolist()
    rows = []
    for size in sizes:
        # The first class that has as many rows; if none has, the largest one.
        counts = {k: int((labels == k).sum()) for k in left}
        chosen = next((k for k in left if counts[k] >= size), max(left, key=lambda k: counts[k]))
        left.remove(chosen)
        rows.append(rng.permutation(np.flatnonzero(labels == chosen))[:size])
    batch = rng.permutation(np.concatenate(rows))
    return features[batch], labels[batch]


def measured_session(folder: Path, number: int, cell: Cell) -> Row:
    """Follow one session to its end."""
    batch, truth = drawn(folder, number, cell)
    session = Session(batch)
    person = Person(session, truth.tolist(), False, rng_of(folder.name, "person", number))
    row: Row = {}
    kinds = {"questions": 0, "sheets": 0, "exceptions": 0, "stop": 0, "wrong": 0}

    def note() -> None:
        wrong = person.n_wrong()
        for share in RIGHT:
            if wrong <= (1 - share) * len(truth):
                row.setdefault(f"until_{100 * share:.0f}", session.n_decisions)
        if not kinds["stop"] and session.may_stop:
            kinds["stop"] = session.n_decisions
            kinds["wrong"] = wrong

    while (request := session.ask()) is not None:
        before = session.n_decisions
        for _ in person.reply(request):
            note()
        kinds["sheets" if request.is_sheet else "questions"] += 1
        kinds["exceptions"] += session.n_decisions - before - 1
    return row | kinds | {"all": session.n_decisions, "left": person.n_wrong()}


def regressed(points: Floats, labels: list[Any], answered: list[int], truth: Ints) -> Ints:
    """Label a batch by logistic regression on the answers."""
    if len(set(labels)) == 1:
        found: Ints = np.full(len(points), labels[0])
    else:
        model = LogisticRegression(C=INVERSE_RIDGE, tol=1e-6, max_iter=1000)
        found = model.fit(points[answered], labels).predict(points)
    found[answered] = truth[answered]
    return found


def most_typical(points: Floats, answered: list[int]) -> int:
    """Return the most typical item of the largest cluster without an answer; among more clusters, of the largest."""
    n_clusters = min(len(answered) + 1, MOST_CLUSTERS)
    cluster = KMeans(n_clusters, n_init=1, random_state=0).fit(points).labels_
    sizes = np.bincount(cluster, minlength=n_clusters)
    has_answer = np.bincount(cluster[answered], minlength=n_clusters) > 0 if answered else np.zeros(n_clusters, bool)
    for k in np.lexsort((-sizes, has_answer)).tolist():
        rows = np.flatnonzero(cluster == k)
        order = rows[np.argsort(_strangeness(points[rows]), kind="stable")]
        left = [row for row in order.tolist() if row not in answered]
        if left:
            return int(left[0])
    raise AssertionError("every item has an answer")


def _strangeness(points: Floats) -> Floats:
    """Return the mean squared distance of each item from those nearest to it."""
    squares = ((points[:, None] - points) ** 2).sum(-1)
    near: Floats = np.sort(squares, 1)[:, 1 : NEIGHBOURS + 1]
    return near.mean(1) if near.shape[1] else np.zeros(len(points), np.float32)


def measured_way(folder: Path, number: int, cell: Cell, way: str) -> Row:
    """Return the answers that a simpler way takes until shares of the labels are right; the most if it takes more."""
    batch, truth = drawn(folder, number, cell)
    rng = rng_of(folder.name, way, number)
    random = rng.permutation(len(batch)).tolist()
    answered: list[int] = []
    row: Row = {}
    while len(answered) < min(MOST_REGRESSED, len(batch)) and len(row) < len(RIGHT):
        answered.append(random[len(answered)] if way == "random" else most_typical(batch, answered))
        right = (regressed(batch, truth[answered].tolist(), answered, truth) == truth).mean()
        for share in RIGHT:
            if right >= share:
                row.setdefault(f"{way}_{100 * share:.0f}", len(answered))
    return {f"{way}_{100 * share:.0f}": MOST_REGRESSED for share in RIGHT} | row


def measured_clusters(folder: Path, number: int, cell: Cell) -> float:
    """Return the share of labels that is right if each of K clusters has the name of its most typical item."""
    batch, truth = drawn(folder, number, cell)
    cluster = KMeans(cell.classes, n_init=10, random_state=0).fit(batch).labels_
    right = 0
    for k in range(cell.classes):
        rows = np.flatnonzero(cluster == k)
        typical = rows[_strangeness(batch[rows]).argmin()]
        right += int((truth[rows] == truth[typical]).sum())
    return right / len(truth)


def measured_part(folder: Path, part: int, cell: Cell) -> Row:
    """Follow some sessions; each column has one entry per session."""
    numbers = range(part * SESSIONS, (part + 1) * SESSIONS)
    rows = [measured_session(folder, number, cell) for number in numbers]
    for row in rows:
        row |= {name: -1 for name in (f"until_{100 * share:.0f}" for share in RIGHT) if name not in row}
    return {name: [row[name] for row in rows] for name in rows[0]}


def measured_others(folder: Path, cell: Cell) -> Row:
    """Measure simpler ways on the first sessions."""
    rows = [
        measured_way(folder, number, cell, "random")
        | measured_way(folder, number, cell, "typical")
        | {"clusters": measured_clusters(folder, number, cell)}
        for number in range(REGRESSED)
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def cells(folder: Path) -> Cells:
    """List what is measured on a bank."""
    for cell in CELLS:
        for part in range(PARTS[cell]):
            name = f"{cell.classes} classes, {part + 1}"
            yield name, cell._asdict() | {"of": "session"}, partial(measured_part, folder, part, cell)
        others = f"{cell.classes} classes, others, 1"
        yield others, cell._asdict() | {"of": "others"}, partial(measured_others, folder, cell)


def joined(found: dict[str, dict[str, list[Row]]]) -> dict[tuple[str, Cell], Row]:
    """Put the parts of every bank and cell together."""
    rows: dict[tuple[str, Cell], Row] = {}
    for name, parts in found.items():
        for row in (row for of_part in parts.values() for row in of_part):
            key = name, Cell(*(row[field] for field in Cell._fields))
            before = rows.setdefault(key, {})
            for column, values in row.items():
                if isinstance(values, list):
                    before[column] = [*before.get(column, []), *values]
    return rows


def _at_least(n: float) -> str:
    return f"above {MOST_REGRESSED}" if n >= MOST_REGRESSED else f"{n:.1f}"


def _number(row: Row, column: str, scale: float = 1.0) -> str:
    values = row.get(column)
    if not values:
        return ""
    found = scale * mean(values)
    return _at_least(found) if column.startswith(WAYS) else f"{found:.0f}" if scale > 1 else f"{found:.1f}"


def _line(name: str, row: Row, n_items: int) -> list[str]:
    """Return a line of the table."""
    return [
        name,
        *(_number(row, column) for column in ("until_95", "stop")),
        f"{100 * mean(row['wrong']) / n_items:.1f}",
        *(_number(row, column) for column in ("all", "typical_95", "random_95")),
        _number(row, "clusters", 100.0),
    ]


def page() -> Page:
    """Make the page."""
    confirmed = kept(RESULTS / "confirmation", GROUPS["confirmation"])
    rows = joined(confirmed | kept(RESULTS / "tuning", GROUPS["tuning"]))
    lines, shown = [], {}
    for name in (*GROUPS["confirmation"], *GROUPS["tuning"]):
        row = rows.get((name, CELLS[0]), {})
        if "all" not in row:
            continue
        lines.append(_line(f"{short(name)}{' (tuning)' if name in GROUPS['tuning'] else ''}", row, CELLS[0].items))
        shown[short(name)] = {
            "95% right": row["until_95"],
            "all seen": row["all"],
            "95% right, typical items and regression": row.get("typical_95", []),
        }
    counts = sorted({len(row["all"]) for row in rows.values() if "all" in row})
    n_cells = len(CELLS) * len(GROUPS["confirmation"])
    n_measured = sum("all" in row for (name, _), row in rows.items() if name in GROUPS["confirmation"])
    said = list[str]()
    first = [row for (_, cell), row in rows.items() if cell == CELLS[0] and "all" in row]
    if first:
        questions, sheets, exceptions = (
            mean(n for row in first for n in row[kind]) for kind in ("questions", "sheets", "exceptions")
        )
        said.append(
            f"To see all 300 items of 15 classes takes {questions:.0f} questions, {sheets:.0f} sheets and "
            f"{exceptions:.0f} exceptions on average."
        )
    for cell in CELLS[1:]:
        compared = [row for (_, one), row in rows.items() if one == cell and "all" in row and "typical_95" in row]
        if compared:
            needed = sorted(mean(row["until_95"]) for row in compared)
            sooner = sum(mean(row["until_95"]) < min(mean(row[f"{way}_95"]) for way in WAYS) for row in compared)
            said.append(
                f"Of {cell}, 95% are right after {needed[0]:.0f} to {needed[-1]:.0f} decisions, on {sooner} of "
                f"{len(compared)} banks sooner than by both simpler ways."
            )
    return Page(
        name="from_nothing",
        title="From nothing: a batch without examples",
        question=(
            "How many decisions of a person label a batch if there is no catalogue at all? `handful.Session(X)` asks "
            "for names of groups that look alike. A sheet of up to 24 items is one decision, each of its exceptions "
            "one more. An item that is not named yet counts as wrong. The table has 300 items of 15 classes; "
            "*typical* and *random* items are answered one by one for a logistic regression."
        ),
        alt="Decisions until 95% of the labels are right, and until everything has been seen",
        figure=lambda: dots(shown, "decisions"),
        table=markdown_table(
            [
                "bank",
                "until 95% right",
                "until stop",
                "wrong then, %",
                "until all is seen",
                "typical items, 95%",
                "random items, 95%",
                "k-means, right, %",
            ],
            lines,
        ),
        shows=" ".join(said) or NOT_YET,
        limits=(
            f"{n_measured} of {n_cells} settings were run, with "
            f"{' or '.join(map(str, counts)) or 'no'} sessions each; regression and k-means on two of these batches. "
            "Sheets have 24 items; the page shows 18 sentences at once. All figures are means. Numbers of the method "
            "were chosen on the two banks that are marked; six sessions of three other banks had been run before, with "
            "an earlier version."
        ),
        made="A simulated person answers what `handful.Session` asks; see the docstring of `studies/from_nothing.py`.",
        commands=["python studies/from_nothing.py DATA", "python studies/from_nothing.py --render"],
        rows=[
            {"bank": short(name), **cell._asdict(), "sessions": len(row["all"])}
            | {column: mean(values) for column, values in row.items()}
            for (name, cell), row in rows.items()
            if "all" in row
        ],
    )


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
