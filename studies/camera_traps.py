"""A camera-trap story: the file of a weak classifier, what people do with it today, and joint labels by site.

    python studies/camera_traps.py caltech24.zip [--bank caltech24.bank] [--worlds 20]
    python studies/camera_traps.py --render

Photographs of 24 kinds, 40 of each, stand for animals. In each world, few of each kind (1, 2 or 5) train the head of a
classifier, which then knows all 24 kinds; the others are what cameras saw. A camera stands at each of six sites, and
sees four kinds, in sequences of one to five photographs of one kind. The classifier's five best classes of every
photograph are written as SpeciesNet writes its predictions, and sites and sequences as COCO Camera Traps.

- `first`: the prediction in that file, the best of the five.
- `majority`: the prediction most frequent in the sequence; of several, the one with the larger sum of scores.
- `mean score`: the class with the largest mean score in the sequence.
- `told`: the best of the five classes that really occurs at the site; the first if none of them does. About as much
  as labels by site alone can reach.
- `sparse_em`: the simple control (`control.py`). The shares of the kinds at each site are found by EM from the five
  best classes, with the scale of scores that handful estimates; a sequence has the kind of the largest mean chance.
- `site`: `handful rescore predictions.json --sites cct.json --group-by location --out better.json`.
- `site and sequence`: the same with `--sequence seq_id`.

Features are those of the packaged EfficientNet-Lite0; `--bank` keeps them. Intervals are those of the mean over worlds,
which differ in examples, sites and sequences and share the photographs. How a sequence is joined
(the mean of joint probabilities; not joint labels of mean scores, which can fail with weak scores) was chosen on other
worlds, those below number 300. Results are kept in
`studies/results/camera_traps.json`; `--render` writes the page from them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import handful
from control import CONTROL, chances
from handful.cli.main import main as command
from handful.extraction.encoders import load_encoder
from handful.extraction.extract import extract
from handful.extraction.items import list_items
from handful.model.scores import in_nats, unit_of
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Page, dots

RESULTS = Path(__file__).parent / "results" / "camera_traps.json"
SHOTS, SITES, KINDS, LONGEST, LISTED = (1, 2, 5), 6, 4, 5, 5
# Number of the first world; those below it were looked at before.
FIRST_WORLD = 300
RULES = ("first", "majority", "mean score", "told", CONTROL, "site", "site and sequence")
OURS = RULES[-1]
WORDS = {
    "first": "the classifier's first class",
    "majority": "majority in the sequence",
    "mean score": "best mean score in the sequence",
    "told": "first class, told the kinds of the site",
    CONTROL: "`sparse_em` by site, best mean chance in the sequence",
    "site": "**jointly by site**",
    "site and sequence": "**jointly by site, and by sequence**",
}


def world(
    bank: handful.FeatureBank, shots: int, seed: int, folder: Path
) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Write predictions and sites of one world; return true kinds, sequences, and scores of all classes."""
    rng = np.random.default_rng([seed, shots])
    features = bank.features.astype(np.float64)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    shuffled = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    examples = np.concatenate([rows[:shots] for rows in shuffled])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # as many classes as examples is meant
        head = LogisticRegression(max_iter=2000).fit(features[examples], bank.labels[examples])
    kinds = rng.permutation(bank.n_classes)[: SITES * KINDS].reshape(SITES, KINDS)
    images, predictions, truth, sequences = list[Any](), list[Any](), list[str](), list[int]()
    scores = list[Any]()
    for site, here in enumerate(kinds):
        runs = [run for k in here for run in cut(shuffled[k][shots:], rng)]
        for number, place in enumerate(rng.permutation(len(runs))):
            for row in runs[place]:
                p = head.predict_proba(features[row : row + 1])[0]
                best = np.argsort(-p)[:LISTED]
                file = f"site {site}/{len(truth):05}.jpg"
                named = [bank.class_names[k] for k in best]
                found = {"classes": named, "scores": p[best].round(4).tolist()}
                predictions.append(
                    {
                        "filepath": file,
                        "classifications": found,
                        "prediction": named[0],
                        "prediction_score": found["scores"][0],
                        "prediction_source": "classifier",
                        "model_version": "a weak head",
                    }
                )
                images.append({"id": file, "file_name": file, "location": site, "seq_id": f"{site}-{number}"})
                truth.append(bank.class_names[bank.labels[row]])
                sequences.append(1000 * site + number)
                scores.append(p)
    (folder / "predictions.json").write_text(json.dumps({"predictions": predictions}, indent=1))
    (folder / "cct.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    return truth, np.array(sequences), np.array(scores)


def cut(rows: np.ndarray[Any, Any], rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Cut photographs of one kind into sequences of one to `LONGEST`."""
    runs = []
    while len(rows):
        n = int(rng.integers(1, LONGEST + 1))
        runs.append(rows[:n])
        rows = rows[n:]
    return runs


def smoothed(
    first: np.ndarray[Any, Any], scores: np.ndarray[Any, Any], sequences: np.ndarray[Any, Any], *, majority: bool
) -> np.ndarray[Any, Any]:
    """Return one class per sequence: the most frequent first class, ties by scores, or that of the best mean score."""
    answer = first.copy()
    for sequence in np.unique(sequences):
        here = np.flatnonzero(sequences == sequence)
        sums = scores[here].sum(0)
        votes = np.bincount(first[here], minlength=scores.shape[1])
        answer[here] = np.where(votes == votes.max(), sums, -1).argmax() if majority else sums.argmax()
    return answer


def told(
    scores: np.ndarray[Any, Any], truth: np.ndarray[Any, Any], sites: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return the best listed class of each photograph that occurs at its site, or the best of all."""
    occurs = np.zeros((sites.max() + 1, scores.shape[1]), bool)
    occurs[sites, truth] = True
    listed = scores >= np.sort(scores, axis=1)[:, -LISTED, None]
    left = np.where(listed & occurs[sites], scores, -1)
    return np.asarray(np.where(left.max(1) >= 0, left.argmax(1), scores.argmax(1)))


def by_control(
    scores: np.ndarray[Any, Any], sites: np.ndarray[Any, Any], sequences: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return one class per sequence, that of the largest mean chance by the control at the sequence's site."""
    listed = scores >= np.sort(scores, axis=1)[:, -LISTED, None]
    logs = np.where(listed, np.log(scores.clip(np.finfo(float).tiny)), np.nan)
    nats = in_nats(logs, unit_of(logs), unlisted=True)
    found = np.empty_like(scores)
    for site in np.unique(sites):
        found[sites == site] = chances(nats[sites == site])
    return smoothed(found.argmax(1), found, sequences, majority=False)


def labels_of(folder: Path, *more: str) -> list[str]:
    """Run the command, and read the predictions that it wrote."""
    out = folder / "better.json"
    arguments = [folder / "predictions.json", "--sites", folder / "cct.json", "--group-by", "location"]
    if command(["rescore", *map(str, arguments), *more, "--out", str(out)]) != 0:
        raise RuntimeError("the command failed")
    return [image["prediction"] for image in json.loads(out.read_text())["predictions"]]


def accuracies(bank: handful.FeatureBank, shots: int, seed: int) -> dict[str, float]:
    """Return the share of photographs with the right label, by rule."""
    with tempfile.TemporaryDirectory() as place:
        truth, sequences, scores = world(bank, shots, seed, Path(place))
        names = np.array(bank.class_names)
        first = scores.argmax(1)
        kinds = np.array([bank.class_names.index(name) for name in truth])
        answers = {
            "first": names[first],
            "majority": names[smoothed(first, scores, sequences, majority=True)],
            "mean score": names[smoothed(first, scores, sequences, majority=False)],
            "told": names[told(scores, kinds, sequences // 1000)],
            CONTROL: names[by_control(scores, sequences // 1000, sequences)],
            "site": labels_of(Path(place)),
            "site and sequence": labels_of(Path(place), "--sequence", "seq_id"),
        }
    return {rule: float((np.array(answers[rule]) == np.array(truth)).mean()) for rule in RULES}


def table(kept: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Return accuracies by rule and number of examples, and how far joint labels are ahead of each rule."""
    lines = []
    for rule in RULES:
        cells = [
            MeanEstimate.of(np.array([found[rule] for found in worlds])).percent.text() for worlds in kept.values()
        ]
        gain = ahead([found for worlds in kept.values() for found in worlds], rule).percent
        behind = f"{gain.mean:+.1f} ± {gain.half_width:.1f}" if rule != OURS else ""
        lines.append([WORDS[rule], *cells, behind])
    heads = [f"{shots} example{'s' * (shots != '1')} per kind" for shots in kept]
    return markdown_table(["labels", *heads, "by site and sequence, ahead by"], lines)


def ahead(worlds: Sequence[Mapping[str, float]], rule: str) -> MeanEstimate:
    """Return how far labels by site and sequence are ahead of another rule."""
    return MeanEstimate.of(np.array([found[OURS] - found[rule] for found in worlds]))


def page() -> Page:
    """Make the page from what was kept."""
    kept: dict[str, list[dict[str, float]]] = json.loads(RESULTS.read_text())
    gain = ahead([found for worlds in kept.values() for found in worlds], CONTROL).percent
    shown = {
        WORDS[r].strip("*").replace("`", ""): {f"{n} per kind": [100 * w[r] for w in kept[n]] for n in kept}
        for r in RULES
    }
    return Page(
        name="camera_traps",
        title="Camera traps",
        question=(
            "A weak classifier wrote its five best classes for every photograph, in the format of SpeciesNet. Each of "
            "six cameras saw four of the 24 kinds. How many labels are right as they are, with the usual smoothing of "
            "sequences, and after one command? Percent of photographs with the right label, "
            f"means over {len(next(iter(kept.values())))} worlds with 95% intervals."
        ),
        alt="Accuracy of seven ways to label, with 1, 2 and 5 examples per kind: one dot per world",
        figure=lambda: dots(shown, "percent right"),
        table=table(kept),
        shows=(
            "`--sequence` matters most. Labels by site alone are below the majority in a sequence, and could hardly be "
            "above it: even told the kinds of each site, the classifier is little above the majority. Together they "
            "are ahead of both. `sparse_em`, the simple control, finds the shares of the kinds at a "
            f"site by EM; {gain.text(sign='+', unit=' points')} are gained on it by site and sequence. Leave "
            "`--sequence` out where a sequence often shows several kinds."
        ),
        limits=(
            "The photographs are of 24 categories of Caltech 101 that stand for animals; real ones are darker, emptier "
            "and less equal in number. How a sequence is joined was chosen on other worlds."
        ),
        made=(
            "`predictions.json` is what SpeciesNet writes, and `cct.json` says where and in which sequence each "
            "photograph was taken, in the format of COCO Camera Traps. [Files of other tools](../do/files.md) explains "
            "the first command. The docstring of `studies/camera_traps.py` says how worlds are drawn."
        ),
        commands=[
            "handful rescore predictions.json --sites cct.json --group-by location --sequence seq_id --out better.json",
            "python studies/camera_traps.py caltech24.zip",
            "python studies/camera_traps.py --render",
        ],
        rows=[
            {"examples": shots, "world": FIRST_WORLD + number, **found}
            for shots, worlds in kept.items()
            for number, found in enumerate(worlds)
        ],
    )


def main() -> None:
    """Measure, or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="?", type=Path, help="caltech24.zip, one folder per kind")
    parser.add_argument("--bank", type=Path, help="where the features are, or will be kept")
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--render", action="store_true", help="write the page from what is kept")
    options = parser.parse_args()
    if options.photographs is not None:
        with tempfile.TemporaryDirectory() as place:
            folder = options.bank or Path(place) / "bank"
            if not folder.exists():
                extract(list_items(options.photographs), load_encoder("efficientnet-lite0"), folder)
            bank = handful.FeatureBank.load(folder)
            kept = {
                str(shots): [accuracies(bank, shots, seed) for seed in range(FIRST_WORLD, FIRST_WORLD + options.worlds)]
                for shots in SHOTS
            }
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    elif not options.render:
        parser.error("name the photographs, or --render")
    page().write()


if __name__ == "__main__":
    main()
