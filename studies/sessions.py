"""How many answers a review needs, and what it leaves for the next batch.

    python studies/sessions.py DATA [--banks grocery-efflite0 ...] [--parts answers batches]
    python studies/sessions.py --render

A simulated person, who is always right, answers over HTTP what the page of `handful review` asks.

`answers`: a catalogue has 1 or 5 examples of up to 40 classes. A batch has 80 items of 6 classes, in shares drawn from
a Dirichlet of parameter 2; in half of the cells the catalogue lacks two of them. Counted are answers until 95 and 99 %
of the labels are right, if the next item is the first question of the page (`again`), the next of a list of questions
made at the beginning (`once`), the `least certain` one, or one at `random`; after every answer the batch is labelled
again; a session ends after 50 answers, and what is not reached by then counts as 50. `one by one` labels nothing
again: the person reads all items in their order.

`batches`: 20 batches in a row of 60 items of 6 of 40 classes, of which the catalogue has 30 at first, with 1 example
each. Ten answers per batch become examples of the catalogue. Compared is the share right before any answer, with the
catalogue that grows and with the one of the beginning.

Results are kept in `studies/results/sessions/`; what is there is not measured again without `--again`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from bank_data import bank, orders, rng_of
from handful.classification.page_data import best_questions
from handful.estimators import BatchClassifier
from handful.fewshot.reports.tables import markdown_table
from handful.review.batch_review import BatchReview
from handful.review.guard import new_token
from handful.review.journal import opened
from handful.review.memory import MemoryLabeller
from handful.review.server import Finished, Routes, make_app
from handful.review.server import Page as ReviewPage
from pages import NOT_YET, Cells, Page, dots, kept, mean, measure_groups, verdict
from pages import requirements as _required

RESULTS = Path(__file__).parent / "results" / "sessions"
GROUPS = {"confirmation": ("grocery-efflite0", "banking77-minilm", "tinyimagenet200-efflite0")}
RULES = ("again", "once", "least certain", "random", "one by one")
GOALS = (0.95, 0.99)
ITEMS, PRESENT, CLASSES, MOST, TASKS = 80, 6, 40, 50, 4
# Examples per class, and classes of the batch that the catalogue lacks.
CELLS = ((1, 0), (5, 0), (1, 2), (5, 2))
REPEATS = 2  # on each bank
HOST = "127.0.0.1:8000"
Row = dict[str, Any]


class Drawn:
    """A catalogue and a batch."""

    def __init__(
        self, folder: Path, number: int, items: int, present: int, known: int, lacking: int, shots: int
    ) -> None:
        (features, labels), order = bank(folder), orders(folder, number)
        rng = rng_of(folder.name, "sessions", number, items, present, known, lacking, shots)
        enough = [k for k in rng.permutation(len(order)).tolist() if len(order[k]) > shots + 4]
        classes = enough[:known]
        sizes = rng.multinomial(items, rng.dirichlet(np.full(present, 2.0)))
        rows = [
            rng.choice(order[k][shots:], min(n, len(order[k]) - shots), replace=False)
            for k, n in zip(classes[:present], sizes.tolist(), strict=True)
        ]
        batch = rng.permutation(np.concatenate(rows))
        examples = np.concatenate([order[k][:shots] for k in classes[lacking:]])
        self.rng, self.batch = rng, features[batch]
        self.truth = [f"class {k}" for k in labels[batch].tolist()]
        self.classifier = BatchClassifier().fit(features[examples], [f"class {k}" for k in labels[examples].tolist()])


class Person:
    """Someone who is always right, at a page."""

    def __init__(self, client: Any, review: BatchReview, truth: list[str]) -> None:
        self.client, self.review, self.truth = client, review, truth
        self.state = client.get("/state").json()

    def answer(self, item: int) -> None:
        """Say what an item is."""
        known = self.state["classes"][: self.state["n_known"]]
        body = {
            "number": self.state["number"],
            "items": [item],
            "said": "class" if self.truth[item] in known else "new",
            "label": self.truth[item],
        }
        answer = self.client.post("/decide", json=body)
        assert answer.status_code == 200, answer.text
        self.state = answer.json()

    @property
    def right(self) -> np.ndarray[Any, Any]:
        """Which labels are right; those of the person are."""
        state, said = self.state, {item for item, *_ in self.state["decisions"]}
        return np.array(
            [
                item in said or (not state["rejected"][item] and state["classes"][state["label"][item]] == name)
                for item, name in enumerate(self.truth)
            ]
        )

    def open(self) -> list[int]:
        """Items without an answer, the least certain first."""
        said = {item for item, *_ in self.state["decisions"]}
        order = np.argsort(self.state["certainty"], kind="stable").tolist()
        return [item for item in order if item not in said]


@contextmanager
def at_the_page(drawn: Drawn) -> Iterator[Person]:
    """Start a review, and open its page."""
    label, token = MemoryLabeller(drawn.classifier, drawn.batch), new_token()
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), {"batch": label.batch.fingerprint}) as journal:
        review = BatchReview(journal, label)
        routes = Routes(ReviewPage(review, "batch"), lambda *_: Finished([]), lambda _: None)
        app = make_app(routes, frozenset({HOST}), token)
        with TestClient(app, base_url=f"http://{HOST}{app.path}", headers={"origin": f"http://{HOST}"}) as client:
            client.get(f"http://{HOST}/?token={token}")
            yield Person(client, review, drawn.truth)


def answers_needed(drawn: Drawn, rule: str) -> list[int]:
    """Return the answers until each goal is reached."""
    needed: list[int] = []
    most = len(drawn.truth) if rule == "one by one" else MOST
    with at_the_page(drawn) as person:
        once = [one.item for one in best_questions(person.review.classified, MOST)]
        order = drawn.rng.permutation(len(drawn.truth)).tolist()
        right, n = person.right, 0
        while len(needed) < len(GOALS) and n < most:
            if right.mean() >= GOALS[len(needed)]:
                needed.append(n)
                continue
            if rule == "one by one":
                right[order[n]] = True
            else:
                still = person.open()
                ask = person.state["ask"]
                first = {"again": [] if ask is None else ask["items"], "once": once, "random": order}.get(rule, [])
                person.answer(next((item for item in first if item in still), still[0]))
                right = person.right
            n += 1
    return [*needed, *[most] * (len(GOALS) - len(needed))]


def measured_answers(folder: Path, shots: int, lacking: int) -> Row:
    """Count the answers that every rule needs."""
    found: dict[str, list[list[int]]] = {rule: [] for rule in RULES}
    before = []
    for number in range(TASKS):
        for rule in RULES:
            drawn = Drawn(folder, number, ITEMS, PRESENT, CLASSES, lacking, shots)
            found[rule].append(answers_needed(drawn, rule))
        labels = drawn.classifier.infer(drawn.batch).labels
        before.append(100 * float(np.mean([one == other for one, other in zip(labels, drawn.truth, strict=True)])))
    return {"before": round(mean(before), 1), "needed": found}


def measured_batches(folder: Path, repeat: int) -> Row:
    """Return the share right before any answer, of every batch, with a catalogue that grows and with the first one."""
    (features, labels), order = bank(folder), orders(folder, repeat)
    rng = rng_of(folder.name, "batches", repeat)
    classes = [k for k in rng.permutation(len(order)).tolist() if len(order[k]) > 20][:40]
    examples = np.concatenate([order[k][:1] for k in classes[:30]])
    fixed = BatchClassifier().fit(features[examples], [f"class {k}" for k in labels[examples].tolist()])
    x, y = list(features[examples]), [f"class {k}" for k in labels[examples].tolist()]
    grows, shares = fixed, {"grows": list[float](), "fixed": list[float]()}
    for _ in range(20):
        present = rng.choice(classes, 6, replace=False)
        batch = rng.permutation(np.concatenate([rng.choice(order[k][1:], 10, replace=False) for k in present]))
        truth = [f"class {k}" for k in labels[batch].tolist()]
        for name, classifier in (("grows", grows), ("fixed", fixed)):
            found = classifier.infer(features[batch]).labels
            shares[name].append(round(float(np.mean([a == b for a, b in zip(found, truth, strict=True)])), 4))
        drawn = Drawn.__new__(Drawn)
        drawn.batch, drawn.truth, drawn.classifier, drawn.rng = features[batch], truth, grows, rng
        with at_the_page(drawn) as person:
            for _ in range(10):
                ask = person.state["ask"]
                person.answer(person.open()[0] if ask is None else ask["items"][0])
            for item, *_ in person.state["decisions"]:
                x.append(features[batch[item]])
                y.append(truth[item])
        grows = BatchClassifier().fit(np.stack(x), y)
    return shares


def cells(folder: Path) -> Cells:
    """List what is measured on a bank."""
    for repeat in range(REPEATS):
        yield "batches", {"repeat": repeat}, partial(measured_batches, folder, repeat)
    for shots, lacking in CELLS:
        yield "answers", {"shots": shots, "lacking": lacking}, partial(measured_answers, folder, shots, lacking)


def requirements(found: dict[str, dict[str, list[Row]]]) -> Iterator[tuple[str, str, bool | None]]:
    """Say what was asked for, what was found, and whether it is reached."""
    rows = [row for of in found.values() for row in of.get("answers", [])]
    if rows:
        again, by_one = (mean(n[1] for row in rows for n in row["needed"][rule]) for rule in ("again", "one by one"))
        share = again / by_one
        yield "99 % right with at most a quarter of the answers of one by one", f"{share:.0%}", share <= 0.25
    audits = [row for of in found.values() for row in of.get("audit", [])]
    if audits:
        covered = mean(one for row in audits for one in row["24"]["covered"])
        n = sum(len(row["24"]["covered"]) for row in audits)
        yield f"the interval covers in 85 to 97 % of {n} sessions", f"{covered:.1%}", 0.85 <= covered <= 0.97
    batches = [row for of in found.values() for row in of.get("batches", [])]
    if batches:
        gained = 100 * (mean(row["grows"][-1] for row in batches) - mean(row["grows"][0] for row in batches))
        yield "15 points more before any answer, batch 20 against batch 1", f"{gained:+.1f}", gained >= 15


def page() -> Page:
    """Make the page."""
    found = kept(RESULTS / "confirmation", GROUPS["confirmation"])
    required = _required(requirements(found))
    answers = [{"bank": name, **row} for name, of in found.items() for row in of.get("answers", [])]
    audits = [row for of in found.values() for row in of.get("audit", [])]
    batches = [row for of in found.values() for row in of.get("batches", [])]
    lines, shown = [], {}
    for shots, lacking in CELLS:
        here = [row for row in answers if (row["shots"], row["lacking"]) == (shots, lacking)]
        if here:
            needed = {
                rule: [[n[goal] for row in here for n in row["needed"][rule]] for goal in (0, 1)] for rule in RULES
            }
            pairs = [f"{mean(needed[rule][0]):.0f}/{mean(needed[rule][1]):.0f}" for rule in RULES]
            lines.append([shots, lacking, f"{mean(row['before'] for row in here):.1f}", *pairs])
            shown[f"{shots} examples, {lacking} unknown"] = {rule: needed[rule][1] for rule in RULES}
    said = list[str]()
    if answers:
        again, least = (
            mean(n[1] for row in answers for n in row["needed"][rule]) for rule in ("again", "least certain")
        )
        said.append(f"For 99 %, questions take {again:.0f} answers, and the least certain items {least:.0f}.")
    if audits:
        early, late = (mean(one for row in audits for one in row[n]["covered"]) for n in ("12", "24"))
        width, n_audits = (mean(row["24"][name] for row in audits) for name in ("half_width", "audits"))
        said.append(
            f"The 90 % interval of the checks had the true share of wrong labels in {early:.0%} of sessions after 12 "
            f"questions, and in {late:.0%} after 24, when it was ± {100 * width:.0f} points by {n_audits:.0f} checks."
        )
    if batches:
        at = {
            n: [100 * mean(row[name][n - 1] for row in batches) for name in ("grows", "fixed")] for n in (1, 5, 10, 20)
        }
        said.append(
            "In 20 batches in a row, right before any answer in batch 1, 5, 10 and 20: "
            f"{', '.join(f'{grows:.0f}' for grows, _ in at.values())} % with what was confirmed, "
            f"{', '.join(f'{fixed:.0f}' for _, fixed in at.values())} % with the first catalogue."
        )
    if not answers:
        said.append(f"How many answers are needed: {NOT_YET.lower()}")
    return Page(
        name="sessions",
        title="A review from beginning to end",
        question=(
            "Answers until 95/99 % of 80 labels are right; 50 at most, except in the last column. *again*: the "
            "[page](../do/review.md) asks again after every answer; *once*: at first; "
            "*one by one*: nothing is labelled again."
        ),
        alt="Answers until 99 % of the labels are right",
        figure=lambda: dots(shown, "answers until 99 % are right"),
        table=markdown_table(["examples", "unknown classes", "right before, %", *RULES], lines),
        shows=" ".join(said),
        limits=(f"{verdict(required)}. Batches per cell and bank: {TASKS}. The person is always right."),
        made="A simulated person answers over HTTP; see the docstring of `studies/sessions.py`.",
        commands=["python studies/sessions.py DATA", "python studies/sessions.py --render"],
        rows=[
            {
                **{name: row[name] for name in ("bank", "shots", "lacking", "before")},
                **{
                    f"{rule}, {goal:.0%}": mean(n[at] for n in row["needed"][rule])
                    for rule in RULES
                    for at, goal in enumerate(GOALS)
                },
            }
            for row in answers
        ],
        more={
            "requirements": required,
            "batches": [
                {
                    "bank": name,
                    "repeat": row["repeat"],
                    "batch": n + 1,
                    "grows": row["grows"][n],
                    "fixed": row["fixed"][n],
                }
                for name, of in found.items()
                for row in of.get("batches", [])
                for n in range(20)
            ],
        },
    )


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
