"""Kinds that nobody has seen when a review may stop, and what it costs to see them.

    python studies/kinds.py DATA [--group tuning] [--banks esc50-birdnet ...] [--parts unequal ...]
    python studies/kinds.py --render

A batch has kinds of very unequal size: 5 of 40 items, and 3 each of 20, 8, 4, 2 and 1; a size is cut to what a bank
holds. A simulated person who knows the truth answers what `handful.Session` asks, until nothing is asked. A sheet is
one decision, and so is every item on it whose label is wrong. A kind is missed if no item of it has its right name.

- `unequal`: these sizes, no examples. `bursts`: each of the six smallest kinds is a burst, every item with three near
  copies (cosine 0.98 about the mean of the batch). `overlooks`: the person does not see a tenth of the wrong labels on
  sheets.
- `catalogue`: a catalogue of up to 60 classes with 5 examples each has 15 of the 20 kinds.
- `fifth`, `half`, `triple`, `ninefold`: a fifth or a half of these kinds, or three or nine times as many, as far as a
  bank has them.

`labels` is the first moment at which few enough labels are wrong, whatever the kinds; `stop` is when the session says
that one may stop; `all` is when everything was seen. On the same batches, one item at a time: the `typical` item of the
largest cluster without an answer, or a `random` one, and labels by the control (a linear head of the answers, and EM of
the shares of the classes). Their rule of stopping is that of Kurinchi-Vendhan and Beery (2026) as far as its summary
says it: predictions are stable and the rarefaction curve is flat, here over the last 20 answers.

Results are kept in `studies/results/kinds/`; what is there is not measured again without `--again`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from bank_data import Floats, Ints, rng_of, whole_numbers
from control import control
from from_nothing import INVERSE_RIDGE, most_typical
from handful import Session
from handful.session import Request
from handful_fewshot.reports.plots import COLOURS
from handful_fewshot.reports.tables import markdown_table
from pages import NOT_YET, Cells, Page, kept, mean, measure_groups
from sessions import CLIPS, TINY, short

RESULTS = Path(__file__).parent / "results" / "kinds"
CLINC, ESC, CALTECH, CUB = "clinc150-minilm", "esc50-birdnet", "caltech101-efflite0", "cub200-efflite0"
BANKING, OMNIGLOT = "banking77-minilm", "omniglot659-conv4"
GROUPS = {"confirmation": (BANKING, TINY, OMNIGLOT, CLIPS), "tuning": (CLINC, ESC, CALTECH, CUB)}
SIZES = (40,) * 5 + (20,) * 3 + (8,) * 3 + (4,) * 3 + (2,) * 3 + (1,) * 3
NOT_IN_CATALOGUE = (20, 8, 4, 2, 1)
CLASSES, SHOTS = 60, 5
COPIES, AWAY = 3, 0.2  # frames of a burst beside the first, and how far they are from it
SMALLEST = 2  # items of a kind that comes as a burst
OVERLOOKED = 0.1
# Answers over which predictions are stable and no kind is new, and the share of predictions that may change.
ANSWERS, CHANGED = 20, 0.01
MOST_ANSWERS = 160
Row = dict[str, Any]
Batch = tuple[Floats, list[int]]


class Part(NamedTuple):
    """A kind of session: kinds per kind of `SIZES`, sessions of a bank, and what else is so."""

    name: str
    factor: float = 1.0
    sessions: int = 6
    bursts: bool = False
    overlooked: float = 0.0


UNEQUAL = Part("unequal")
PARTS = (
    UNEQUAL,
    Part("bursts", bursts=True),
    Part("overlooks", overlooked=OVERLOOKED),
    Part("fifth", 0.2, 3),
    Part("half", 0.5, 3),
    Part("triple", 3.0, 2),
)
CATALOGUE = Part("catalogue", sessions=3)
# One bank of either group has kinds enough.
NINEFOLD = Part("ninefold", 9.0, 1)
LARGEST = {CUB, TINY}


def read(folder: Path) -> tuple[Floats, Ints]:
    """Read vectors and labels; of voices, the clips."""
    before = "short_" if folder.name == CLIPS else ""
    features: Floats = np.load(folder / ("short.npy" if before else "features.npy")).astype(np.float32)
    return features, whole_numbers(folder / f"{before}labels.npy")


def sizes_of(factor: float) -> list[int]:
    """Return the sizes of the kinds of a batch."""
    if factor < 1:
        return list(SIZES[:: round(1 / factor)])
    return sorted(SIZES * round(factor), reverse=True)


class Drawn(NamedTuple):
    """Rows of a batch, its kinds with their rows that are left, and the kinds that are not in it."""

    rows: Ints
    kinds: list[int]
    spare: list[Ints]
    others: list[int]


def drawn(labels: Ints, sizes: Sequence[int], rng: np.random.Generator, shots: int = 0) -> Drawn:
    """Draw a batch; there are as many kinds as the bank has, and of each at most what it holds beside the shots."""
    others = rng.permutation(np.unique(labels)).tolist()
    most = int(np.bincount(labels).max()) - shots
    rows, kinds, spare = [], [], []
    for size in (min(size, most) for size in sizes):
        kind = next((k for k in others if (labels == k).sum() >= size + shots), None)
        if kind is None:
            continue
        others.remove(kind)
        some = rng.permutation(np.flatnonzero(labels == kind))
        kinds.append(kind)
        rows.append(some[:size])
        spare.append(some[size : size + shots])
    return Drawn(rng.permutation(np.concatenate(rows)), kinds, spare, others)


def with_bursts(points: Floats, truth: list[int], rng: np.random.Generator) -> Batch:
    """Give every item of the smallest kinds near copies, as the frames of a burst are."""
    counts = Counter(truth)
    rare = np.array([item for item, kind in enumerate(truth) if counts[kind] <= SMALLEST])
    centre = points.mean(0)
    first = np.repeat(points[rare] - centre, COPIES, axis=0)
    step = rng.normal(size=first.shape)
    step *= AWAY * np.linalg.norm(first, axis=1, keepdims=True) / np.linalg.norm(step, axis=1, keepdims=True)
    copies = (first + step + centre).astype(np.float32)
    return np.concatenate([points, copies]), [*truth, *(truth[item] for item in np.repeat(rare, COPIES))]


def batch_of(folder: Path, number: int, part: Part) -> Batch:
    """Draw the batch of a session without examples."""
    features, labels = read(folder)
    rng = rng_of(folder.name, "kinds", part.factor, number)
    rows = drawn(labels, sizes_of(part.factor), rng).rows
    batch = features[rows], labels[rows].tolist()
    return with_bursts(*batch, rng) if part.bursts else batch


class Person:
    """Someone who knows the truth, and overlooks some of the wrong labels on a sheet.

    Parameters
    ----------
    session, truth
        The session, and the kind of every item.
    overlooked, rng
        The share of the wrong labels on sheets that is overlooked, and when.
    """

    def __init__(self, session: Session, truth: Sequence[int], overlooked: float, rng: np.random.Generator) -> None:
        self.session = session
        self.truth = truth
        self.overlooked = overlooked
        self.rng = rng

    def reply(self, request: Request) -> Iterator[None]:
        """Answer a request, one decision after another."""
        says = [self.truth[item] for item in request.items]
        labels: Sequence[int | None] = request.labels
        common = None
        if not request.oddest:
            # The commonest kind is the answer about the sheet.
            common = max(dict.fromkeys(says), key=lambda kind: (says.count(kind), kind == request.label))
            labels = [common] * len(says)
        shown = list(zip(request.items, labels, says, strict=True))
        not_named = self.session.not_named if request.oddest else np.zeros(len(self.truth), dtype=bool)
        wrong = [item for item, label, kind in shown if not_named[item] or label != kind]
        if request.is_sheet:
            wrong = [item for item in wrong if not_named[item] or self.rng.random() >= self.overlooked]
        right = [item for item in request.items if item not in wrong]
        if right and common is not None:
            self.session.answer(right, common, new=True, wrong=wrong)
            yield
        elif right:
            self.session.accept(right, wrong=wrong)
            yield
        for item in wrong:
            self.session.answer(item, self.truth[item], new=True)
            yield


def state(session: Session, truth: Sequence[int]) -> dict[str, int]:
    """Say which kinds nobody has seen, which are not among the labels, and how many labels are wrong."""
    answer = session.result
    labels = answer.classes[answer.codes[:, 0]].tolist() if len(answer.classes) else [None] * len(truth)
    said = [None if none else label for none, label in zip(answer.rejected.tolist(), labels, strict=True)]
    given = session.said.given
    seen = {truth[item] for item, label in given.items() if label == truth[item]}
    return {
        "decisions": session.n_decisions,
        "missed": len(set(truth) - seen),
        "unlisted": len(set(truth) - set(said)),
        "wrong": sum(one != kind for one, kind in zip(said, truth, strict=True)),
        "unseen": int((~session.seen).sum()),
    }


def followed(session: Session, truth: Sequence[int], overlooked: float, rng: np.random.Generator) -> Row:
    """Follow a session to its end, and note the moments at which it might have stopped."""
    person = Person(session, truth, overlooked, rng)
    found: dict[str, dict[str, int]] = {}
    curve = []

    def note() -> None:
        now = state(session, truth)
        curve.append((len(set(truth)) - now["missed"], len(truth) - now["wrong"]))
        if "labels" not in found and session.labels_are_good:
            found["labels"] = now
        if "stop" not in found and session.may_stop:
            found["stop"] = now
        if "all" not in found and session.is_done and not session.exceptions:
            found["all"] = now

    note()
    while (request := session.ask()) is not None:
        for _ in person.reply(request):
            note()
    end = state(session, truth)
    row = {
        f"{moment}_{name}": value
        for moment in ("labels", "stop", "all")
        for name, value in found.get(moment, end).items()
    }
    kinds, right = zip(*curve[: MOST_ANSWERS + 1], strict=True)
    sizes = {"items": len(truth), "kinds": len(set(truth))}
    return sizes | row | {f"end_{name}": value for name, value in end.items()} | {"curve": [kinds, right]}


def measured_part(folder: Path, part: Part) -> Row:
    """Follow the sessions of a part; each column has one entry per session."""
    rows = []
    for number in range(part.sessions):
        points, truth = batch_of(folder, number, part)
        rng = rng_of(folder.name, "person", part.name, number)
        rows.append(followed(Session(points), truth, part.overlooked, rng))
    return {name: [row[name] for row in rows] for name in rows[0]}


def measured_catalogue(folder: Path, part: Part) -> Row:
    """Follow sessions with a catalogue that lacks five of the kinds."""
    features, labels = read(folder)
    rows = []
    for number in range(part.sessions):
        rng = rng_of(folder.name, "kinds with a catalogue", number)
        found = drawn(labels, SIZES, rng, SHOTS)
        without = {found.kinds[SIZES.index(size)] for size in NOT_IN_CATALOGUE}
        examples = [some for kind, some in zip(found.kinds, found.spare, strict=True) if kind not in without]
        absent = found.others[: CLASSES - len(examples)]
        examples += [rng.permutation(np.flatnonzero(labels == kind))[:SHOTS] for kind in absent]
        of = np.concatenate(examples)
        truth = labels[found.rows].tolist()
        session = Session(features[found.rows], (features[of], labels[of]))
        rows.append(followed(session, truth, 0.0, rng))
    return {name: [row[name] for row in rows] for name in rows[0]}


# -- one item at a time ---------------------------------------------------------------------------------------------


def labels_by_control(points: Floats, truth: Ints, answered: list[int]) -> Ints:
    """Label a batch by a linear head of the answers, and EM of the shares of the classes."""
    given = truth[answered]
    found: Ints = np.full(len(points), given[0])
    if len(set(given.tolist())) > 1:
        model = LogisticRegression(C=INVERSE_RIDGE, tol=1e-4, max_iter=300).fit(points[answered], given)
        scores = model.decision_function(points)
        scores = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
        found = model.classes_[control(scores)]
    found[answered] = given
    return found


def one_at_a_time(points: Floats, truth: Ints, following: Callable[[list[int]], int]) -> Row:
    """Answer one item after another; note kinds and right labels, and when the rule of the literature stops."""
    answered: list[int] = []
    named, right, before = [0], [0], []
    row: Row = {}
    while len(answered) < min(MOST_ANSWERS, len(points)):
        answered.append(following(answered))
        labels = labels_by_control(points, truth, answered)
        before.append(labels)
        named.append(len(set(truth[answered].tolist())))
        right.append(int((labels == truth).sum()))
        if "stop_decisions" not in row and len(before) > ANSWERS:
            is_flat = named[-1] == named[-1 - ANSWERS]
            is_stable = (labels != before[-1 - ANSWERS]).mean() <= CHANGED
            if is_flat and is_stable:
                missed = len(set(truth.tolist())) - named[-1]
                row = {"stop_decisions": len(answered), "stop_missed": missed, "stop_wrong": len(truth) - right[-1]}
    return {"stop_decisions": None, "stop_missed": None, "stop_wrong": None} | row | {"curve": [named, right]}


def measured_way(folder: Path, way: str) -> Row:
    """Label the batches of the first part one item at a time."""
    rows = []
    for number in range(UNEQUAL.sessions):
        points, kinds = batch_of(folder, number, UNEQUAL)
        points = points - points.mean(0)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        order = rng_of(folder.name, way, number).permutation(len(points)).tolist()
        following = partial(most_typical, points) if way == "typical" else partial(_next_of, order)
        rows.append(one_at_a_time(points, np.array(kinds), following))
    return {name: [row[name] for row in rows] for name in rows[0]}


def _next_of(order: list[int], answered: list[int]) -> int:
    return order[len(answered)]


WAYS = ("typical", "random")


def cells(folder: Path) -> Cells:
    """List what is measured on a bank."""
    for part in PARTS:
        yield part.name, {"part": part.name}, partial(measured_part, folder, part)
    yield CATALOGUE.name, {"part": CATALOGUE.name}, partial(measured_catalogue, folder, CATALOGUE)
    for way in WAYS if folder.name in GROUPS["confirmation"] else ():
        yield way, {"part": way}, partial(measured_way, folder, way)
    if folder.name in LARGEST:
        yield NINEFOLD.name, {"part": NINEFOLD.name}, partial(measured_part, folder, NINEFOLD)


# -- the page -------------------------------------------------------------------------------------------------------


def joined(found: dict[str, dict[str, list[Row]]]) -> dict[str, Row]:
    """Put the banks of every part together."""
    rows: dict[str, Row] = {}
    for name, parts in found.items():
        for part, (row, *_) in parts.items():
            before = rows.setdefault(part, {"bank": []})
            n_sessions = len(row["curve"])
            before["bank"] += [short(name)] * n_sessions
            for column, values in row.items():
                if isinstance(values, list):
                    before[column] = [*before.get(column, []), *values]
    return rows


def n_with(values: Sequence[int]) -> int:
    """Count the sessions with any."""
    return sum(value > 0 for value in values)


def middle(values: Sequence[float]) -> float:
    """Return the median."""
    return float(np.median(values))


NAMED = {
    "unequal": "no examples",
    "bursts": "rare kinds are bursts",
    "overlooks": "a tenth overlooked",
    "catalogue": "with a catalogue",
    "fifth": "a fifth of the kinds",
    "half": "half of the kinds",
    "triple": "three times the kinds",
    "ninefold": "nine times the kinds",
}


def line_of(name: str, row: Row) -> list[str]:
    """Return a line of the table."""
    n = len(row["items"])

    def at(moment: str) -> list[str]:
        missed = row[f"{moment}_missed"]
        return [f"{middle(row[f'{moment}_decisions']):g}", f"{n_with(missed)} ({sum(missed)})"]

    return [
        name,
        f"{middle(row['items']):g}",
        str(n),
        *at("labels"),
        *at("stop"),
        f"{mean(row['stop_wrong']):.1f}",
        *at("all"),
        f"{mean(row['all_wrong']):.1f}",
    ]


def other_line(way: str, row: Row) -> str:
    """Say how the rule of the literature did."""
    stops = [n for n in row["stop_decisions"] if n is not None]
    if not stops:
        return f"With {way} items it never stops within {MOST_ANSWERS} answers."
    missed = [n for n in row["stop_missed"] if n is not None]
    wrong = [n for n in row["stop_wrong"] if n is not None]
    return (
        f"With {way} items it stops in {len(stops)} of {len(row['stop_decisions'])} sessions within {MOST_ANSWERS} "
        f"answers, after {middle(stops):g} in the median; {n_with(missed)} of them have missed a kind "
        f"({sum(missed)} in all), and {mean(wrong):.0f} labels are wrong on average."
    )


def figure(rows: dict[str, Row]) -> Any:
    """Draw kinds seen and labels right against decisions."""
    with mpl.rc_context({"font.size": 9}):
        drawn_figure = Figure(figsize=(7, 3.1), layout="constrained")
        panels = drawn_figure.subplots(1, 2, sharex=True)
        named = {"unequal": "handful", "typical": "typical items, control", "random": "random items, control"}
        for k, (part, words) in enumerate(named.items()):
            if part not in rows:
                continue
            row = rows[part]
            sizes = rows["unequal"]["kinds"], rows["unequal"]["items"]
            for axes, of, place in zip(panels, sizes, range(2), strict=True):
                curves = [
                    np.pad(np.array(curve[place]) / n, (0, MOST_ANSWERS + 1 - len(curve[place])), "edge")
                    for curve, n in zip(row["curve"], of, strict=True)
                ]
                axes.plot(100 * np.mean(curves, 0), color=COLOURS[k], label=words if place == 0 else None)
        for axes, words in zip(panels, ("kinds seen, %", "labels right, %"), strict=True):
            axes.set_xlabel("decisions")
            axes.set_ylabel(words)
            axes.grid(color="0.92")
            axes.spines[["top", "right"]].set_visible(False)
        drawn_figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return drawn_figure


def page() -> Page:
    """Make the page."""
    confirmed = joined(kept(RESULTS / "confirmation", GROUPS["confirmation"]))
    tuned = joined(kept(RESULTS / "tuning", GROUPS["tuning"]))
    lines = [
        line_of(f"{words}{of}", rows[part])
        for of, rows in (("", confirmed), (" (tuning)", tuned))
        for part, words in NAMED.items()
        if part in rows
    ]
    said = list[str]()
    if "unequal" in confirmed:
        row = confirmed["unequal"]
        said.append(
            f"When few enough labels are wrong, a kind was never seen in {n_with(row['labels_missed'])} of "
            f"{len(row['items'])} sessions; when the page says that one may stop, in {n_with(row['stop_missed'])}."
        )
    if "overlooks" in confirmed:
        row = confirmed["overlooks"]
        n_kinds = sum(row["kinds"])
        said.append(
            f"If a tenth of the wrong labels on sheets is overlooked, {sum(row['stop_missed'])} of {n_kinds} kinds are "
            f"missed at the stop, {sum(row['all_missed'])} when everything was seen, and {sum(row['end_missed'])} "
            "after the second look that follows."
        )
    rule = [other_line(way, confirmed[way]) for way in WAYS if way in confirmed]
    if rule:
        said.append(
            " ".join(
                ["The rule of the literature is that predictions are stable and the rarefaction curve is flat.", *rule]
            )
        )
    rows = [
        {"group": group, "part": part, **{name: values[k] for name, values in row.items() if name != "curve"}}
        for group, of in (("confirmation", confirmed), ("tuning", tuned))
        for part, row in of.items()
        for k in range(len(row["bank"]))
    ]
    return Page(
        name="kinds",
        title="Every kind is named",
        question=(
            "Has a person seen an item of every kind when a review may stop? Kinds are of very unequal size, from 40 "
            "items to 1. Once few labels are expected to be wrong, the session shows the rest, oddest first. *Labels "
            "good* is the moment at which few enough labels are wrong, whatever the kinds. Columns named *missed* "
            "count the sessions in which a kind was never seen, and all such kinds."
        ),
        alt="Kinds seen and labels right against decisions, for handful and for one item at a time",
        figure=lambda: figure(confirmed),
        table=markdown_table(
            [
                "batch",
                "items",
                "sessions",
                "labels good after",
                "missed",
                "may stop after",
                "missed",
                "wrong labels",
                "all seen after",
                "missed",
                "wrong labels",
            ],
            lines,
        ),
        shows=" ".join(said) or NOT_YET,
        limits=(
            "How many odd items are enough, and when they come, was chosen on the data sets marked *tuning*. The "
            "others were used once. What is counted is what was done: nobody knows how many kinds are left, and a kind "
            "that looks like another one on these features is found only when everything was seen. The rule of the "
            "literature is known here from its summary alone; its numbers are ours."
        ),
        made="A simulated person answers what `handful.Session` asks; see the docstring of `studies/kinds.py`.",
        commands=[
            "python studies/kinds.py DATA --group tuning",
            "python studies/kinds.py DATA",
            "python studies/kinds.py --render",
        ],
        rows=rows,
    )


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
