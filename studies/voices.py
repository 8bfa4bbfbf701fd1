"""Who speaks: names of segments, by the nearest enrolled mean with a threshold, and jointly.

    python studies/voices.py DATA [--batches 100] [--only clips ...]
    python studies/voices.py --render

DATA is a folder that holds `audiomnist-speakers` (MIT): vectors of 60 speakers, by the encoder of Resemblyzer. A
recording has 4 to 6 voices with 10 to 20 segments each; three segments of every enrolled voice are the catalogue.

- `utterances`: segments of 2 to 4 s.
- `clips`: single words of 0.3 to 0.9 s, enrolled with such clips.
- `clips, enrolled by utterances`: the same segments, and a catalogue of utterances.

None, two, or all but one of the voices are strangers, which are not enrolled. Clusters are those of a diarisation tool
that errs: each voice falls into two clusters with a chance of one half, and a segment lies in a wrong cluster with a
chance of 5%.

- `segment`: the enrolled voice whose mean is nearest, by the cosine; unknown below a threshold.
- `cluster`: the same for the mean of a cluster.
- `segment, named`, `cluster, named`: the same without a threshold, so that every segment has the name of a voice.
- `sparse_em`: the simple control (`control.py`), which names every segment.
- `jointly`: `BatchClassifier`; unknown if rejected.
- `jointly, sequence`: the same with `sequence`, the clusters: their segments have the mean of their joint answers.

Both thresholds are the best ones in hindsight on 30 other recordings of the same kind, ten with each number of
strangers. Nobody has these, so the rules are better here than in use. Figures are percent of segments with the right
name, where the right name of a stranger is "unknown"; intervals are those of paired differences over recordings.
Results are kept in `studies/results/voices`; `--render` writes the page from them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from control import CONTROL, control, head_scores
from handful.estimators import BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Page, dots, file_of, keep, kept, mean, measure_or_render

RESULTS = Path(__file__).parent / "results" / "voices"
KINDS = {"utterances": ("", ""), "clips": ("short", "short"), "clips, enrolled by utterances": ("", "short")}
STRANGERS = ("none", "two", "all but one")
RULES = ("segment", "cluster", "segment, named", "cluster, named", CONTROL, "jointly", "jointly, sequence")
WITH_THRESHOLD = RULES[:2]
# The rule that a joint one is compared with: without strangers that without a threshold, else that with one.
AGAINST = {"jointly": "segment", "jointly, sequence": "cluster"}
VOICES, ENROLLED, SPLIT, MISPLACED = 60, 3, 0.5, 0.05
TUNING, FIRST_TUNING = 10, 10_000
UNKNOWN = -1
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Recording(NamedTuple):
    """Enrolled segments and their voices; segments of a recording, their voices (or UNKNOWN) and clusters."""

    examples: Floats
    labels: Ints
    segments: Floats
    truth: Ints
    clusters: Ints


def recording(data: Path, kind: str, strangers: str, number: int) -> Recording:
    """Draw a recording."""
    rng = np.random.default_rng([list(KINDS).index(kind), STRANGERS.index(strangers), number])
    by, of = (_part(data, part) for part in KINDS[kind])
    there = rng.choice(VOICES, int(rng.integers(4, 7)), replace=False)
    gone = there[: {"none": 0, "two": 2, "all but one": len(there) - 1}[strangers]]
    rows = [[rng.permutation(np.flatnonzero(labels == k)) for k in range(VOICES)] for _, labels in (by, of)]
    enrolled = [k for k in range(VOICES) if k not in gone]
    examples = np.concatenate([rows[0][k][:ENROLLED] for k in enrolled])
    # Segments of the catalogue and of the recording are never the same.
    left = rows[1] if by is not of else [mine[ENROLLED:] for mine in rows[0]]
    items = rng.permutation(np.concatenate([left[k][: int(rng.integers(10, 21))] for k in there]))
    voice = of[1][items]
    truth = np.where(np.isin(voice, gone), UNKNOWN, voice)
    return Recording(by[0][examples], by[1][examples], of[0][items], truth, clusters_of(voice, rng))


_PARTS: dict[tuple[Path, str], tuple[Floats, Ints]] = {}


def _part(data: Path, part: str) -> tuple[Floats, Ints]:
    if (data, part) not in _PARTS:
        folder, before = data / "audiomnist-speakers", f"{part}_" if part else ""
        vectors = unit(np.load(folder / f"{part or 'features'}.npy").astype(np.float64))
        _PARTS[data, part] = vectors, np.load(folder / f"{before}labels.npy").astype(np.int64)
    return _PARTS[data, part]


def clusters_of(voice: Ints, rng: np.random.Generator) -> Ints:
    """Return the cluster of each segment: one or two for each voice, and some segments in a wrong one."""
    found = np.empty_like(voice)
    n = 0
    for k in np.unique(voice):
        mine = np.flatnonzero(voice == k)
        parts = 2 if rng.random() < SPLIT else 1
        found[mine] = n + rng.integers(parts, size=len(mine))
        n += parts
    wrong = rng.random(len(voice)) < MISPLACED
    return np.where(wrong, rng.integers(n, size=len(voice)), found)


def unit(rows: Floats) -> Floats:
    """Rows of length one."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def nearest(one: Recording, *, by_cluster: bool) -> tuple[Ints, Floats]:
    """Return the enrolled voice whose mean is nearest to each segment, or to its cluster, and the cosine."""
    classes, codes = np.unique(one.labels, return_inverse=True)
    means = unit(np.stack([one.examples[codes == k].mean(0) for k in range(len(classes))]))
    points = one.segments
    if by_cluster:
        points = np.stack([points[one.clusters == cluster].mean(0) for cluster in one.clusters])
    cosines = unit(points) @ means.T
    return classes[cosines.argmax(1)], cosines.max(1)


