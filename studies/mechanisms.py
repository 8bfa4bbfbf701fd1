"""What each mechanism of the model gains over those before it, in 32 kinds of batches, with the simple control first.

    python studies/mechanisms.py DATA --group tuning
    python studies/mechanisms.py DATA --group confirmation
    python studies/mechanisms.py --render

DATA is a folder that holds the data. `kinds_data.py` says how catalogues and batches are drawn; nothing was tuned on
these draws, and the confirmation group was run once. Numbers in brackets are those of the formulas in
docs/understand/model.md. Each step adds one mechanism to all that stand above it:

- `head`: the head, each item alone, (1) and (2). `sparse_em`, the simple control: EM of the shares (`control.py`).
- `offset`: the batch's offset and shares that follow the numbers of examples, each item alone, (3) and (4).
- `sets`: the classes that are present, (5) to (8). `alone`: labels of each item alone as far as the batch does not
  consist of few classes of about equal shares, (9).
- `means`: class means move once, (10), (11).
- `flatter`: labels are less certain in a batch that is far from its classes, (17). This is what `BatchClassifier` says.

Of each batch: percent of known items with the right label, and the log-loss, the mean of minus the logarithm of the
chance of the true class, at most that of a chance of one in a million. Of the last step: percent of known and of
unknown items that are rejected, and how well `unknown` ranks them (AUC). Differences are over batches of a kind, with
intervals of 95%.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import roc_auc_score

from bank_data import Ints
from control import CONTROL, chances, head_scores
from handful.estimators import BatchClassifier
from handful.model.batch import BatchItems, decide
from handful.model.knowledge import Knowledge
from handful.model.labels import Decision, label_alone, label_items
from handful.model.presence import find_sets
from handful.model.reference import Reference
from handful.model.tilts import estimate_tilts
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from kinds_data import GROUPS, NO_CLASS, Batch, Kind, tasks
from pages import Page, dots, file_of, keep, kept, mean

RESULTS = Path(__file__).parent / "results" / "mechanisms"
BATCHES = 24
LEAST_CHANCE = 1e-6
STEPS = ("head", CONTROL, "offset", "sets", "alone", "means", "flatter")
# What a step is compared with; the steps of the model build on the head, and not on the control.
BELOW = {CONTROL: "head", "offset": "head", **dict(zip(STEPS[3:], STEPS[2:], strict=False))}
LAST = STEPS[-1]
MODEL_PAGE = Path(__file__).parents[1] / "docs" / "understand" / "model.md"
BEGIN, END = "<!-- mechanisms: python studies/mechanisms.py --render -->\n", "<!-- end of mechanisms -->\n"
# Of each mechanism: its name on the page of the model, and the code that is there for it alone.
MECHANISMS = {
    CONTROL: ("the simple control", ("handful_fewshot.methods.sparse_em:solve_scores",)),
    "offset": ("offset, (3), (4)", ("handful.model.offset",)),
    "sets": (
        "classes present, (5) to (8)",
        tuple(
            f"handful.model.presence:{name}"
            for name in (
                "Presence",
                "error_correlation",
                "occupied",
                "temper_of",
                "sparse_shares",
                "find_sets",
                "SetsOfClasses",
                "distinct_sets",
                "weights_of_met",
                "JointLabels",
                "joint_labels",
            )
        ),
    ),
    "alone": (
        "each item alone, (9)",
        ("handful.model.presence:chance_of_alone", "handful.model.presence:SetsOfClasses.unevenness"),
    ),
    "means": ("means that move, (10), (11)", ("handful.model.means",)),
    "unknown": (
        "unknown items, (12) to (15)",
        tuple(f"handful.model.{name}" for name in ("unknown_of_catalogue", "unknown_in_batch", "evidence", "links")),
    ),
    "flatter": ("far batches, (17)", ("handful.model.evidence:distance_ratio",)),
}
Row = dict[str, Any]
Labels = npt.NDArray[Any]  # [item, class]


def of_steps(reference: Reference, points: Labels) -> dict[str, Labels]:
    """Return labels [item, class] of a batch after each step but the control and the last."""
    settings = reference.settings
    knowledge = Knowledge()
    items = BatchItems.of(points[None], reference, knowledge)
    scores, vectors = items.scores, items.vectors
    assert vectors is not None
    n_classes = scores.n_possible
    near = np.ones(1)  # as far as left-out examples: labels are as certain as they are
    tilts = estimate_tilts(scores, vectors, None, settings)
    alone = label_alone(scores, tilts)
    present = find_sets(alone, scores.shots, n_classes, settings)
    surely = present._replace(alone_weight=np.zeros(1))
    found: dict[str, Labels] = {"offset": alone.likelihood * alone.scale[..., None]}
    for step, sets in (("sets", surely), ("alone", present)):
        decision = Decision(n_classes, tilts, sets, near, None, None)
        found[step] = label_items(decision, scores, vectors, alone, None, settings).probabilities

    last = decide(items, settings)
    decision = last.decision._replace(distance=near)
    found["means"] = label_items(decision, scores, vectors, last.alone, None, settings).probabilities
    return {step: labels[0] for step, labels in found.items()}


def softmax(scores: Labels) -> Labels:
    """Return the chance of each class for each item alone."""
    found: Labels = np.exp(scores - scores.max(-1, keepdims=True))
    found /= found.sum(-1, keepdims=True)
    return found


def measured(classifier: BatchClassifier, batch: Batch) -> Row:
    """Label a batch by all steps."""
    catalogue: Any = classifier.model_
    scores = head_scores(classifier, batch.points)
    answer = classifier.infer(batch.points)
    labels = {"head": softmax(scores), CONTROL: chances(scores)}
    labels |= of_steps(catalogue.reference, catalogue.points(batch.points))
    labels[LAST] = np.asarray(answer.probabilities)
    known = batch.truth != NO_CLASS
    codes = np.searchsorted(answer.classes, batch.truth[known])
    row: Row = {
        "right": {step: _right(labels[step][known], codes) for step in STEPS},
        "loss": {step: _loss(labels[step][known], codes) for step in STEPS},
        "known_rejected": _percent(answer.rejected[known]),
    }
    if not known.all():
        row["unknown_rejected"] = _percent(answer.rejected[~known])
        told = np.nan_to_num(np.asarray(answer.unknown))  # NaN where the catalogue cannot tell: all alike
        row["auc"] = round(100 * float(roc_auc_score(~known, told)), 2)
    return row


def _right(labels: Labels, codes: Ints) -> float:
    return _percent(labels.argmax(-1) == codes)


def _loss(labels: Labels, codes: Ints) -> float:
    return round(float(-np.log(np.maximum(labels[np.arange(len(codes)), codes], LEAST_CHANCE)).mean()), 4)


def _percent(values: Any) -> float:
    return round(100 * float(np.mean(values)), 2)


def measure(data: Path, name: str, kind: Kind) -> list[Row]:
    """Label the batches of a kind."""
    rows = []
    with warnings.catch_warnings(action="ignore"):
        for number, task in enumerate(tasks(data, name, kind, BATCHES)):
            classifier = BatchClassifier().fit(task.examples, task.labels)
            rows += [{"catalogue": number, **measured(classifier, batch)} for batch in task.batches]
    return rows


def gain(rows: Sequence[Row], step: str, what: str, below: str | None = None) -> MeanEstimate:
    """Mean difference of a figure to the step below, with its interval over batches."""
    other = below or BELOW[step]
    return MeanEstimate.of(np.array([row[what][step] - row[what][other] for row in rows]))


def above_zero(rows: Sequence[Row], step: str) -> bool:
    """Whether a step has more right labels than the one below, by the interval."""
    return gain(rows, step, "right").above_zero


def table(found: Mapping[str, Mapping[str, Sequence[Row]]]) -> str:
    """Return a row for each step: right labels, and what it gains in closed and in open kinds of each group."""
    lines = []
    for step in STEPS:
        line: list[object] = [f"`{step}`"]
        for group, kinds in found.items():
            for is_open in (False, True):
                of = [rows for name, rows in kinds.items() if GROUPS[group][name].is_open == is_open]
                line.append(f"{mean(row['right'][step] for rows in of for row in rows):.1f}")
                line.append(_summary(of, step) if step in BELOW else "")
        lines.append(line)
    heads = [f"{group}, {kind}" for group in found for kind in ("closed", "open")]
    return markdown_table(["step", *(text for head in heads for text in (f"{head}: right", "gain"))], lines)


def _summary(of: Sequence[Sequence[Row]], step: str) -> str:
    """Mean gain in points over the kinds, and in how many it is above and below zero by its interval; then in nats."""
    points = [gain(rows, step, "right") for rows in of]
    nats = [gain(rows, step, "loss") for rows in of]
    above = sum(one.above_zero for one in points)
    below = sum(one.mean < -one.half_width for one in points)
    return f"{mean(one.mean for one in points):+.1f} ({above} ↑, {below} ↓), {mean(one.mean for one in nats):+.3f}"


def of_kinds(found: Mapping[str, Mapping[str, Sequence[Row]]]) -> Iterator[Row]:
    """Yield a row for each kind: figures of the first, the control's and the last step, and unknown items."""
    for group, kinds in found.items():
        for name, rows in kinds.items():
            over = gain(rows, LAST, "right", CONTROL)
            row = {
                "group": group,
                "kind": name,
                **{step: mean(row["right"][step] for row in rows) for step in ("head", CONTROL, LAST)},
                "gain_over_control": [over.mean, over.half_width],
                "log_loss": mean(row["loss"][LAST] for row in rows),
                "known_rejected": mean(row["known_rejected"] for row in rows),
            }
            if GROUPS[group][name].is_open:
                row["unknown_rejected"] = mean(row["unknown_rejected"] for row in rows)
                row["auc"] = mean(row["auc"] for row in rows)
            yield row


