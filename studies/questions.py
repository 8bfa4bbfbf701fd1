"""What ten answers of a person gain, if the items are chosen by what they say about others.

    python studies/questions.py DATA --group tuning [--banks clinc150-minilm ...]
    python studies/questions.py DATA --group confirmation
    python studies/questions.py --render

DATA is a folder that holds the banks of the group. The rule was chosen on the tuning group; the confirmation group was
run once, at the end.

A catalogue has 1 or 2 examples of up to 100 classes. A batch has items of some of these, in shares drawn from a
Dirichlet of parameter 2, and in one cell two of its classes are not in the catalogue. Ten items are chosen, a person
says what they are, and the batch is labelled again with these answers: `classifier.infer(X, given=answers,
new_classes=...)`. The ten are then examples of their classes, of new ones if need be.

`asked` is `classifier.questions(X, 10)`. `least certain` are the ten items with the smallest chance that their label is
right, `certainty`. `random` are ten at random. An item whose class is not in the catalogue is right
only if it gets that class, which is possible once a person has named it.

Results are kept in `studies/results/questions/GROUP/BANK.json`; what is there is not measured again without `--again`.
`--render` writes the page from them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bank_data import Ints, bank, orders, rng_of
from handful.estimators import BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import NOT_YET, Cells, Page, dots, kept, mean, measure_groups, verdict
from pages import requirements as _required

RESULTS = Path(__file__).parent / "results" / "questions"
GROUPS = {
    "tuning": ("clinc150-minilm", "omniglot659-conv4"),
    "confirmation": ("banking77-minilm", "hwu64-minilm"),
}
ANSWERS, MOST_CLASSES, TASKS = 10, 100, 20
# Examples per class, items, classes present, and how many of these the catalogue lacks.
CELLS = ((1, 75, 5, 0), (1, 150, 10, 0), (1, 300, 20, 0), (2, 150, 10, 2))
RULES = ("random", "least certain", "asked")
Row = dict[str, Any]


class Task:
    """A catalogue and a batch."""

    def __init__(self, folder: Path, cell: tuple[int, int, int, int], number: int) -> None:
        shots, items, present, lacking = cell
        (features, labels), order = bank(folder), orders(folder, number)
        rng = rng_of(folder.name, "questions", cell, number)
        classes = rng.permutation(len(order))[:MOST_CLASSES]
        sizes = rng.multinomial(items, rng.dirichlet(np.full(present, 2.0)))
        rows = np.concatenate(
            [
                rng.choice(order[k][shots:], min(n, len(order[k]) - shots), replace=False)
                for k, n in zip(classes[:present], sizes, strict=True)
            ]
        )
        examples = np.concatenate([order[k][:shots] for k in classes[lacking:]])
        self.examples, self.names = features[examples], labels[examples]
        self.batch, self.truth = features[rows], labels[rows]
        self.random = rng.choice(len(rows), ANSWERS, replace=False)
        self.classifier = BatchClassifier().fit(self.examples, self.names)

    def chosen(self) -> tuple[Ints, dict[str, Ints]]:
        """Return the labels without answers, and the items that each rule chooses."""
        found = self.classifier.infer(self.batch)
        asked = np.array([question.item for question in self.classifier.questions(self.batch, ANSWERS)])
        least = np.argsort(found.certainty, kind="stable")[:ANSWERS]
        return found.labels, dict(zip(RULES, (self.random, least, asked), strict=True))

    def labelled_with(self, items: Ints) -> Ints:
        """Label the batch again, once a person has said what these items are."""
        answers = {int(item): int(self.truth[item]) for item in items}
        new = sorted({*answers.values()} - {*self.classifier.classes_.tolist()})
        labels: Ints = self.classifier.infer(self.batch, given=answers, new_classes=new).labels
        return labels


def measured_cell(folder: Path, cell: tuple[int, int, int, int], tasks: int = TASKS) -> Row:
    """Measure all rules on the tasks of a cell: percent right of all items, and of those it did not choose."""
    began, before = time.process_time(), []
    right: dict[str, list[tuple[float, float]]] = {rule: [] for rule in RULES}
    wrong: dict[str, list[float]] = {rule: [] for rule in RULES}
    for number in range(tasks):
        task = Task(folder, cell, number)
        labels, chosen = task.chosen()
        before.append(100 * float((labels == task.truth).mean()))
        for rule, items in chosen.items():
            good = task.labelled_with(items) == task.truth
            rest = np.delete(good, items)
            right[rule].append((100 * float(good.mean()), 100 * float(rest.mean())))
            wrong[rule].append(float((labels[items] != task.truth[items]).sum()))
    return {
        "before": round(float(np.mean(before)), 2),
        "right": {rule: [[round(v, 3) for v in one] for one in of] for rule, of in right.items()},
        "wrong": {rule: round(float(np.mean(of)), 2) for rule, of in wrong.items()},
        "seconds": round(time.process_time() - began, 1),
    }


def ahead(rows: list[Row], rule: str, part: int) -> MeanEstimate:
    """Return how far `asked` is ahead of another rule, on all items (part 0) or on those that it did not ask (1)."""
    pairs = [
        (asked[part], other[part])
        for row in rows
        for asked, other in zip(row["right"]["asked"], row["right"][rule], strict=True)
    ]
    return MeanEstimate.of(np.array([one - other for one, other in pairs]))


def requirements(found: dict[str, list[Row]]) -> Iterator[tuple[str, str, bool]]:
    """Say what was asked for, what was found, and whether it is reached."""
    for name, rows in found.items():
        for rule in ("least certain", "random"):
            one = ahead(rows, rule, 0)
            yield (
                f"{name.partition('-')[0]}: ahead of ten {rule} by an interval",
                _said(one),
                one.mean > one.half_width,
            )


def page() -> Page:
    """Make the page."""
    found = {
        group: {name: of["cells"] for name, of in kept(RESULTS / group, banks).items()}
        for group, banks in GROUPS.items()
    }
    required = [{"group": group, **row} for group, of in found.items() for row in _required(requirements(of))]
    rows = [row for of in found["confirmation"].values() for row in of]
    lines, shown = [], {}
    for cell in CELLS:
        here = [row for row in rows if row["cell"] == list(cell)]
        if here:
            right = {rule: [mean(one[0] for one in row["right"][rule]) for row in here] for rule in RULES}
            values = [mean(row["before"] for row in here), *map(mean, right.values())]
            lines.append([*cell, *(f"{value:.1f}" for value in values)])
            shown["{} examples, {} items, {} classes, {} unknown".format(*cell)] = right
    head = ["examples", "items", "classes", "of these unknown", "no answers", *RULES]
    return Page(
        name="questions",
        title="Ten questions",
        question=(
            "What is gained when a person labels ten items, and which ten should they be? Percent of right labels "
            "in the whole batch, without answers and with ten: for ten items at *random*, for the ten *least certain*, "
            "and for the ten that `questions` chooses (*asked*), by what they say about others. Means over banking77 "
            "and hwu64. [Review a batch](../do/review.md) explains how to ask."
        ),
        alt="Accuracy after ten answers, by how the ten items were chosen",
        figure=lambda: dots(shown, "percent right after ten answers"),
        table=markdown_table(head, lines),
        shows=(
            "Ten answers help a great deal, and it matters which: `questions` is ahead of the least certain items by "
            f"{_said(ahead(rows, 'least certain', 0))} points and of random ones by "
            f"{_said(ahead(rows, 'random', 0))}. The least certain items are often alike, and no better than random "
            "ones here."
            if rows
            else NOT_YET
        ),
        limits=(
            f"{verdict([row for row in required if row['group'] == 'confirmation'], 'questions')} on the "
            "confirmation group, on "
            f"which nothing was chosen. {TASKS} batches per cell, sentences only, one or two examples per "
            "class, and a person who is always right."
        ),
        made=(
            "Answers become examples, of new classes if need be, and the batch is labelled again. The docstring of "
            "`studies/questions.py` says how batches are drawn."
        ),
        commands=[
            "python studies/questions.py DATA --group tuning",
            "python studies/questions.py DATA --group confirmation",
            "python studies/questions.py --render",
        ],
        rows=[
            {
                "group": group,
                "bank": name,
                **dict(zip(("examples", "items", "classes", "unknown"), row["cell"], strict=True)),
                "no_answers": row["before"],
                **{rule: mean(one[0] for one in row["right"][rule]) for rule in RULES},
                **{f"{rule}, of them wrong": row["wrong"][rule] for rule in RULES},
                **{f"ahead of {rule}": _pair(ahead([row], rule, 0)) for rule in RULES[:2]},
                **{f"ahead of {rule}, others": _pair(ahead([row], rule, 1)) for rule in RULES[:2]},
            }
            for group, of in found.items()
            for name, cells in of.items()
            for row in cells
        ],
        more={"requirements": required},
    )


def _pair(one: MeanEstimate) -> list[float]:
    return [one.mean, one.half_width]


def _said(one: MeanEstimate) -> str:
    return f"{one.mean:+.1f} ± {one.half_width:.1f}"


def cells(folder: Path) -> Cells:
    """Yield the cells of a bank."""
    return (("cells", {"cell": list(cell)}, partial(measured_cell, folder, cell)) for cell in CELLS)


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