def threshold(others: Sequence[Recording], *, by_cluster: bool) -> float:
    """Return the threshold with most right segments of these recordings."""
    found = [nearest(one, by_cluster=by_cluster) for one in others]
    names, cosines = (np.concatenate(each) for each in zip(*found, strict=True))
    truth = np.concatenate([one.truth for one in others])
    grid = np.quantile(cosines, np.linspace(0, 1, 400))
    right = [(np.where(cosines < at, UNKNOWN, names) == truth).mean() for at in grid]
    return float(grid[int(np.argmax(right))])


def names_by(one: Recording, thresholds: Mapping[str, float]) -> dict[str, Ints]:
    """Name the segments of a recording by every rule."""
    found: dict[str, Ints] = {}
    for rule, at in thresholds.items():
        names, cosines = nearest(one, by_cluster=rule == "cluster")
        found[rule] = np.where(cosines < at, UNKNOWN, names)
        found[f"{rule}, named"] = names
    with warnings.catch_warnings(action="ignore"):
        classifier = BatchClassifier().fit(one.examples, one.labels)
        alone, joined = classifier.infer(one.segments), classifier.infer(one.segments, sequence=one.clusters)
    found[CONTROL] = classifier.classes_[control(head_scores(classifier, one.segments))]
    for rule, answer in (("jointly", alone), ("jointly, sequence", joined)):
        found[rule] = np.where(answer.rejected, UNKNOWN, answer.labels)
    return found


def figures(names: Ints, truth: Ints) -> dict[str, float | None]:
    """Percent of right segments: of all, of enrolled voices, and of strangers; None where there are none."""
    right, enrolled = names == truth, truth != UNKNOWN
    parts = {"all": np.ones_like(enrolled), "enrolled": enrolled, "strangers": ~enrolled}
    return {name: round(100 * float(right[of].mean()), 2) if of.any() else None for name, of in parts.items()}


def measured(data: Path, kind: str, n: int) -> dict[str, Any]:
    """Measure the recordings of a kind."""
    others = [
        recording(data, kind, strangers, FIRST_TUNING + number) for strangers in STRANGERS for number in range(TUNING)
    ]
    thresholds = {rule: threshold(others, by_cluster=rule == "cluster") for rule in WITH_THRESHOLD}
    cells: dict[str, list[Any]] = {}
    for strangers in STRANGERS:
        cells[strangers] = []
        for number in range(n):
            one = recording(data, kind, strangers, number)
            found = names_by(one, thresholds)
            cells[strangers].append({rule: figures(found[rule], one.truth) for rule in RULES})
    return {"thresholds": {rule: round(at, 4) for rule, at in thresholds.items()}, "cells": cells}


def ahead(rows: Sequence[Mapping[str, Any]], rule: str, strangers: str) -> MeanEstimate:
    """Return how far a joint rule is ahead of the one it is compared with, over all segments."""
    other = AGAINST[rule] + (", named" if strangers == "none" else "")
    return MeanEstimate.of(np.array([row[rule]["all"] - row[other]["all"] for row in rows]))


