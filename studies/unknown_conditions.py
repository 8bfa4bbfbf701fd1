"""Conditions of the study of items of no class, as `unknown.py` describes them: each yields parts and their rows.

One long file: all conditions share the same catalogues, batches and measures.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from handful.engine.model import Context, JointAnswer, Reference, label_batch
from handful.estimators import BatchClassifier
from handful.fewshot.reports.summary import Estimate
from harm_data import bank, orders, rng_of, taken
from side_by_side import Batch, Bools, Floats, Ints, Row, chosen, unit, whole_numbers
from unknown_scores import OtherScores

SHOTS, OUT = 5, 10  # examples of each class, and classes taken out of the catalogue
CATALOGUES, SHUFFLES = 8, 10
SHARES = (0.1, 0.3, 0.6)
PURITY, HELD = 0.8, 0.5
FIRST_NEW = 100_000  # label of the first proposal that is added

Figures = dict[str, float]
Parts = Iterator[tuple[str, Callable[[], list[Row]]]]


@dataclass(frozen=True)
class UnknownGroup:
    """Data of a group. `strangers`: a bank, and items of no class that are mixed into its batches."""

    banks: tuple[str, ...]
    requests: str
    strangers: tuple[tuple[str, str], ...] = ()
    laboratories: str | None = None


GROUPS = {
    "tuning": UnknownGroup(("clinc150-minilm", "cub200-efflite0", "omniglot659-conv4"), "hint3-curekart-minilm"),
    "confirmation": UnknownGroup(
        ("banking77-minilm", "hwu64-minilm", "tinyimagenet200-efflite0", "caltech101-efflite0"),
        "hint3-sofmattress-minilm",
        (("clinc150-minilm", "clinc-oos-minilm"), ("caltech101-efflite0", "caltech-background-efflite0")),
        "lung-two-atlases",
    ),
}


@dataclass(frozen=True)
class UnknownStudy:
    """What is asked for: data, and batches of a cell, with the methods that take long, and with proposals added."""

    data: Path
    group: UnknownGroup
    tasks: int
    slow_tasks: int
    added_tasks: int


class OpenCatalogue:
    """The default with and without items of no class, and all other scores, fitted to the same examples."""

    def __init__(self, examples: Floats, labels: Ints, number: int = 0) -> None:
        self.number = number
        self.classes, codes = np.unique(labels, return_inverse=True)
        with warnings.catch_warnings(action="ignore"):
            fitted: Any = BatchClassifier().fit(examples, labels).catalogue_
        self.fitted = fitted
        self.others = OtherScores(examples, codes.astype(np.int64))

    def codes_of(self, labels: Ints) -> Ints:
        """Place of each label among the classes, -1 for a label that no example has."""
        place = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        return np.where(self.classes[place] == labels, place, -1)

    def seen(self, batches: Sequence[Batch], slow: int = 0) -> list[Figures]:
        """Label all batches; the first `slow` ones by the methods that take long, too."""
        found = []
        for place, batch in enumerate(batches):
            truth, both = self.codes_of(batch.truth), answers(self.fitted, batch)
            figures = told(truth, both) | {"number": float(self.number), "items": float(len(truth))}
            strange = truth < 0
            if strange.any() and not strange.all():
                scores = self.others.quick(batch.points) | {"ours": both.opened.unknown}
                scores["doubt"] = 1 - both.closed.probabilities.max(-1)
                if place < slow:
                    scores |= self.others.published(batch.points)
                figures |= separated(strange, scores)
            figures |= proposed(batch.truth, strange, both.opened)
            found.append(figures)
        return found


class Answers(NamedTuple):
    """A batch labelled as if nothing could be unknown, as the default does, and each item by the head alone."""

    closed: JointAnswer
    opened: JointAnswer
    alone: Ints


def answers(catalogue: Any, batch: Batch) -> Answers:
    """Label a batch."""
    points = catalogue.points(batch.points)
    closed = label_batch(points, Reference(catalogue.head))
    return Answers(closed, catalogue.label(batch.points, Context()), catalogue.head.scores(points).argmax(1))


def told(truth: Ints, found: Answers) -> Figures:
    """Figures of one batch that say what was rejected, labelled and called present, in percent."""
    closed, opened, alone = found
    known = truth >= 0
    share, said = 100 * float((~known).mean()), 100 * float(opened.unknown.mean())
    low, high = (100 * end for end in opened.interval)
    rejected = opened.rejected
    figures = {
        "share": share,
        "said": said,
        "error": abs(said - share),
        "covered": 100 * float(low <= share <= high),
        "width": high - low,
        "called": 100 * float(rejected.mean()),
        "opened": 100 * float(opened.is_open),
    }
    if not known.any():
        return figures
    labels = {
        "": opened.probabilities.argmax(-1),
        "_closed": closed.probabilities.argmax(-1),
        "_alone": alone,
    }
    figures |= {f"accuracy{rule}": 100 * float((given == truth)[known].mean()) for rule, given in labels.items()}
    figures |= {f"gain{rule}": figures["accuracy"] - figures[f"accuracy{rule}"] for rule in labels if rule}
    figures["called_known"] = 100 * float(rejected[known].mean())
    there = np.bincount(truth[known], minlength=closed.presence.shape[-1]) > 0
    for rule, presence in (("", opened.presence), ("_closed", closed.presence)):
        called = presence >= 0.5
        figures[f"precision{rule}"] = 100 * float(there[called].mean()) if called.any() else 100.0
        figures[f"recall{rule}"] = 100 * float(called[there].mean())
    figures["recall_gain"] = figures["recall"] - figures["recall_closed"]
    return figures


def separated(strange: Bools, scores: dict[str, Any]) -> Figures:
    """AUROC of every score, in percent, and how far ours is ahead."""
    figures = {f"auroc_{name}": 100 * float(roc_auc_score(strange, score)) for name, score in scores.items()}
    ours = figures["auroc_ours"]
    return figures | {f"ahead_{name}": ours - figures[f"auroc_{name}"] for name in scores if name != "ours"}


def proposed(truth: Ints, strange: Bools, opened: JointAnswer) -> Figures:
    """How many groups were proposed, and how many unknown classes they found."""
    found = found_classes(truth, strange, [group.items for group in opened.groups])
    return {"proposals": float(len(opened.groups)), "found": float(len(found)), "two": 100.0 * (len(found) >= 2)}


def found_classes(truth: Ints, strange: Bools, groups: Sequence[Ints]) -> dict[int, int]:
    """Place of the group that found each unknown class: 80 % of it are of that class, and it has half of the class."""
    found: dict[int, int] = {}
    for place, items in enumerate(groups):
        classes, counts = np.unique(truth[items], return_counts=True)
        most, n = classes[counts.argmax()], counts.max()
        inside = truth == most
        if strange[inside].all() and n >= PURITY * len(items) and n >= HELD * inside.sum():
            found.setdefault(int(most), place)
    return found


def added(catalogue: OpenCatalogue, batch: Batch, fresh: Batch) -> Figures:
    """Add all proposals of a batch as classes, and ask again about this batch and about other items of its classes."""
    groups = [group.items for group in answers(catalogue.fitted, batch).opened.groups]
    found = found_classes(batch.truth, catalogue.codes_of(batch.truth) < 0, groups)
    figures: Figures = {"number": float(catalogue.number), "found": float(len(found))}
    if not found:
        return figures
    rows = np.concatenate(groups)
    names = FIRST_NEW + np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    larger = catalogue.fitted.with_examples(torch.from_numpy(batch.points[rows]), names)
    for what, asked in (("same", batch), ("fresh", fresh)):
        again = answers(larger, asked).opened
        given = np.asarray(larger.classes)[again.probabilities.argmax(-1)]
        new = np.isin(asked.truth, list(found))
        right = [name == FIRST_NEW + found[int(one)] for one, name in zip(asked.truth[new], given[new], strict=True)]
        if right:
            figures[f"labelled_{what}"] = 100 * float(np.mean(right))
            figures[f"rejected_{what}"] = 100 * float(again.rejected[new].mean())
    return figures


def summed(figures: Sequence[Figures]) -> Row:
    """`[mean, half width]` of every figure: Student's t over means of catalogues, over the batches that have it."""
    row: Row = {"catalogues": len({one["number"] for one in figures}), "batches": len(figures)}
    if all("items" in one for one in figures):
        row["items"] = round(float(np.mean([one["items"] for one in figures])), 1)
    for name in dict.fromkeys(key for one in figures for key in one if key not in ("number", "items")):
        means: dict[float, list[float]] = {}
        for one in figures:
            if name in one and np.isfinite(one[name]):
                means.setdefault(one["number"], []).append(one[name])
        e = Estimate.of(np.array([np.mean(values) for values in means.values()]))
        row[name] = [round(e.mean, 2), round(e.half_width, 2)]
        if name.startswith("auroc_") and (n := sum(map(len, means.values()))) < len(figures):
            row.setdefault("tasks_of", {})[name] = n
    return row


