"""Voices, groceries, mass spectra, sounds and requests: labels, classes present and unknown items, on untuned data.

    python studies/real_uses.py DATA [--only clips ...] [--batches 50]

Every cell is measured with and without unknown items; `tools/readme_figures.py` makes the table of the README.

- **utterances**, **clips** (`audiomnist-speakers`): 3 rows of each of 60 voices; 4 to 6 voices with 10 to 20 rows each,
  two of which are not in the catalogue if something is unknown.
- **groceries** (`grocery-efflite0`): 5 photographs of each of 81 kinds; 75 photographs of 6 kinds, taken in shops; two
  more kinds with 25 photographs if something is unknown.
- **spectra** (`massbank-two-labs`): the library of one laboratory, 1,152 compounds; all spectra that laboratory 1 has
  of 10 to 30 compounds, and of a quarter as many that the library lacks. **candidates**: the same with the compounds
  whose precursor mass is within 0.01 of that of any spectrum of the batch.
- **sounds** (`esc50-birdnet`): 5 clips of each of 50 kinds; 75 clips of 5 kinds; two more kinds with 25 clips if
  something is unknown.
- **requests** (`hint3-powerplay11-minilm`): the catalogue that a company wrote, 57 intents with 1 to 42 examples; 75 of
  the requests that have an intent, or of all requests if something is unknown.

`joint` labels the whole batch, `alone` each item by the same classifier, `means` each item by the nearest class mean,
and `control` the whole batch by the simple control (`control.py`).
Results are saved in `studies/results/real_uses.json`, one value per batch.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from control import control, head_scores
from handful.estimators import BatchClassifier
from pages import keep

RESULTS = Path(__file__).parent / "results" / "real_uses.json"
CELLS = ("utterances", "clips", "groceries", "spectra", "candidates", "sounds", "requests")
# Cells whose batches share a catalogue, and the cell that has the same one.
SHARED = {"spectra": "spectra", "candidates": "spectra", "requests": "requests"}
COMPOUNDS, LABORATORY, TOLERANCE = 1152, 1, 0.01

Rows = npt.NDArray[np.int64]


class Drawn(NamedTuple):
    """A catalogue and a batch; labels of items that the catalogue lacks are not among its labels."""

    examples: npt.NDArray[np.float32]
    labels: Rows
    items: npt.NDArray[np.float32]
    truth: Rows
    candidates: list[int] | None = None


def array(file: Path) -> npt.NDArray[Any]:
    """Read an array; features as single precision, labels as whole numbers."""
    found = np.load(file)
    return np.asarray(found, dtype=np.float32 if found.dtype.kind == "f" else np.int64)


def voices(data: Path, part: str, unknown: bool, rng: np.random.Generator) -> Drawn:
    """Draw a recording of a few voices."""
    folder = data / "audiomnist-speakers"
    features, labels = (
        array(folder / f"{part or 'features'}.npy"),
        array(folder / f"{part + '_' * bool(part)}labels.npy"),
    )
    rows = [rng.permutation(np.flatnonzero(labels == k)) for k in range(60)]
    there = rng.choice(60, int(rng.integers(4, 7)), replace=False)
    gone = there[:2] if unknown else there[:0]
    examples = np.concatenate([rows[k][:3] for k in range(60) if k not in gone])
    items = np.concatenate([rows[k][3 : 3 + int(rng.integers(10, 21))] for k in there])
    return Drawn(features[examples], labels[examples], features[items], labels[items])


def groceries(data: Path, unknown: bool, rng: np.random.Generator) -> Drawn:
    """Draw photographs of a shop."""
    folder = data / "grocery-efflite0"
    features, labels, split = (array(folder / f"{name}.npy") for name in ("features", "labels", "original_split"))
    kinds = rng.permutation(81)
    gone, there = (kinds[:2], kinds[2:8]) if unknown else (kinds[:0], kinds[:6])
    examples = [rng.permutation(np.flatnonzero((labels == k) & (split == 0)))[:5] for k in range(81) if k not in gone]
    of = [rng.permutation(np.flatnonzero(np.isin(labels, some) & (split == 2))) for some in (there, gone)]
    held, items = np.concatenate(examples), np.concatenate([of[0][:75], of[1][:25]])
    return Drawn(features[held], labels[held], features[items], labels[items])


def run_of(truth: Rows, here: npt.NDArray[np.bool_], unknown: bool, rng: np.random.Generator) -> Rows:
    """Draw rows of `here`, a laboratory: all of a few compounds, and of some that the library lacks if asked for."""
    known, other = (np.unique(truth[here & some]) for some in (truth < COMPOUNDS, truth >= COMPOUNDS))
    n = int(rng.integers(10, 31))
    chosen = rng.choice(known, n, replace=False)
    if unknown:
        chosen = np.concatenate([chosen, rng.choice(other, max(n // 4, 1), replace=False)])
    return np.flatnonzero(here & np.isin(truth, chosen))


def spectra(data: Path, listed: bool, unknown: bool, rng: np.random.Generator) -> Drawn:
    """Draw all spectra of a few compounds."""
    folder = data / "massbank-two-labs"
    (features, labels, masses), (items, truth, theirs) = (
        [array(folder / f"{part}{what}.npy") for what in ("", "_labels", "_precursor")]
        for part in ("reference", "query")
    )
    rows = run_of(truth, array(folder / "query_lab.npy") == LABORATORY, unknown, rng)
    near = np.abs(masses[:, None] - theirs[rows]).min(1) < TOLERANCE
    return Drawn(features, labels, items[rows], truth[rows], np.unique(labels[near]).tolist() if listed else None)


def sounds(data: Path, unknown: bool, rng: np.random.Generator) -> Drawn:
    """Draw clips of a few kinds of sound."""
    features, labels = (array(data / "esc50-birdnet" / f"{name}.npy") for name in ("features", "labels"))
    rows = [rng.permutation(np.flatnonzero(labels == k)) for k in range(50)]
    kinds = rng.permutation(50)
    gone, there = (kinds[:2], kinds[2:7]) if unknown else (kinds[:0], kinds[:5])
    examples = np.concatenate([rows[k][:5] for k in range(50) if k not in gone])
    of = [
        rng.permutation(np.concatenate([rows[k][5:] for k in some])) if len(some) else there[:0]
        for some in (there, gone)
    ]
    items = np.concatenate([of[0][:75], of[1][:25]])
    return Drawn(features[examples], labels[examples], features[items], labels[items])


def requests(data: Path, unknown: bool, rng: np.random.Generator) -> Drawn:
    """Draw requests to a company, whose own examples are the catalogue."""
    folder = data / "hint3-powerplay11-minilm"
    features, labels, split = (array(folder / f"{name}.npy") for name in ("features", "labels", "original_split"))
    written, asked = split == 1, split == 0
    may = np.flatnonzero(asked if unknown else asked & np.isin(labels, labels[written]))
    items = rng.choice(may, 75, replace=False)
    return Drawn(features[written], labels[written], features[items], labels[items])


def drawn(data: Path, cell: str, unknown: bool, number: int) -> Drawn:
    """Draw a batch of a cell, the same for every version."""
    rng = np.random.default_rng([CELLS.index("spectra" if cell == "candidates" else cell), unknown, number])
    if cell in ("groceries", "sounds", "requests"):
        return {"groceries": groceries, "sounds": sounds, "requests": requests}[cell](data, unknown, rng)
    if cell in ("utterances", "clips"):
        return voices(data, "short" if cell == "clips" else "", unknown, rng)
    return spectra(data, cell == "candidates", unknown, rng)


def means_of(batch: Drawn) -> Rows:
    """Label every item by the nearest class mean."""
    classes, codes = np.unique(batch.labels, return_inverse=True)
    means = np.zeros((len(classes), batch.items.shape[1]))
    np.add.at(means, codes, batch.examples)
    means /= np.bincount(codes)[:, None]
    distances = (means**2).sum(1) - 2 * batch.items @ means.T
    if batch.candidates is not None:
        distances[:, ~np.isin(classes, batch.candidates)] = np.inf
    return np.asarray(classes[distances.argmin(1)])


def control_of(model: Any, batch: Drawn) -> Rows:
    """Label the batch by the simple control, among the candidates if there are any."""
    scores = head_scores(model, batch.items)
    classes = np.asarray(model.classes_)
    if batch.candidates is not None:
        listed = np.isin(classes, batch.candidates)
        scores = scores[:, listed]
        classes = classes[listed]
    return np.asarray(classes[control(scores)])


def figures(model: Any, batch: Drawn) -> dict[str, float]:
    """Measure one batch; all but `loss` in percent."""
    known = np.isin(batch.truth, model.classes_)
    with warnings.catch_warnings(action="ignore"):
        found = model.infer(batch.items, candidates=batch.candidates)
        alone = model.infer(batch.items, groups=np.arange(len(batch.items)), candidates=batch.candidates).labels
    code, there = np.searchsorted(model.classes_, batch.truth[known]), np.isin(model.classes_, batch.truth)
    right, present = found.labels[known] == batch.truth[known], found.presence >= 0.5
    q = np.asarray(found.probabilities)[known]
    share, (low, high), rejected = float((~known).mean()), found.unknown_interval, np.asarray(found.rejected)
    values = {
        "joint": right.mean(),
        "alone": (alone[known] == batch.truth[known]).mean(),
        "means": (means_of(batch)[known] == batch.truth[known]).mean(),
        "control": (control_of(model, batch)[known] == batch.truth[known]).mean(),
        "precision": there[present].mean() if present.any() else 1.0,
        "recall": present[there].mean(),
        "brier": ((found.presence - there) ** 2).sum() / there.sum(),
        "over": q.max(1).mean() - right.mean(),
        "known_rejected": rejected[known].mean(),
        "said": np.mean(found.unknown),
        "share": share,
        "covers": float(low <= share <= high),
    }
    if share:
        values["unknown_rejected"] = rejected[~known].mean()
        values["auroc"] = roc_auc_score(~known, found.unknown)
    loss = float(-np.log(np.maximum(q[np.arange(len(code)), code], 1e-12)).mean())
    return {name: round(100 * float(value), 3) for name, value in values.items()} | {"loss": round(loss, 4)}


@cache
def library(data: Path, cell: str) -> Any:
    """Fit the catalogue that all batches of a cell share."""
    batch = drawn(data, cell, False, 0)
    return BatchClassifier().fit(batch.examples, batch.labels)


def measured(data: Path, cell: str, unknown: bool, n: int) -> Iterator[dict[str, float]]:
    """Measure the batches of a cell; a catalogue that all batches share is fitted once."""
    for number in range(n):
        batch = drawn(data, cell, unknown, number)
        with warnings.catch_warnings(action="ignore"):
            shared = SHARED.get(cell)
            model = library(data, shared) if shared else BatchClassifier().fit(batch.examples, batch.labels)
        yield figures(model, batch)


def main() -> None:
    """Measure the cells asked for and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data")
    parser.add_argument("--only", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--batches", type=int, default=50, help="batches per cell")
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    for cell in given.only:
        for unknown in (False, True):
            what = f"{cell}, {'some' if unknown else 'nothing'} unknown"
            found[what] = list(measured(given.data, cell, unknown, given.batches))
            means = {key: round(float(np.mean([one[key] for one in found[what]])), 2) for key in found[what][0]}
            print(what, means, flush=True)
            keep(RESULTS, found)


if __name__ == "__main__":
    main()