WORDS = {
    "segment": "segments",
    "cluster": "clusters",
    CONTROL: f"`{CONTROL}`",
    "jointly": "**jointly**",
    "jointly, sequence": "**`--sequence`**",
}
SHORT = {"clips, enrolled by utterances": "clips/utterances"}


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return right segments of enrolled voices and of strangers by rule, and how far joint rules are ahead.

    Without strangers, that of a rule with a threshold is the one without.
    """
    lines = []
    for kind, of in found.items():
        for rule, words in WORDS.items():
            cells = []
            for strangers, rows in of["cells"].items():
                used = f"{rule}, named" if strangers == "none" and rule in WITH_THRESHOLD else rule
                parts = ["enrolled"] if strangers == "none" else ["enrolled", "strangers"]
                cells.append("/".join(f"{mean(row[used][part] for row in rows):.0f}" for part in parts))
                if rule in AGAINST:
                    cells[-1] += f" ({ahead(rows, rule, strangers).text(sign='+')})"
            lines.append([SHORT.get(kind, kind), words, *cells])
    return markdown_table(["segments", "names by", *(f"strangers: {strangers}" for strangers in STRANGERS)], lines)


def page() -> Page:
    """Make the page from what was kept."""
    found = kept(RESULTS, KINDS)
    shown = {
        f"{kind}, strangers: {strangers}": {
            WORDS[rule].strip("*").replace("`", ""): [row[rule]["all"] for row in rows] for rule in WORDS
        }
        for kind, of in found.items()
        for strangers, rows in of["cells"].items()
    }
    return Page(
        name="voices",
        title="Voices",
        question=(
            "Who speaks in a recording of 4 to 6 voices, when three segments of each of up to 60 voices are enrolled? "
            "The usual answer is the nearest enrolled mean, or unknown below a threshold, of *segments* or "
            "*clusters* of a diarisation tool. Percent of segments of enrolled voices with the right name/of strangers "
            "that are called unknown. In brackets, points over all segments that are gained on the nearest mean of "
            "segments, or of clusters for `--sequence`, with 95% intervals over 100 recordings. Where there are "
            "no strangers there is no threshold. `sparse_em` is the simple control: a linear classifier and the shares "
            "of the classes by EM; it names every segment. *clips/utterances*: clips, where utterances are enrolled."
        ),
        alt="Percent of right segments by four rules, three kinds of segments and three numbers of strangers",
        figure=lambda: dots(shown, "percent right"),
        table=table(found),
        shows=(
            "Of short clips, joint labels name far more enrolled voices than the nearest mean does, without any "
            "clusters. Two strangers who say whole utterances are found as often as by a threshold, and less often if "
            "all voices but one are strangers. Those of short clips are hardly found: a recording that is far from the "
            "catalogue as a whole looks like another microphone. "
            "To find them, use a threshold that was tuned on your recordings, or answer questions. Without strangers "
            "`--sequence` is level with the nearest mean of clusters, and ahead where longer segments were enrolled."
        ),
        limits=(
            "Thresholds are the best in hindsight, on other recordings of the same kind. Voices read digits in one "
            "room each, so voice and room cannot be told apart. Clusters are made up: half of the voices fall into "
            "two, and 5% of the segments lie in a wrong one. The clips of [Choose a tool](../understand/comparison.md) "
            "are other draws, and *one at a time* is the better of two rules there, so its figures differ."
        ),
        made=(
            "Vectors of `audiomnist-speakers` (AudioMNIST, MIT) by the encoder of Resemblyzer. "
            "[Name the voices of a recording](../do/voices.md) explains the first command. The docstring of "
            "`studies/voices.py` says how recordings are drawn."
        ),
        commands=[
            "handful classify voices.npz meeting.rttm --group-by file --out named.rttm",
            "python studies/voices.py DATA",
            "python studies/voices.py --render",
        ],
        rows=[
            {"segments": kind, "strangers": strangers, "recording": number, **row}
            for kind, of in found.items()
            for strangers, rows in of["cells"].items()
            for number, row in enumerate(rows)
        ],
    )


def measure(data: Path, kind: str, n: int) -> None:
    """Measure the recordings of a kind and keep them."""
    keep(file_of(RESULTS, kind), measured(data, kind, n), levels=3)


if __name__ == "__main__":
    measure_or_render(__doc__, KINDS, measure, page)
