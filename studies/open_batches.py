"""Open and closed batches: labels of known items, unknown items that are rejected, and what a person can add.

    python studies/open_batches.py DATA --group tuning [--only clinc150-5 ...] [--parts 0 0.3 ...]
    python studies/open_batches.py DATA --group confirmation
    python studies/open_batches.py --page

The method was tuned on the cells of one group alone; the other group is run once, at the end. DATA is a folder that
holds the data. A batch has 75 items, of which 0, 10, 30 or 70% are unknown.

- **Banks** (`clinc150-minilm`, `cub200-efflite0`, ...): ten classes are taken out of the catalogue. A batch has 5 to 8
  classes of the catalogue and three of the ten, in shares drawn from a Dirichlet of parameter 2. `clinc150-oos`: all
  classes are in the catalogue, and unknown items are real requests of no class. `clinc150-typos`, `clinc150-dropped`,
  `caltech101-shifted`: the catalogue is clean, the items are other rows after a change; the photographs have one of
  five changes per batch.
- **Requests** (`hint3-*-minilm`): the catalogue is what a company wrote, the items what people asked; those of no
  intent are unknown.
- **Cells** (`lung-two-atlases`): an atlas with at most 3, 10 or all examples of each type, and cells of another
  laboratory, each batch from one donor and device.
- **Spectra** (`massbank-two-labs`): the library of one laboratory; all spectra that laboratory 1 has of some compounds.

Requests, cells and spectra are drawn without replacement to the wanted share; a batch has fewer items where there are
not enough. The 40 batches of a cell and share are spread over eight catalogues, where the data have more than one.

*told*: the same with `expect_unknown=0.3`, while the share is 0.15, 0.3 or 0.6. *answers*: a person answers ten
`questions`, with a class of the catalogue or "none of these"; figures are those of the other items. Answers become
examples, so that every batch needs a fit; the largest catalogues have one such batch each.

`joint`, `alone` and `control` are percent right of the known items: of the most probable class, of the highest score of
the head, which knows nothing of the batch, and of the simple control (`control.py`). The ceilings are unknown items
above the threshold that rejects 5 or 10% of the known ones, chosen in hindsight: one threshold pooled over all batches
of a cell and share, or one for each batch, which mostly finds more. `sure` are items with a `certainty` of at least
0.95; an unknown one is never right.
Groups are found if 80% of a proposal is one removed class and it has half of that class; possible ones have six items.
Intervals are those of paired differences, over catalogues where there are at least five, else over batches.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from bank_data import rng_of
from control import control, head_scores
from handful.estimators import BatchClassifier
from handful.estimators.context import Known
from open_batches_data import CATALOGUES, GROUPS, NO_CLASS, Bools, Cell, Floats, Ints, drawn
from open_batches_page import CEILINGS, RESULTS, Row, load, page
from pages import keep

BATCHES, ANSWERS = 40, 10
SHARES, TOLD, TELL, ANSWERED = (0.0, 0.1, 0.3, 0.7), (0.15, 0.3, 0.6), 0.3, (0.3,)
SURE, PURITY, HELD, POSSIBLE = 0.95, 0.8, 0.5, 6


class Part(NamedTuple):
    """A share of unknown items, and what is told: nothing, a share, or the answers to some questions."""

    share: float
    what: str = ""

    @property
    def name(self) -> str:
        """How results and the command line call it."""
        return f"{self.what} {self.share:g}".strip()


PARTS = {
    part.name: part
    for part in (
        *(Part(share) for share in SHARES),
        *(Part(share, "told") for share in TOLD),
        *(Part(share, "answers") for share in ANSWERED),
    )
}


def above(unknown: npt.NDArray[np.float64], known: Bools, share: float) -> float:
    """Percent of the unknown items above the lowest threshold that rejects at most this share of the known ones."""
    highest = np.sort(unknown[known])[::-1]
    return 100 * float((unknown[~known] > highest[int(share * len(highest))]).mean())


def groups_found(truth: Ints, known: Bools, proposals: Sequence[Any]) -> tuple[int, int]:
    """Count unknown classes that a proposal found, and those with enough items to be found."""
    classes, counts = np.unique(truth[~known & (truth != NO_CLASS)], return_counts=True)
    possible, found = {int(k): int(n) for k, n in zip(classes, counts, strict=True) if n >= POSSIBLE}, set()
    for proposal in proposals:
        inside = truth[np.asarray(proposal.items)]
        found |= {
            k for k, n in possible.items() if (m := (inside == k).sum()) >= PURITY * len(inside) and m >= HELD * n
        }
    return len(found), len(possible)


class Measured(NamedTuple):
    """Figures of a batch, and the chance to be unknown of its known and its unknown items."""

    row: Row
    known: npt.NDArray[np.float64]
    unknown: npt.NDArray[np.float64]


def measured(model: BatchClassifier, points: Floats, truth: Ints, what: str) -> Measured:
    """Label a batch and measure it, all shares in percent."""
    told: dict[str, Any] = {}
    if what == "told":
        told["expect_unknown"] = TELL
    elif what == "answers":
        told["given"] = answered(model, points, truth)
    found = model.infer(points, **told)
    scores = head_scores(model, points)
    alone = model.classes_[scores.argmax(1)]
    controlled = model.classes_[control(scores)]
    joint = np.asarray(found.labels)
    unknown, is_known = np.nan_to_num(np.asarray(found.unknown)), np.isin(truth, model.classes_)
    share, (low, high) = float((~is_known).mean()), found.unknown_interval
    groups, possible = groups_found(truth, is_known, found.proposals)
    rest = np.ones(len(truth), bool)
    rest[list(told.get("given", ()))] = False
    known, strange, sure = is_known & rest, ~is_known & rest, (found.certainty >= SURE) & rest
    right = (joint == truth) & is_known
    row = {
        "items": len(truth),
        "share": share,
        "joint": right[known].mean(),
        "alone": (alone == truth)[known].mean(),
        "control": (controlled == truth)[known].mean(),
        "known_rejected": found.rejected[known].mean(),
        "said": unknown.mean(),
        "covered": float(low <= share <= high),
        "width": high - low,
        "joint_weight": found.joint_weight,
    }
    if strange.any():
        row["unknown_rejected"] = found.rejected[strange].mean()
        row["auroc"] = roc_auc_score(strange[rest], unknown[rest])
        row |= {name: above(unknown[rest], known[rest], at) / 100 for name, at in CEILINGS.items()}
    row = {name: value if name == "items" else round(100 * float(value), 2) for name, value in row.items()}
    row |= {"sure": int(sure.sum()), "sure_right": int((sure & right).sum()), "groups": groups, "possible": possible}
    return Measured(row, unknown[known], unknown[strange])


def answered(model: BatchClassifier, points: Floats, truth: Ints) -> dict[int, Any]:
    """Answer questions, about a quarter of the items at most: the class, or None if the catalogue does not have it."""
    asked = [question.item for question in model.questions(points, min(ANSWERS, len(points) // 4))]
    return {item: int(truth[item]) if truth[item] in model.classes_ else None for item in asked}


def measured_cell(data: Path, name: str, cell: Cell, parts: Sequence[Part], n: int) -> dict[str, Row]:
    """Measure the batches of a cell, by part: the pooled ceilings, and one row per batch."""
    found: dict[str, list[tuple[int, Measured]]] = {part.name: [] for part in parts}
    for number in range(min(cell.catalogues, n)):
        material = cell.make(data, name, number)
        model = BatchClassifier().fit(material.examples, material.labels)
        for part in parts:
            most = min(n, CATALOGUES) if cell.slow and part.what == "answers" else n
            for batch in range(number, most, cell.catalogues):
                pool = material.pools[batch // cell.catalogues % len(material.pools)]
                rows = drawn(pool, part.share, rng_of("open batches 2026", name, part.share, batch))
                one = measured(model, pool.points[rows], pool.truth[rows], part.what)
                found[part.name].append((batch, one._replace(row={"batch": batch, "catalogue": number, **one.row})))
    return {part: pooled([one for _, one in sorted(rows, key=lambda of: of[0])]) for part, rows in found.items()}


def pooled(batches: Sequence[Measured]) -> Row:
    """Return the rows of batches, and the ceilings over the items of all of them."""
    known, unknown = (np.concatenate([getattr(one, name) for one in batches]) for name in ("known", "unknown"))
    ceilings: Row = {}
    if len(unknown):
        both, which = np.concatenate([known, unknown]), np.arange(len(known) + len(unknown)) < len(known)
        ceilings = {name: round(above(both, which, share), 2) for name, share in CEILINGS.items()}
    return {**ceilings, "rows": [one.row for one in batches]}


def main() -> None:
    """Measure cells and keep them, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder that holds the data")
    parser.add_argument("--group", choices=list(GROUPS))
    parser.add_argument("--only", nargs="+", metavar="CELL", help="cells to measure; else all of the group")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches of each cell and part")
    parser.add_argument("--page", action="store_true", help="write the page from what is kept")
    given = parser.parse_args()
    if given.page:
        page().write()
        return
    if given.group is None or given.data is None:
        parser.error("name the data and a --group, or --page")
    group = GROUPS[given.group]
    chosen = given.only or list(group)
    if strange := [name for name in chosen if name not in group]:
        parser.error(f"no cell {strange[0]!r} in this group; there are {', '.join(group)}")
    parts = [
        PARTS[name] for name in given.parts if PARTS[name].what != "told" or "expect_unknown" in Known.__annotations__
    ]
    file = RESULTS / f"{given.group}.json"
    found = load(file) if file.is_file() else {"group": given.group, "cells": {}}
    for name in chosen:
        began = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            measured_parts = measured_cell(given.data, name, group[name], parts, given.batches)
        seconds = round(time.process_time() - began, 1)
        before = found["cells"].get(name, {"parts": {}})
        found["cells"][name] = {"seconds": seconds, "parts": before["parts"] | measured_parts}
        keep(file, found, levels=6)
        print(f"{name}: {seconds} s", flush=True)


if __name__ == "__main__":
    main()
