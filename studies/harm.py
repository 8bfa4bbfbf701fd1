"""Where labelling a batch jointly does harm: the default classifier against each item alone, under real conditions.

    python studies/harm.py DATA [--only requests laboratories shifted shots wrong_labels unknown certainty]
    python studies/harm_page.py

DATA is a folder that holds the data of the conditions asked for:

- **requests** (`hint3-*-minilm`): the catalogue is what a company wrote, the batch what people really asked, in natural
  shares. `original_split.npy` is 1 for the catalogue and 0 for the requests; a label that only requests have is no
  intent. Three shuffles, each cut into batches.
- **laboratories** (`lung-two-atlases`): `reference.npy` and `reference_labels.npy` are cells of one laboratory;
  `query.npy`, `query_labels.npy` and `query_batches.npy` those of another. Larger labels than the reference has are
  types it lacks. Accuracy on cells of known types; three draws of the catalogue where examples are capped.
- **shifted** (`clinc150-minilm` with `clinc150-shifted`, `caltech101-efflite0` with `caltech101-shifted`): row i of
  `<kind>.npy` is row `rows.npy[i]` of the clean bank after a change. The catalogue is clean, the batch is not, and no
  item is in both. Five examples per class, batches of 75 from 5 or 20 classes, 20 batches for each of three catalogues.
- **shots** (all seven banks but omniglot659): the number of examples per class is log-uniform from 1 to 50, with at
  least 15 rows left for batches; batches of 75 from 5 classes.
- **wrong_labels** (the same banks): five examples per class, of which a share has the label of another class.
- **unknown** (clinc150, caltech101, cub200): half the classes are taken out of the catalogue; batches of 60 from 4
  classes that were kept and 4 that were taken out.
- **certainty** (clinc150, hwu64, cub200, tinyimagenet200): whether probabilities mean what they say; five examples per
  class, batches of 75 from 5 or 20 classes.

Both classifiers get the same unit vectors. `--tasks` sets the number of batches of shots, wrong_labels and certainty
(60); unknown has a third of it. One thread; all of it takes a few minutes. Results are saved in
`studies/results/harm.json`, condition by condition; `harm_page.py` writes the documents from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

import handful
from handful.estimators import PaddleClassifier
from side_by_side import (
    Catalogue,
    Outcome,
    Row,
    bank,
    calibration_error,
    chosen,
    compared,
    mean,
    percent,
    shuffled,
    unit,
    whole_numbers,
)

RESULTS = Path(__file__).parent / "results" / "harm.json"
SHIFTED = {"clinc150-minilm": "clinc150-shifted", "caltech101-efflite0": "caltech101-shifted"}
BANKS = (
    "clinc150-minilm",
    "banking77-minilm",
    "hwu64-minilm",
    "caltech101-efflite0",
    "cub200-efflite0",
    "tinyimagenet200-efflite0",
)
UNKNOWN_BANKS = ("clinc150-minilm", "caltech101-efflite0", "cub200-efflite0")
CERTAINTY_BANKS = ("clinc150-minilm", "hwu64-minilm", "cub200-efflite0", "tinyimagenet200-efflite0")
N_QUERY, SHOTS, MOST_SHOTS, SPARE = 75, 5, 50, 15
FEW, MANY = 3, 20
PRESENCE_STEPS = (0.5, 0.9, 0.99, 0.999, 0.99999)


def requests(data: Path, _: int) -> Iterator[Row]:
    """Real requests to companies, without those that fit no intent and with them."""
    for folder in sorted(data.glob("hint3-*-minilm")):
        features, labels = bank(folder)
        asked = whole_numbers(folder / "original_split.npy") == 0
        catalogue = Catalogue(features[~asked], labels[~asked])
        features, labels = features[asked], labels[asked]
        fits = np.isin(labels, catalogue.labels)
        rng = np.random.default_rng(0)
        for size in (30, 75, len(labels)):
            for opened in (False, True):
                rows = np.arange(len(labels)) if opened else np.flatnonzero(fits)
                alone, jointly, warned, by_doubt, by_distance = [], [], [], [], []
                for _shuffle in range(3 if size < len(labels) else 1):
                    order = rng.permutation(rows)
                    for batch in np.split(order, range(size, len(order), size)):
                        if len(batch) < 5 or not fits[batch].any():
                            continue
                        one = catalogue.outcome(features[batch], labels[batch])
                        alone += one.alone[fits[batch]].tolist()
                        jointly += one.jointly[fits[batch]].tolist()
                        warned.append(one.warned)
                        if not fits[batch].all():
                            by_doubt.append(roc_auc_score(~fits[batch], 1 - one.said.probabilities.max(-1)))
                            by_distance.append(roc_auc_score(~fits[batch], catalogue.nearest(features[batch])))
                row = {
                    "data": folder.name,
                    "intents": len(np.unique(catalogue.labels)),
                    "batch": "all" if size == len(labels) else size,
                    "open": opened,
                    "batches": len(warned),
                    "alone": percent(alone),
                    "jointly": percent(jointly),
                    "warned": sum(warned),
                }
                if by_doubt:
                    row |= {"auroc_probability": mean(by_doubt), "auroc_distance": mean(by_distance)}
                yield row


def laboratories(data: Path, _: int) -> Iterator[Row]:
    """Cells of one laboratory as the catalogue, batches of another."""
    folder = data / "lung-two-atlases"
    reference, cells = unit(folder / "reference.npy"), unit(folder / "query.npy")
    types, truth = whole_numbers(folder / "reference_labels.npy"), whole_numbers(folder / "query_labels.npy")
    batches, known = whole_numbers(folder / "query_batches.npy"), truth <= types.max()
    for cap in (3, 5, 10, None):
        right: dict[str, list[bool]] = {"alone": [], "jointly": [], "jointly_open": []}
        warned = []
        draws = 1 if cap is None else 3
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            kept = np.concatenate([rng.permutation(np.flatnonzero(types == k))[:cap] for k in np.unique(types)])
            catalogue = Catalogue(reference[kept], types[kept])
            for number in np.unique(batches):
                closed, whole = np.flatnonzero((batches == number) & known), np.flatnonzero(batches == number)
                one, opened = (catalogue.outcome(cells[rows], truth[rows]) for rows in (closed, whole))
                right["alone"] += one.alone.tolist()
                right["jointly"] += one.jointly.tolist()
                right["jointly_open"] += opened.jointly[known[whole]].tolist()
                warned += [one.warned, opened.warned]
        sizes = {"most_examples": cap, "catalogues": draws, "batches": len(warned), "warned": sum(warned)}
        yield {**sizes, **{name: percent(values) for name, values in right.items()}}


def shifted(data: Path, _: int) -> Iterator[Row]:
    """Give a clean catalogue batches of photographs or sentences after a change."""
    for clean, changed in SHIFTED.items():
        features, labels = bank(data / clean)
        rows = whole_numbers(data / changed / "rows.npy")
        truth, n_classes = labels[rows], int(labels.max()) + 1
        kinds = {
            kind: unit(data / changed / f"{kind}.npy")
            for kind in json.loads((data / changed / "kinds.json").read_text())
        }
        found: dict[tuple[str, int], list[Outcome]] = {}
        for seed in range(3):
            rng = np.random.default_rng(seed)
            orders = [rng.permutation(np.flatnonzero(truth == k)) for k in range(n_classes)]
            examples = rows[np.concatenate([order[:SHOTS] for order in orders])]
            catalogue = Catalogue(features[examples], labels[examples])
            for kind, vectors in {"unchanged": features[rows], **kinds}.items():
                for present in (5, 20):
                    for _batch in range(20):
                        items = chosen(rng, [order[SHOTS:] for order in orders], present, N_QUERY)
                        one = catalogue.outcome(vectors[items], truth[items])
                        found.setdefault((kind, present), []).append(one)
        for (kind, present), outcomes in found.items():
            yield {"data": clean, "change": kind, "present": present, **compared(outcomes)}


def shots(data: Path, tasks: int) -> Iterator[Row]:
    """Classes with one example next to classes with fifty."""
    for name in BANKS:
        features, labels = bank(data / name)
        outcomes, examples_of = [], []
        for seed in range(tasks):
            rng = np.random.default_rng(seed)
            orders = shuffled(rng, labels)
            counts = [min(round(MOST_SHOTS ** rng.random()), len(order) - SPARE) for order in orders]
            examples = np.concatenate([order[:n] for order, n in zip(orders, counts, strict=True)])
            items = chosen(rng, [order[n:] for order, n in zip(orders, counts, strict=True)], 5, N_QUERY)
            outcomes.append(Catalogue(features[examples], labels[examples]).outcome(features[items], labels[items]))
            examples_of.append(np.array(counts)[labels[items]])
        of = np.concatenate(examples_of)
        row = {"data": name, **compared(outcomes)}
        for side in ("alone", "jointly"):
            right = np.concatenate([getattr(one, side) for one in outcomes])
            row |= {f"{side}_few": percent(right[of <= FEW]), f"{side}_many": percent(right[of >= MANY])}
        yield row


def wrong_labels(data: Path, tasks: int) -> Iterator[Row]:
    """Examples with the label of another class."""
    for name in BANKS:
        features, labels = bank(data / name)
        for share in (0.1, 0.2):
            outcomes = []
            for seed in range(tasks):
                rng = np.random.default_rng(seed)
                orders = shuffled(rng, labels)
                examples = np.concatenate([order[:SHOTS] for order in orders])
                given = labels[examples]
                wrong = rng.choice(len(given), round(share * len(given)), replace=False)
                given[wrong] = (given[wrong] + rng.integers(1, len(orders), len(wrong))) % len(orders)
                items = chosen(rng, [order[SHOTS:] for order in orders], 5, N_QUERY)
                outcomes.append(Catalogue(features[examples], given).outcome(features[items], labels[items]))
            yield {"data": name, "wrong": share, **compared(outcomes)}


def unknown(data: Path, tasks: int) -> Iterator[Row]:
    """Items of classes that the catalogue lacks."""
    size = 60
    for name in UNKNOWN_BANKS:
        features, labels = bank(data / name)
        rows: dict[float, list[Row]] = {}
        for seed in range(tasks // 3):
            rng = np.random.default_rng(seed)
            orders = shuffled(rng, labels)
            classes = rng.permutation(len(orders))
            kept, removed = classes[: len(classes) // 2], classes[len(classes) // 2 :]
            examples = np.concatenate([orders[k][:SHOTS] for k in kept])
            catalogue = Catalogue(features[examples], labels[examples])
            pools = [np.concatenate([orders[k][SHOTS:] for k in four]) for four in (kept[:4], removed[:4])]
            for share in (0.0, 0.2, 0.5, 1.0):
                n = round(share * size)
                items = np.concatenate(
                    [rng.choice(pool, m, replace=False) for pool, m in zip(pools, (size - n, n), strict=True)]
                )
                stranger = np.arange(size) >= size - n
                one = catalogue.outcome(features[items], labels[items])
                said = one.said.probabilities.max(-1)
                row: Row = {
                    "warned": one.warned,
                    "false_classes": np.isin(one.said.present_classes, labels[items], invert=True).mean(),
                }
                if share < 1:
                    row |= {"alone": one.alone[~stranger].mean(), "jointly": one.jointly[~stranger].mean()}
                if share > 0:
                    row["said_of_unknown"] = said[stranger].mean()
                if 0 < share < 1:
                    row["auroc_probability"] = roc_auc_score(stranger, 1 - said)
                    row["auroc_distance"] = roc_auc_score(stranger, catalogue.nearest(features[items]))
                rows.setdefault(share, []).append(row)
        for share, found in rows.items():
            means = {key: mean([row[key] for row in found]) for key in found[0] if key != "warned"}
            yield {
                "data": name,
                "unknown": share,
                "batches": len(found),
                "warned": sum(r["warned"] for r in found),
                **means,
            }


def certainty(data: Path, tasks: int) -> Iterator[Row]:
    """Compare what probabilities say with what is so."""
    for name in CERTAINTY_BANKS:
        features, labels = bank(data / name)
        for present in (5, 20):
            outcomes, presence, there = [], [], []
            for seed in range(tasks):
                rng = np.random.default_rng(seed)
                orders = shuffled(rng, labels)
                examples = np.concatenate([order[:SHOTS] for order in orders])
                items = chosen(rng, [order[SHOTS:] for order in orders], present, N_QUERY)
                one = Catalogue(features[examples], labels[examples]).outcome(features[items], labels[items])
                outcomes.append(one)
                presence.append(one.said.presence)
                there.append(np.bincount(labels[items], minlength=len(orders)) > 0)
            said = np.concatenate([one.said.probabilities.max(-1) for one in outcomes])
            right = np.concatenate([one.jointly for one in outcomes])
            at, true = np.concatenate(presence), np.concatenate(there)
            steps = zip(PRESENCE_STEPS, (*PRESENCE_STEPS[1:], np.inf), strict=True)
            yield {
                "data": name,
                "present": present,
                "batches": tasks,
                "accuracy": percent(right),
                "confidence": round(100 * float(said.mean()), 1),
                "calibration_error": round(100 * calibration_error(said, right), 1),
                "presence": [
                    {
                        "from": low,
                        "classes": int(inside.sum()),
                        "there": percent(true[inside]) if inside.any() else None,
                    }
                    for low, inside in ((low, (at >= low) & (at < high)) for low, high in steps)
                ],
                "surely_present": percent(true[at >= 0.99]),
            }


CONDITIONS: dict[str, Callable[[Path, int], Iterator[Row]]] = {
    "requests": requests,
    "laboratories": laboratories,
    "shifted": shifted,
    "shots": shots,
    "wrong_labels": wrong_labels,
    "unknown": unknown,
    "certainty": certainty,
}


def main() -> None:
    """Measure the conditions asked for and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data, see above")
    parser.add_argument("--only", nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--tasks", type=int, default=60, help="batches of shots, wrong_labels and certainty")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.only:
        rows = []
        for row in CONDITIONS[name](given.data, given.tasks):
            rows.append(row)
            print(name, row, flush=True)
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
        by = f"handful {handful.__version__}, {PaddleClassifier().method}"
        kept[name] = {"by": by, "rows": rows}
        ordered = {key: kept[key] for key in CONDITIONS if key in kept}
        lines = ",\n".join(
            f' {json.dumps(key)}: {{"by": {json.dumps(value["by"])}, "rows": [\n  '
            + ",\n  ".join(json.dumps(row) for row in value["rows"])
            + "\n ]}"
            for key, value in ordered.items()
        )
        RESULTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