def lines_of(code: str) -> int:
    """Return the lines of a module, or of what follows the colon."""
    module, _, name = code.partition(":")
    there: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        there = getattr(there, part)
    return sum(bool(line.strip()) for line in inspect.getsource(there).splitlines())


def in_model(text: str) -> str:
    """Return the text of the page of the model with the table of its mechanisms."""
    found = {group: kept(RESULTS / group, kinds) for group, kinds in GROUPS.items()}
    lines = []
    for step, (title, code) in MECHANISMS.items():
        line = [title, f"{sum(map(lines_of, code)):,}"]
        for kinds in found.values():
            line += _gains(list(kinds.values()), step) if step in BELOW else ["no label", ""]
        lines.append(line)
    heads = [f"{group}: {what}" for group in found for what in ("points", "nats")]
    before, _, rest = text.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"model.md must have the lines {BEGIN.strip()!r} and {END.strip()!r}, one after the other")
    table = markdown_table(["mechanism", "lines", *heads], lines)
    return f"{before}{BEGIN}\n{table}\n\n{_unknown_found(found)}\n\n{END}{after}"


def _gains(kinds: Sequence[Sequence[Row]], step: str) -> list[str]:
    """Mean gain over the step below in points and nats, and in how many kinds each is better and worse."""
    said = []
    for what, better in (("right", 1), ("loss", -1)):
        each = [gain(rows, step, what) for rows in kinds]
        up = sum(better * one.mean > one.half_width for one in each)
        down = sum(-better * one.mean > one.half_width for one in each)
        digits = 1 if what == "right" else 3
        said.append(f"{mean(one.mean for one in each):+.{digits}f} ({up} better, {down} worse)")
    return said