# ---------------------------------------------------------------------------------------------------------------------


@cache
def cut(folder: Path, number: int) -> tuple[OpenCatalogue, list[Ints], Ints, Ints]:
    """Fit a catalogue that lacks ten classes; return also the rows that are left, classes kept and classes removed."""
    features, labels = bank(folder)
    order = orders(folder, number)
    classes = rng_of("removed", folder.name, number).permutation(len(order))
    removed, kept = classes[:OUT], np.sort(classes[OUT:])
    held = np.concatenate([order[k][:SHOTS] for k in kept])
    left = [rows if k in removed else rows[SHOTS:] for k, rows in enumerate(order)]
    return OpenCatalogue(features[held], labels[held], number), left, kept, removed


def per_catalogue(tasks: int) -> int:
    """Batches of each catalogue."""
    return -(-tasks // CATALOGUES)


def mixed(
    rng: np.random.Generator, folder: Path, number: int, known: int | None, size: int, strange: int, classes: int
) -> Batch:
    """Draw a batch of `known` classes of the catalogue (None: all) and `strange` items of `classes` removed ones."""
    _, left, kept, removed = cut(folder, number)
    rows = chosen(rng, left, kept if known is None else rng.choice(kept, known, replace=False), size - strange)
    if strange:
        rows = np.concatenate([rows, chosen(rng, left, rng.choice(removed, classes, replace=False), strange)])
    return taken(folder, rows)


def measured(study: UnknownStudy, name: str, cell: dict[str, Any], tasks: int, *, slow: bool = False) -> list[Row]:
    """Measure a cell of a bank: classes present, size, unknown items and classes."""
    folder, found = study.data / name, []
    present, size, strange, classes = (cell[key] for key in ("present", "size", "strange", "classes"))
    for number in range(min(CATALOGUES, tasks)):
        rng = rng_of("unknown", name, sorted(cell.items(), key=str), number)
        known = None if present == "all" else present
        batches = [mixed(rng, folder, number, known, size, strange, classes) for _ in range(per_catalogue(tasks))]
        found += cut(folder, number)[0].seen(batches, per_catalogue(study.slow_tasks) if slow else 0)
    return [{"data": name, **cell, **summed(found)}]


def cell(present: int | str, size: int, strange: int = 0, classes: int = 0) -> dict[str, Any]:
    """Name what a cell has."""
    return {"present": present, "size": size, "strange": strange, "classes": classes}


def nothing(study: UnknownStudy) -> Parts:
    """Every item belongs to a class."""
    for name in study.group.banks:
        for present in (5, 20, "all"):
            yield f"{name}, {present} present", partial(measured, study, name, cell(present, 75), study.tasks)


def large(study: UnknownStudy) -> Parts:
    """Large batches in which every item belongs to a class."""
    for name in study.group.banks:
        for present, size, tasks in ((20, 300, 40), ("all", 300, 40), ("all", 1000, 16), ("all", 3000, 8)):
            tasks = min(tasks, study.tasks)
            yield f"{name}, {present} present, {size}", partial(measured, study, name, cell(present, size), tasks)


def removed(study: UnknownStudy) -> Parts:
    """Three classes of the batch are not in the catalogue, five are."""
    for name in study.group.banks:
        for share in SHARES:
            what = cell(5, 60, round(60 * share), 3)
            yield f"{name}, {share}", partial(measured, study, name, what, study.tasks, slow=True)


def ten(study: UnknownStudy) -> Parts:
    """Three of ten classes present are not in the catalogue."""
    for name in study.group.banks:
        yield name, partial(measured, study, name, cell(7, 75, 22, 3), study.tasks)


def scattered(study: UnknownStudy) -> Parts:
    """Ten classes that the catalogue lacks have one or two items each, on the mean."""
    for name in study.group.banks:
        yield name, partial(measured, study, name, cell(5, 75, 15, OUT), study.tasks)


def proposals(study: UnknownStudy) -> Parts:
    """Three unknown classes of twelve items each; for some batches the proposals are added, and it is asked again."""

    def drawn(rng: np.random.Generator, folder: Path, number: int) -> tuple[Batch, Batch]:
        _, left, kept, gone = cut(folder, number)
        five, three = rng.choice(kept, 5, replace=False), rng.choice(gone, 3, replace=False)
        pool = rng.permutation(np.concatenate([left[k] for k in five]))
        rest = [rng.permutation(left[k]) for k in three]
        parts = [slice(0, 12), slice(12, 24)]
        first, fresh = (
            np.concatenate([pool[i * 36 : i * 36 + 36], *(r[p] for r in rest)]) for i, p in enumerate(parts)
        )
        return taken(folder, first), taken(folder, fresh)

    def of_bank(name: str) -> list[Row]:
        folder = study.data / name
        found, again = [], []
        for number in range(min(CATALOGUES, study.tasks)):
            rng, catalogue = rng_of("proposals", name, number), cut(folder, number)[0]
            pairs = [drawn(rng, folder, number) for _ in range(per_catalogue(study.tasks))]
            found += catalogue.seen([batch for batch, _ in pairs])
            again += [added(catalogue, *pair) for pair in pairs[: per_catalogue(study.added_tasks)]]
        row = {"data": name, "present": 5, "strange": 36, "classes": 3, **summed(found)}
        return [row | {"added": summed([one for one in again if one["found"]] or again)}]

    for name in study.group.banks:
        yield name, partial(of_bank, name)


def requests(study: UnknownStudy) -> Parts:
    """Real requests to a company, many of which fit no intent. Numbers are those of shuffles."""
    name = study.group.requests
    folder = study.data / name

    def of_size(size: int | str, with_strange: bool) -> list[Row]:
        features, labels = bank(folder)
        written = whole_numbers(folder / "original_split.npy") == 1
        catalogue = OpenCatalogue(features[written], labels[written])
        asked = np.flatnonzero(~written)
        fits = catalogue.codes_of(labels) >= 0
        rows = asked if with_strange else asked[fits[asked]]
        rng, found = rng_of("requests", name, size, with_strange), []
        for shuffle in range(1 if isinstance(size, str) else SHUFFLES):
            order, catalogue.number = rng.permutation(rows), shuffle
            step = len(order) if isinstance(size, str) else size
            parts = [part for part in np.split(order, range(step, len(order), step)) if len(part) >= 0.6 * step]
            slow = per_catalogue(study.slow_tasks) if with_strange and size != "all" else 0
            found += catalogue.seen([taken(folder, part) for part in parts], slow)
        return [{"data": name, "batch": size, "strange": with_strange, **summed(found)}]

    for size in (75, "all"):
        for with_strange in (True, False):
            what = f"{size}, {'with' if with_strange else 'without'} requests of no intent"
            yield what, partial(of_size, size, with_strange)


def real(study: UnknownStudy) -> Parts:
    """Real items of no class among those of a bank, a quarter of the batch, or as they are."""

    def among(name: str, strangers: str) -> list[Row]:
        folder, found = study.data / name, []
        (features, labels), points = bank(folder), unit(study.data / strangers / "features.npy")
        for number in range(min(CATALOGUES, study.tasks)):
            order, rng = orders(folder, number), rng_of("real", strangers, number)
            held = np.concatenate([rows[:SHOTS] for rows in order])
            catalogue, left, batches = (
                OpenCatalogue(features[held], labels[held], number),
                [r[SHOTS:] for r in order],
                [],
            )
            for _ in range(per_catalogue(study.tasks)):
                rows = chosen(rng, left, rng.choice(len(left), 5, replace=False), 56)
                others = rng.choice(len(points), 19, replace=False)
                batches.append(
                    Batch(
                        np.concatenate([features[rows], points[others]]),
                        np.concatenate([labels[rows], np.full(19, -1)]),
                        np.concatenate([rows, -1 - others]),
                    )
                )
            found += catalogue.seen(batches, per_catalogue(study.slow_tasks))
        return [{"data": strangers, **summed(found)}]

    def cells(name: str) -> list[Row]:
        folder = study.data / name
        types, truth = (whole_numbers(folder / f"{part}_labels.npy") for part in ("reference", "query"))
        points, numbers = unit(folder / "query.npy"), whole_numbers(folder / "query_batches.npy")
        catalogue, found = OpenCatalogue(unit(folder / "reference.npy"), types), []
        for number in np.unique(numbers):
            rows, catalogue.number = np.flatnonzero(numbers == number), int(number)
            found += catalogue.seen([Batch(points[rows], truth[rows], rows)], 1)
        return [{"data": name, **summed(found)}]

    for name, strangers in study.group.strangers:
        yield strangers, partial(among, name, strangers)
    if study.group.laboratories:
        yield study.group.laboratories, partial(cells, study.group.laboratories)


CONDITIONS: dict[str, Callable[[UnknownStudy], Parts]] = {
    "nothing": nothing,
    "large": large,
    "removed": removed,
    "ten": ten,
    "scattered": scattered,
    "proposals": proposals,
    "requests": requests,
    "real": real,
}
