"""What names of classes are worth: without any example, and beside 1, 2 and 5.

    python studies/names.py DATA --group tuning [--parts alone beside rivals]
    python studies/names.py DATA --group confirmation
    python studies/names.py DATA --group fresh --parts alone
    python studies/names.py --render

DATA is a folder that holds the banks of the group: sentences as vectors of `minilm`. A name is the name of the class
with underscores as spaces, in small letters, embedded by the same network. Constants of the rules were chosen on
clinc150, on tasks of other seeds. The confirmation group showed twice that the rule lost where names are
weak and many classes occur. Twice the rule was changed, on parts of clinc150 alone (similar classes, blurred names),
and all groups were run again. The fresh group, real requests to two companies, was added after the first change.

**Names alone.** 75 items of K_eff of the classes, or as many as the K_eff smallest classes have; all classes in the
catalogue. `alone` is the nearest name of each
item. `names` is `BatchClassifier().add_names`. The others are the methods `em_dirichlet`, `transclip` and `stata` with
their own options, and names as a support of one row per class. EM-Dirichlet takes seconds per task, and has the first
tasks only.

**Names and examples.** The catalogue has 1, 2 or 5 examples per class, drawn once; items of batches are never examples.
The simple control, `sparse_em`, has the examples and no names.

Intervals are those of 95% for the mean difference over tasks. Results are kept in `studies/results/names/GROUP`, one
file per bank; what is there is not measured again without `--again`. `--render` writes the page from them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import handful_fewshot as fewshot
from bank_data import Floats, Ints, bank
from handful.estimators import BatchClassifier
from handful.extraction.encoders import load_encoder
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Cells, Page, dots, kept, mean, measure_groups

RESULTS = Path(__file__).parent / "results" / "names"
GROUPS = {
    "tuning": ("clinc150-minilm",),
    "confirmation": ("banking77-minilm", "hwu64-minilm"),
    "fresh": ("hint3-curekart-minilm", "hint3-sofmattress-minilm"),
}
# The label of requests that fit no class.
NO_CLASS = "NO_NODES_DETECTED"
K_EFFS, SHOTS, ITEMS, SEED = (2, 5, 10, 20, 50, 0), (1, 2, 5), 75, 2026
# Tasks of each method; 0 of K_EFFS stands for all classes.
TASKS = {"names": 500, "transclip": 100, "stata": 100, "em_dirichlet": 6}
WITH_EXAMPLES = 50
MOST_EXAMPLES = max(SHOTS)
CONTROL = "sparse_em"  # on the examples alone
RIVALS = ("transclip", "stata", "em_dirichlet")
Row = dict[str, Any]


@cache
def read(folder: Path) -> tuple[Floats, Ints, Floats]:
    """Read the unit vectors and labels of a bank, without items of no class, and embed the names of its classes."""
    features, labels = bank(folder)
    classes = json.loads((folder / "classes.json").read_text(encoding="utf-8"))
    kept = [k for k, name in enumerate(classes) if name != NO_CLASS]
    rows = np.isin(labels, kept)
    vectors = load_encoder("minilm").embed([classes[k].replace("_", " ").lower() for k in kept])
    names = np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
    return features[rows], np.searchsorted(kept, labels[rows]), names


def said(right: Any, base: Any) -> list[float]:
    """Mean, and the mean difference from the base with its half width, in points."""
    ahead = MeanEstimate.of(100 * (right - base))
    return [
        round(100 * float(right.mean()), 2),
        round(ahead.mean, 2),
        round(ahead.half_width, 2),
    ]


def drawn(labels: Any, n_classes: int, k_eff: int, n_tasks: int) -> Any:
    """Draw tasks with no support."""
    spec = fewshot.TaskSpec(
        fewshot.FixedSupport.whole(range(n_classes)),
        fewshot.UniformOverPool(k_eff or n_classes),
        min(ITEMS, int(np.sort(np.bincount(labels))[:k_eff].sum()) if k_eff else len(labels)),
    )
    return fewshot.draw(labels, spec, SEED, range(n_tasks))


def joint(classifier: BatchClassifier, features: Any, tasks: Any) -> Any:
    """Share of right labels of each task."""
    n_tasks, n_items = tasks.query.shape
    found = classifier.predict(features[tasks.query.reshape(-1)], groups=np.arange(n_tasks).repeat(n_items))
    return (found.reshape(n_tasks, n_items) == tasks.query_labels).mean(1)


def alone(folder: Path, k_eff: int) -> Row:
    """Compare joint labels by names with the nearest name."""
    features, labels, names = read(folder)
    n_classes = len(names)
    tasks = drawn(labels, n_classes, k_eff, TASKS["names"])
    base = ((features @ names.T).argmax(1)[tasks.query] == tasks.query_labels).mean(1)
    row: Row = {"alone": round(100 * float(base.mean()), 2)}
    began = time.process_time()
    classifier = BatchClassifier().add_names(dict(enumerate(names)))
    right = joint(classifier, features, tasks)
    return {
        **row,
        "names": said(right, base),
        "seconds": round(time.process_time() - began, 1),
    }


def rivals(folder: Path, k_eff: int) -> Row:
    """Compare other methods with the nearest name and with names, on the first tasks."""
    features, labels, names = read(folder)
    tasks = drawn(
        labels,
        len(names),
        k_eff,
        max(n for method, n in TASKS.items() if method != "names"),
    )
    base = ((features @ names.T).argmax(1)[tasks.query] == tasks.query_labels).mean(1)
    ours = joint(BatchClassifier().add_names(dict(enumerate(names))), features, tasks)
    row: Row = {"seconds": {}}
    for method in RIVALS:
        n, began = TASKS[method], time.process_time()
        task = fewshot.TaskBatch(
            torch.from_numpy(names).unsqueeze(0),
            torch.arange(len(names)).unsqueeze(0),
            torch.from_numpy(features[tasks.query[:n]]),
            n_classes=len(names),
        )
        found = fewshot.solve(method, task).log_assignments.argmax(-1).numpy()
        right = (found == tasks.query_labels[:n]).mean(1)
        row[method] = [*said(right, base[:n]), *said(ours[:n], right)[1:]]
        row["seconds"][method] = round(time.process_time() - began, 1)
    return row


def beside(folder: Path, shots: int) -> Row:
    """Compare names and examples with each of them alone."""
    features, labels, names = read(folder)
    rng = np.random.default_rng(SEED)
    order = [rng.permutation(np.flatnonzero(labels == k)) for k in range(len(names))]
    rows = np.concatenate([of_class[:shots] for of_class in order])
    left = np.sort(np.concatenate([of_class[MOST_EXAMPLES:] for of_class in order]))
    named = dict(enumerate(names))
    began = time.process_time()
    classifiers = {
        "names": BatchClassifier().add_names(named),
        "examples": BatchClassifier().fit(features[rows], labels[rows]),
        "both": BatchClassifier().fit(features[rows], labels[rows], names=named),
        "shuffled": BatchClassifier().fit(
            features[rows],
            labels[rows],
            names=dict(enumerate(rng.permutation(names, axis=0))),
        ),
    }
    mass = classifiers["both"].model_.head.mass
    row: Row = {
        "worth": round(float(mass.mean()) - shots, 2),
        "k_effs": [],
    }
    row["seconds"] = round(time.process_time() - began, 1)
    catalogue = torch.from_numpy(features[rows])[None], torch.from_numpy(labels[rows])[None]
    for k_eff in K_EFFS:
        tasks = drawn(labels[left], len(names), k_eff, WITH_EXAMPLES)
        right = {name: joint(one, features[left], tasks) for name, one in classifiers.items()}
        task = fewshot.TaskBatch(*catalogue, torch.from_numpy(features[left][tasks.query]), len(names))
        found = fewshot.solve("sparse_em", task).predictions.numpy()
        right[CONTROL] = (found == tasks.query_labels).mean(1)
        row["k_effs"].append(
            {
                "k_eff": k_eff,
                **{name: round(100 * float(one.mean()), 2) for name, one in right.items()},
                "ahead_of_names": said(right["both"], right["names"])[1:],
                "ahead_of_examples": said(right["both"], right["examples"])[1:],
                "ahead_of_control": said(right["both"], right[CONTROL])[1:],
                "shuffled_ahead": said(right["shuffled"], right["examples"])[1:],
            }
        )
    return row


def mean_row(banks: dict[str, dict[str, list[Row]]], k_eff: int) -> list[str]:
    """Means over banks at one K_eff: accuracy of the nearest name, of joint labels by names, of rivals, and beside."""
    named = [row for of in banks.values() for row in of["alone"] if row["k_eff"] == k_eff]
    others = [row for of in banks.values() for row in of.get("rivals", []) if row["k_eff"] == k_eff]
    beside = [
        (row["shots"], cell)
        for of in banks.values()
        for row in of.get("beside", [])
        for cell in row["k_effs"]
        if cell["k_eff"] == k_eff
    ]
    values = [[row["alone"] for row in named], [row["names"][0] for row in named]]
    values += [[row[method][0] for row in others] for method in RIVALS]
    values += [[cell[w] for n, cell in beside if n == shots] for shots in (1, 5) for w in ("examples", "both")]
    return [f"{mean(of):.1f}" if of else "–" for of in values]


def page() -> Page:
    """Make the page."""
    found = {group: kept(RESULTS / group, banks) for group, banks in GROUPS.items()}
    banks = found["confirmation"]
    ks = [k for k in K_EFFS if any(row["k_eff"] == k for of in banks.values() for row in of["alone"])]
    head = ["K_eff", "nearest name", "jointly", "TransCLIP", "StatA", "EM-Dirichlet"]
    head += ["1 example", "1 and the name", "5 examples", "5 and the name"]
    gains = {
        str(k or "all"): {
            group: [row["names"][1] for rows in of.values() for row in rows["alone"] if row["k_eff"] == k]
            for group, of in found.items()
        }
        for k in K_EFFS
    }
    lowest = {g: min(row["names"][1] for rows in of.values() for row in rows["alone"]) for g, of in found.items() if of}
    beside = {
        shots: mean(
            cell["ahead_of_examples"][0]
            for of in banks.values()
            for row in of.get("beside", [])
            if row["shots"] == shots
            for cell in row["k_effs"]
        )
        for shots in (1, 5)
    }
    return Page(
        name="names",
        title="Names of classes",
        question=(
            "What are the names of classes worth, without examples and in addition to a few? A name is embedded by the "
            "network that embeds the items. Percent of items with the right label, by the number of classes that occur "
            "in a batch of 75; means over banking77 and hwu64. *Nearest name* labels each item alone. "
            "[Names of classes](../do/names.md) explains how to use them."
        ),
        alt="Points that joint labels gain over the nearest name, by the number of classes present",
        figure=lambda: dots(gains, "points gained over the nearest name", at=0),
        table=markdown_table(head, [[str(k or "all"), *mean_row(banks, k)] for k in ks]),
        shows=(
            "Joint labels by names gain most where few classes occur. The lowest gain of a cell is "
            f"{', '.join(f'{points:+.1f} ({group})' for group, points in lowest.items())}. Added to one example, a "
            f"name gains {beside[1]:.1f} points on average; added to five, {beside[5]:.1f}. Names of the wrong classes "
            f"lose nothing, because held-out examples decide how much a name counts. {of_control(banks)}"
        ),
        limits=(
            "The banks of the confirmation group were run three times while the rule was chosen, on clinc150 alone. "
            "EM-Dirichlet has 6 tasks per cell: its column is a rough guide."
        ),
        made=(
            f"{TASKS['names']} tasks per cell without examples, {WITH_EXAMPLES} with examples, {TASKS['transclip']} "
            f"for TransCLIP and StatA. The rules were chosen on clinc150, with tasks of other seeds. The docstring of "
            "`studies/names.py` says how tasks are drawn."
        ),
        commands=[
            "python studies/names.py DATA --group tuning",
            "python studies/names.py DATA --group confirmation",
            "python studies/names.py DATA --group fresh --parts alone",
            "python studies/names.py --render",
        ],
        rows=list(_rows(found)),
    )


def of_control(banks: dict[str, dict[str, list[Row]]]) -> str:
    """Say what names and examples gain over the simple control."""
    ahead = [
        cell["ahead_of_control"][0]
        for of in banks.values()
        for row in of.get("beside", [])
        for cell in row["k_effs"]
        if "ahead_of_control" in cell
    ]
    return (
        f"Over `{CONTROL}`, the simple control, names and examples gain {mean(ahead):.1f} points on average."
        if ahead
        else f"`{CONTROL}`, the simple control, was not yet measured here."
    )


def _rows(found: dict[str, dict[str, dict[str, list[Row]]]]) -> Iterator[Row]:
    """Yield one row per method and cell, with its difference from the nearest name or from examples alone."""
    for group, banks in found.items():
        for bank_name, of in banks.items():
            at: Row = {"group": group, "bank": bank_name}
            for row in of["alone"]:
                here = {**at, "part": "names alone", "k_eff": row["k_eff"] or "all"}
                yield {**here, "labels": "nearest name", "accuracy": row["alone"]}
                yield {**here, "labels": "jointly", "accuracy": row["names"][0], "gain": row["names"][1:3]}
            for row in of.get("rivals", []):
                for method in RIVALS:
                    here = {**at, "part": "names alone", "k_eff": row["k_eff"] or "all", "labels": method}
                    yield {**here, "accuracy": row[method][0], "gain": row[method][1:3]}
            for row in of.get("beside", []):
                for cell in row["k_effs"]:
                    here = {**at, "part": f"{row['shots']} examples", "k_eff": cell["k_eff"] or "all"}
                    for what in ("names", "examples", *([CONTROL] if CONTROL in cell else [])):
                        yield {**here, "labels": what, "accuracy": cell[what]}
                    both = {"accuracy": cell["both"], "gain": cell["ahead_of_examples"], "worth": row["worth"]}
                    yield {**here, "labels": "both", **both}
                    shuffled = {"accuracy": cell["shuffled"], "gain": cell["shuffled_ahead"]}
                    yield {**here, "labels": "names of other classes", **shuffled}


def cells(folder: Path) -> Cells:
    """Yield the cells of a bank."""
    n_classes = len(read(folder)[2])
    for part, measure in (("alone", alone), ("rivals", rivals)):
        for k_eff in K_EFFS:
            if k_eff < n_classes:
                yield part, {"k_eff": k_eff}, partial(measure, folder, k_eff)
    for shots in SHOTS:
        yield "beside", {"shots": shots}, partial(beside, folder, shots)


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