def _unknown_found(found: Mapping[str, Mapping[str, Sequence[Row]]]) -> str:
    """Say what the last step rejects."""
    said = []
    for group, kinds in found.items():
        closed = [row for name, rows in kinds.items() if not GROUPS[group][name].is_open for row in rows]
        opened = [row for name, rows in kinds.items() if GROUPS[group][name].is_open for row in rows]
        said.append(
            f"of the {group} kinds {mean(row['unknown_rejected'] for row in opened):.0f}% of the unknown items are "
            f"rejected (AUC {mean(row['auc'] for row in opened):.0f}), and "
            f"{mean(row['known_rejected'] for row in closed):.1f}% of the known items where all are known"
        )
    return "Unknown items: " + "; ".join(said) + "."


def page() -> Page:
    """Make the page from what was kept."""
    found = {group: kept(RESULTS / group, kinds) for group, kinds in GROUPS.items()}
    kinds = list(of_kinds(found))
    shown = {
        name: {
            f"gained on {CONTROL}": [row["right"][LAST] - row["right"][CONTROL] for row in rows],
        }
        for of in found.values()
        for name, rows in of.items()
    }
    ahead = [row["gain_over_control"] for row in kinds]
    above = sum(gained > half for gained, half in ahead)
    below = sum(gained < -half for gained, half in ahead)
    closed = [row for row in kinds if "auc" not in row]
    opened = [row for row in kinds if "auc" in row]
    idle = [
        step for step in STEPS[3:] if not any(above_zero(rows, step) for of in found.values() for rows in of.values())
    ]
    too_many = [f"{row['kind']} ({row['known_rejected']:.1f}%)" for row in closed if row["known_rejected"] > 2]
    return Page(
        name="mechanisms",
        title="What each mechanism gains",
        question=(
            "The model has many parts. What does each of them gain over those before it? Percent of known items with "
            "the right label, means over kinds of batches; then the gain over the step above in points, in how many "
            "kinds it is above (↑) and below (↓) zero by its 95% interval, and the change of the log-loss, where less "
            "is better. `sparse_em`, the simple control, and `offset` are compared with `head`. In *open* batches "
            "three tenths of the items are unknown, but for those of real laboratories and companies."
        ),
        alt="Points of right labels that the model gains on the simple control, in each kind of batches",
        figure=lambda: dots(shown, "points gained on the simple control", at=0),
        table=table(found),
        shows=(
            f"All steps together gain {mean(gained for gained, _ in ahead):+.1f} points on the simple control, "
            f"above zero by the interval in {above} of {len(ahead)} kinds, below in {below}. Most of it is the "
            "classes that are present, `sets`. No kind has more right labels by "
            f"{' or '.join(f'`{step}`' for step in idle)}: what these change is how certain labels are, and which "
            "items are rejected. In open batches "
            f"{mean(row['unknown_rejected'] for row in opened):.0f}% of the unknown items are rejected, with an AUC "
            f"of {mean(row['auc'] for row in opened):.0f}. Where all items are known, more than 2% of them are "
            f"rejected in {len(too_many)} of {len(closed)} kinds" + (f": {', '.join(too_many)}." if too_many else ".")
        ),
        limits=(
            f"{BATCHES} batches of each kind, of one to three catalogues, so intervals are a little too narrow. Of "
            f"{len(kinds)} kinds, about one is above or below zero by chance in each column. A step is shown in one "
            "order; in another it may gain more or less."
        ),
        made="`studies/kinds_data.py` draws catalogues and batches.",
        commands=[
            "python studies/mechanisms.py DATA --group tuning",
            "python studies/mechanisms.py DATA --group confirmation",
            "python studies/mechanisms.py --render",
        ],
        rows=[
            {"group": group, "kind": name, **row}
            for group, of in found.items()
            for name, rows in of.items()
            for row in rows
        ],
        more={"kinds": kinds},
    )


def main() -> None:
    """Measure a group, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that holds the data")
    parser.add_argument("--group", choices=list(GROUPS), default="tuning")
    parser.add_argument("--only", nargs="+", help="some of the group's kinds")
    parser.add_argument("--render", action="store_true", help="write the page from what was kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.render:
        page().write()
        MODEL_PAGE.write_text(in_model(MODEL_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for name in given.only or GROUPS[given.group]:
        rows = measure(given.data, name, GROUPS[given.group][name])
        keep(file_of(RESULTS / given.group, name), rows, levels=1)
        means = {step: round(mean(row["right"][step] for row in rows), 1) for step in STEPS}
        print(name, json.dumps(means), flush=True)


if __name__ == "__main__":
    main()
