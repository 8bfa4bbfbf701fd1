"""How many decisions a review takes until it says that one may stop, and until everything has been seen.

    python studies/sessions.py DATA [--group tuning] [--banks grocery-efflite0 ...] [--parts "sessions 1" batches]
    python studies/sessions.py --render

`sessions`: a catalogue has 1, 3 or 5 examples of each of 60 classes. A batch has 80 items of 6 of them; in some cells
the catalogue lacks one or two of the 6. A simulated person answers what `handful.Session` asks, until everything has
been seen. It is noted when the session first says that the person may stop, or else when nothing is left to ask, and
how many labels are wrong then; also how far the session was off when it told how many answers were left, at first and
in the middle. 16 sessions per cell.

The person names missing classes, or says "none of these". On a sheet, the person accepts the items of the commonest
class with one answer; every other item is one more. A `careful` person knows the truth. A `hasty` one names another of
the classes offered in 3% of the answers that name a class, and overlooks one exception of a sheet in five, which then
gets the label of the sheet.

Of `hint3-sofmattress-minilm`, the catalogue is what the company wrote, and batches are 80 of the real requests, a third
of which have no class.

`batches`: 20 batches of one catalogue in a row, which has 3 examples of each of 60 classes at first; four catalogues
per bank. Every session ends when it says that one may stop. Items that were answered become examples of the catalogue,
and the calibration of a session is where the next one starts.

Results are kept in `studies/results/sessions/`; what is there is not measured again without `--again`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bank_data import Floats, Ints, bank, rng_of, unit, whole_numbers
from handful import BatchClassifier, Session
from handful.session import Calibration, Request
from handful.session.stopping import MOST_WRONG
from handful_fewshot.reports.tables import markdown_table
from pages import NOT_YET, Cells, Page, dots, kept, mean, measure_groups

RESULTS = Path(__file__).parent / "results" / "sessions"
CLIPS = "audiomnist-speakers"
REQUESTS = "hint3-sofmattress-minilm"
CALTECH, GROCERIES, TINY = "caltech101-efflite0", "grocery-efflite0", "tinyimagenet200-efflite0"
GROUPS = {
    "confirmation": ("banking77-minilm", CALTECH, GROCERIES, TINY, CLIPS, REQUESTS),
    "tuning": ("clinc150-minilm", "esc50-birdnet", "cub200-efflite0"),
}
CLASSES, PRESENT, ITEMS, LEAST, SPARE = 60, 6, 80, 4, 14
HALVES, SESSIONS = 2, 8
BATCHES, REPEATS = 20, 4
NO_CLASS = -1
ERRS, OVERLOOKS = 0.03, 0.2  # shares of the answers and exceptions of a hasty person


class Cell(NamedTuple):
    """Examples per class, classes of the batch that the catalogue lacks, whether they get a name, and who answers."""

    shots: int
    missing: int
    named: bool
    person: str

    def __str__(self) -> str:
        missing = f", {self.missing} missing" if self.missing else ""
        named = "" if not self.missing else ", named" if self.named else ", not named"
        person = "" if self.person == "careful" else ", hasty"
        return f"{self.shots} example{'s' if self.shots > 1 else ''}{missing}{named}{person}"


CELLS = (
    Cell(5, 0, True, "careful"),
    Cell(1, 0, True, "careful"),
    Cell(3, 1, True, "careful"),
    Cell(3, 1, False, "careful"),
    Cell(3, 2, True, "careful"),
    Cell(3, 2, False, "careful"),
    Cell(5, 0, True, "hasty"),
    Cell(3, 1, False, "hasty"),
)
OF_REQUESTS = (Cell(0, 0, False, "careful"), Cell(0, 0, False, "hasty"))
Row = dict[str, Any]


class Drawn(NamedTuple):
    """A catalogue, a batch, its truth, and the classes that the catalogue lacks."""

    classifier: BatchClassifier
    batch: Floats
    truth: Ints
    missing: frozenset[int]


@cache
def read(folder: Path) -> tuple[Floats, Ints]:
    """Read vectors and labels."""
    if folder.name == CLIPS:
        return unit(folder / "short.npy"), whole_numbers(folder / "short_labels.npy")
    return bank(folder)


@lru_cache(maxsize=SESSIONS)
def drawn(folder: Path, number: int, shots: int, missing: int) -> Drawn:
    """Draw a catalogue and a batch."""
    features, labels = read(folder)
    rng = rng_of(folder.name, "sessions that end", number, shots, missing)
    if folder.name == REQUESTS:
        return _requests(folder, rng)
    classes = rng.permutation(np.unique(labels))[:CLASSES].tolist()
    rows = {k: rng.permutation(np.flatnonzero(labels == k)) for k in classes}
    present = [k for k in classes if len(rows[k]) >= shots + SPARE][:PRESENT]
    sizes = LEAST + rng.multinomial(ITEMS - LEAST * PRESENT, np.full(PRESENT, 1 / PRESENT))
    lacking = frozenset(present[:missing])
    examples = np.concatenate([rows[k][:shots] for k in classes if k not in lacking])
    items = [rows[k][shots : shots + n] for k, n in zip(present, sizes.tolist(), strict=True)]
    batch = rng.permutation(np.concatenate(items))
    classifier = BatchClassifier().fit(features[examples], labels[examples])
    return Drawn(classifier, features[batch], labels[batch], lacking)


def _requests(folder: Path, rng: np.random.Generator) -> Drawn:
    """Take what a company wrote as the catalogue, and some of what people asked as the batch."""
    features, labels = read(folder)
    written = whole_numbers(folder / "original_split.npy") == 1
    batch = rng.choice(np.flatnonzero(~written), ITEMS, replace=False)
    truth = np.where(np.isin(labels[batch], labels[written]), labels[batch], NO_CLASS)
    classifier = BatchClassifier().fit(features[written], labels[written])
    return Drawn(classifier, features[batch], truth, frozenset({NO_CLASS}))


class Person:
    """Someone who answers what a session asks.

    Parameters
    ----------
    session
        The session.
    truth
        What the person would say about each item if always right; None for none of these.
    hasty, rng
        Whether the person makes mistakes, and when.
    """

    def __init__(self, session: Session, truth: list[int | None], hasty: bool, rng: np.random.Generator) -> None:
        self.session = session
        self.truth = truth
        self.hasty = hasty
        self.rng = rng

    def reply(self, request: Request) -> Iterator[None]:
        """Answer a request, one decision after another."""
        says = [self.truth[item] for item in request.items]
        if request.oddest and request.is_sheet:
            yield from self._reply_to_mixed(request, says)
            return
        commonest = max(dict.fromkeys(says), key=lambda label: (says.count(label), label == request.label))
        if self.hasty:
            says = [commonest if said != commonest and self.rng.random() < OVERLOOKS else said for said in says]
        pairs = list(zip(request.items, says, strict=True))
        others = [item for item, said in pairs if said != commonest]
        self._say([item for item, said in pairs if said == commonest], commonest, request, others)
        yield
        for item, said in pairs:
            if said != commonest:
                self._say([item], said, request)
                yield

    def _reply_to_mixed(self, request: Request, says: list[int | None]) -> Iterator[None]:
        """Accept the labels of a sheet that are right, and name every other item."""
        wrong = [
            (item, said)
            for item, label, said in zip(request.items, request.labels, says, strict=True)
            if self.session.not_named[item] or (label != said and not (self.hasty and self.rng.random() < OVERLOOKS))
        ]
        others = [item for item, _ in wrong]
        right = sorted(set(request.items) - set(others))
        if right:
            self.session.accept(right, wrong=others)
            yield
        for item, said in wrong:
            self._say([item], said, request)
            yield

    def _say(self, items: list[int], label: int | None, request: Request, wrong: Sequence[int] = ()) -> None:
        accepts = request.is_sheet and label == request.label
        if self.hasty and not accepts and self.rng.random() < ERRS:
            label = next(choice for choice in request.choices if choice != label)
        self.session.answer(items, label, new=label is not None, wrong=wrong)

    def n_wrong(self) -> int:
        """Count the labels that are wrong."""
        answer = self.session.result
        labels = answer.classes[answer.codes[:, 0]].tolist()
        said = [None if none else label for none, label in zip(answer.rejected.tolist(), labels, strict=True)]
        return sum(one != other for one, other in zip(said, self.truth, strict=True))


def measured_session(folder: Path, number: int, cell: Cell) -> Row:
    """Follow one session to its end."""
    found = drawn(folder, number, cell.shots, cell.missing)
    truth = [None if k in found.missing and not cell.named else k for k in found.truth.tolist()]
    session = Session(found.batch, found.classifier)
    person = Person(session, truth, cell.person == "hasty", rng_of(folder.name, "person", number))
    row: Row = {"first": person.n_wrong()}
    kinds = {"questions": 0, "sheets": 0, "exceptions": 0}
    left = [session.answers_left]
    if session.may_stop:
        row |= stopped(session, person, left)
    while (request := session.ask()) is not None:
        before = session.n_decisions
        for _ in person.reply(request):
            if "stop" not in row:
                left.append(session.answers_left)
                if session.may_stop:
                    row |= stopped(session, person, left)
        kinds["sheets" if request.is_sheet else "questions"] += 1
        kinds["exceptions"] += session.n_decisions - before - 1
    if "stop" not in row:
        row |= stopped(session, person, left)
    return row | {"all": session.n_decisions, "left": person.n_wrong()} | kinds


def stopped(session: Session, person: Person, left: list[int]) -> Row:
    """Note a session that says stop, or has nothing more to ask, and how well it told how many answers were left."""
    n_answers = session.n_decisions
    middle = n_answers // 2
    return {
        "stop": n_answers,
        "said": bool(session.may_stop),
        "wrong": person.n_wrong(),
        "seen": int(session.seen.sum()),
        "left_first": left[0] - n_answers,
        "left_middle": left[middle] - (n_answers - middle),
        "left_rises": mean(after > before for before, after in pairwise(left)) if n_answers else 0.0,
    }


def measured_half(folder: Path, half: int, cell: Cell) -> Row:
    """Follow the sessions of half a cell; each column has one entry per session."""
    rows = [measured_session(folder, half * SESSIONS + number, cell) for number in range(SESSIONS)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def measured_batches(folder: Path, repeat: int) -> Row:
    """Return the answers and the wrong labels of every batch of a catalogue, when its session says stop."""
    features, labels = read(folder)
    rng = rng_of(folder.name, "twenty batches that end", repeat)
    classes = rng.permutation(np.unique(labels))[:CLASSES].tolist()
    rows = {k: rng.permutation(np.flatnonzero(labels == k)) for k in classes}
    large = [k for k in classes if len(rows[k]) >= 3 + SPARE]
    examples = np.concatenate([rows[k][:3] for k in classes])
    classifier = BatchClassifier().fit(features[examples], labels[examples])
    calibration = Calibration()
    found: Row = {"answers": [], "wrong": []}
    for _ in range(BATCHES):
        present = rng.choice(large, PRESENT, replace=False).tolist()
        items = [rng.choice(rows[k][3:], min(ITEMS // PRESENT, len(rows[k]) - 3), replace=False) for k in present]
        batch = rng.permutation(np.concatenate(items))
        session = Session(features[batch], classifier, calibration=calibration)
        person = Person(session, labels[batch].tolist(), False, rng)
        while not session.may_stop and (request := session.ask()) is not None:
            for _ in person.reply(request):
                if session.may_stop:
                    break
        found["answers"].append(session.n_decisions)
        found["wrong"].append(person.n_wrong())
        calibration = session.calibration
        given = session.said.given
        if given:
            classifier = classifier.partial_fit(features[batch[list(given)]], list(given.values()))
    return found


def cells(folder: Path) -> Cells:
    """List what is measured on a bank."""
    for half in range(HALVES):
        for cell in OF_REQUESTS if folder.name == REQUESTS else CELLS:
            yield f"sessions {half + 1}", cell._asdict(), partial(measured_half, folder, half, cell)
    for repeat in range(REPEATS if folder.name != REQUESTS else 0):
        yield "batches", {"repeat": repeat}, partial(measured_batches, folder, repeat)


def joined(found: dict[str, dict[str, list[Row]]]) -> dict[tuple[str, Cell], Row]:
    """Put the halves of every bank and cell together."""
    rows: dict[tuple[str, Cell], Row] = {}
    for name, parts in found.items():
        for part in (f"sessions {half + 1}" for half in range(HALVES)):
            for row in parts.get(part, []):
                key = name, Cell(*(row[field] for field in Cell._fields))
                before = rows.get(key, {})
                columns = [column for column in row if column not in Cell._fields]
                rows[key] = {column: [*before.get(column, []), *row[column]] for column in columns}
    return rows


def false_stops(row: Row) -> float:
    """Share of sessions with more wrong labels than are tolerated when it says stop."""
    return mean(wrong > MOST_WRONG * ITEMS for wrong in row["wrong"])


def over_banks(rows: dict[tuple[str, Cell], Row], cell: Cell, column: str) -> float:
    """Median over banks of the medians of their sessions."""
    return float(np.median([np.median(row[column]) for (_, one), row in rows.items() if one == cell]))


def short(name: str) -> str:
    """Name a bank as people call it."""
    return {CLIPS: "clips", REQUESTS: "sofmattress", GROCERIES: "groceries"}.get(name, name.partition("-")[0])


def page() -> Page:
    """Make the page."""
    found = kept(RESULTS / "confirmation", GROUPS["confirmation"])
    rows = joined(found)
    lines, shown = [], {}
    for cell in CELLS:
        here = {name: row for (name, one), row in rows.items() if one == cell}
        if here:
            stops = [n for row in here.values() for n in row["stop"]]
            seen = [n for row in here.values() for n in row["all"]]
            shown[str(cell)] = {"until it says stop": stops, "until all is seen": seen}
            lines.append(_line(str(cell), here, over_banks(rows, cell, "stop"), over_banks(rows, cell, "all")))
    for cell in OF_REQUESTS:
        if (row := rows.get((REQUESTS, cell))) is not None:
            name = f"sofmattress{', hasty' if cell.person == 'hasty' else ''}"
            lines.append(_line(name, {REQUESTS: row}, *(float(np.median(row[of])) for of in ("stop", "all"))))
    counts = sorted({len(row["stop"]) for row in rows.values()})
    n_cells = sum(len(OF_REQUESTS if name == REQUESTS else CELLS) for name in GROUPS["confirmation"])
    batches = [row for parts in found.values() for row in parts.get("batches", [])]
    said = list[str]()
    if rows:
        questions, sheets, exceptions = (
            mean(n for (_, cell), row in rows.items() if cell.person == "careful" for n in row[kind])
            for kind in ("questions", "sheets", "exceptions")
        )
        said.append(
            f"To see all 80 items takes {questions:.0f} questions, {sheets:.0f} sheets and {exceptions:.0f} exceptions "
            "on average."
        )
        first, middle, rises = (
            mean(n for (_, cell), row in rows.items() if cell.person == "careful" for n in map(abs, row[column]))
            for column in ("left_first", "left_middle", "left_rises")
        )
        said.append(
            f"The number of answers that are left, as the session tells it, is off by {first:.1f} at first and by "
            f"{middle:.1f} halfway, on average, and rises after {100 * rises:.0f}% of the answers."
        )
    if batches:
        medians = [float(np.median([row["answers"][n - 1] for row in batches])) for n in (1, 5, 10, 20)]
        listed = ", ".join(f"{median:g}" for median in medians)
        said.append(f"In batch 1, 5, 10 and 20 of one catalogue, a session says stop after {listed} answers (medians).")
    return Page(
        name="sessions",
        title="A review from beginning to end",
        question=(
            "How many decisions does it take until `handful.Session` says that one may stop, and until all 80 items of "
            "a batch have been seen? A sheet of up to 24 items is one decision, each of its exceptions one more. A "
            "stop is false if more than 5% of the labels are wrong."
        ),
        alt="Decisions until the session says stop, and until everything has been seen",
        figure=lambda: dots(shown, "decisions"),
        table=markdown_table(
            ["catalogue", "wrong at first, %", "until stop", "wrong then, %", "false stops, %", "until all is seen"],
            lines,
        ),
        shows=" ".join(said) or NOT_YET,
        limits=(
            f"{len(rows)} of {n_cells} settings were run, with "
            f"{' or '.join(map(str, counts)) or 'no'} of {HALVES * SESSIONS} sessions each. The table has the median "
            "over data sets of each data set's median. The numbers of the method were chosen on other data sets. "
            "Sheets have 24 items here; the page shows 18 sentences at once, so that sentences take more sheets there."
        ),
        made="A simulated person answers what `handful.Session` asks; see the docstring of `studies/sessions.py`.",
        commands=["python studies/sessions.py DATA", "python studies/sessions.py --render"],
        rows=[
            {
                "bank": short(name),
                **cell._asdict(),
                "sessions": len(row["stop"]),
                **{column: mean(row[column]) for column in row},
                "median_stop": float(np.median(row["stop"])),
                "median_all": float(np.median(row["all"])),
                "false_stops": false_stops(row),
            }
            for (name, cell), row in rows.items()
        ],
        more={
            "batches": [
                {
                    "bank": short(name),
                    "repeat": row["repeat"],
                    "batch": n + 1,
                    "answers": row["answers"][n],
                    "wrong": row["wrong"][n],
                }
                for name, parts in found.items()
                for row in parts.get("batches", [])
                for n in range(len(row["answers"]))
            ],
        },
    )


def _line(name: str, here: dict[str, Row], stop: float, everything: float) -> list[str]:
    """Return a line of the table."""
    first, wrong = (100 * mean(mean(row[of]) for row in here.values()) / ITEMS for of in ("first", "wrong"))
    false = 100 * mean(false_stops(row) for row in here.values())
    return [name, f"{first:.0f}", f"{stop:g}", f"{wrong:.1f}", f"{false:.1f}", f"{everything:g}"]


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
