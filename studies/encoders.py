"""Whether `handful catalogue compare` can be believed: its intervals against fresh rows of the same classes.

    python studies/encoders.py DATA --bank clinc150 [--tasks 20] [--shots 6] [--classes 30]

DATA is a folder that holds the banks. A task draws classes and examples of a bank, compares two encoders with them, and
then labels other rows of these classes, in batches of the same size, with catalogues of the same examples. Encoders are
made of the bank's vectors:

- `noise`: both are the vectors with as much noise, drawn twice, so neither is better; "better" is a false alarm
- `halves`: halves of the numbers, which differ a little; "better" is right if fresh rows say so
- `fewer`: half of the numbers against a sixteenth, so the first is better

It prints how often the 95 % intervals hold what fresh rows give, and how often an encoder is called worse. `twice` is
the interval of what twice as many examples would add, against catalogues that have them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from handful.fitted import FittedModel
from handful.fitted.comparison import BEST, WORSE, Comparison, Interval, compared
from handful.fitted.left_out_batches import LeftOutBatches, together
from handful.fitted.rows import unit
from handful.model.knowledge import Knowledge
from handful.model.labelling import KnownBatch, label_batches

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
FOLDERS = {
    "clinc150": "clinc150-minilm",
    "cub200": "cub200-efflite0",
    "grocery": "grocery-efflite0",
    "caltech101": "caltech101-efflite0",
}
# Noise, in standard deviations of the bank's numbers.
NOISE = 0.7
# Fresh rows of a class, at most, and batches of these.
FRESH = 12
FRESH_BATCHES = 60
KINDS = ("noise", "halves", "fewer")


def views(kind: str, rows: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the vectors of two encoders, made of those of all rows of a task."""
    order = rng.permutation(rows.shape[1])
    half = len(order) // 2
    if kind == "noise":
        noise = NOISE * rows.std() * rng.normal(size=(2, *rows.shape)).astype(np.float32)
        return rows + noise[0], rows + noise[1]
    second = order[half:] if kind == "halves" else order[half : half + max(1, len(order) // 16)]
    return rows[:, order[:half]], rows[:, second]


def right(catalogue: FittedModel, points: Floats, codes: Ints, batches: list[Ints]) -> tuple[float, float]:
    """Return the share of fresh rows that are labelled right alone and jointly, mean over classes."""
    alone, jointly = np.zeros((2, len(codes)))
    times = np.zeros(len(codes))
    items = (KnownBatch(catalogue.points(points[batch]), Knowledge()) for batch in batches)
    answers = label_batches(items, catalogue.reference)
    for batch, answer in zip(batches, answers, strict=True):
        scores = catalogue.head.scores(catalogue.points(points[batch]))
        alone[batch] += catalogue.classes[scores.argmax(1)] == codes[batch]
        jointly[batch] += catalogue.classes[answer.probabilities.argmax(1)] == codes[batch]
        times[batch] += 1
    seen = times > 0
    classes = np.unique(codes[seen])
    means = [
        float(np.mean([(sums[seen & (codes == k)] / times[seen & (codes == k)]).mean() for k in classes]))
        for sums in (alone, jointly)
    ]
    return means[0], means[1]


def fresh_batches(codes: Ints, drawn: LeftOutBatches, rng: np.random.Generator) -> list[Ints]:
    """Draw batches of fresh rows, of the sizes of those of left-out examples."""
    sizes = [np.bincount(drawn.codes[batch])[np.unique(drawn.codes[batch])] for p in drawn.parts for batch in p.batches]
    batches = []
    for _ in range(FRESH_BATCHES):
        counts = sizes[rng.integers(len(sizes))]
        classes = rng.choice(np.unique(codes), len(counts), replace=False)
        own = (rng.permutation(np.flatnonzero(codes == k))[:n] for k, n in zip(classes, counts, strict=True))
        batches.append(np.sort(np.concatenate(list(own))))
    return batches


def task(features: Floats, labels: Ints, kind: str, n_classes: int, shots: int, seed: int) -> dict[str, bool | float]:
    """Compare two encoders with few examples, and with fresh rows."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(labels)
    enough = np.flatnonzero(counts >= 2 * shots + 4)
    classes = rng.choice(enough, min(n_classes, len(enough)), replace=False)
    rows = [rng.permutation(np.flatnonzero(labels == k)) for k in classes.tolist()]
    parts = [np.concatenate([of_class[some] for of_class in rows]) for some in _parts(shots)]
    codes = [np.searchsorted(np.sort(classes), labels[part]) for part in parts]
    own = views(kind, features[np.concatenate(parts)], rng)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    (first, more, fresh), (first_b, more_b, fresh_b) = (np.split(one, ends) for one in own)
    drawn = LeftOutBatches.draw(codes[0], together([unit(first), unit(first_b)], codes[0]), rng)
    found = compared({"a": first, "b": first_b}, drawn, seed=seed)
    batches = fresh_batches(codes[2], drawn, rng)
    truth = list[tuple[float, float]]()
    twice = list[float]()
    for examples, added, items in ((first, more, fresh), (first_b, more_b, fresh_b)):
        kept = [part.whole for part in drawn.parts]
        shares = [right(FittedModel.of(examples[some], codes[0][some]), items, codes[2], batches) for some in kept]
        truth.append((float(np.mean([one[0] for one in shares])), float(np.mean([one[1] for one in shares]))))
        if examples is first:
            whole = right(FittedModel.of(examples, codes[0]), items, codes[2], batches)[1]
            both = FittedModel.of(np.concatenate([examples, added]), np.concatenate(codes[:2]))
            twice.append(right(both, items, codes[2], batches)[1] - whole)
    return _judged(found, truth, twice[0])


def _parts(shots: int) -> tuple[slice, slice, slice]:
    """Return examples, as many more, and fresh rows, of the rows of a class."""
    return slice(0, shots), slice(shots, 2 * shots), slice(2 * shots, 2 * shots + FRESH)


def _judged(found: Comparison, truth: list[tuple[float, float]], twice: float) -> dict[str, bool | float]:
    """Compare what was said with what fresh rows give."""
    a, b = found.encoders
    worse = b if a.verdict == BEST else a
    fresh = truth[0][1] - truth[1][1]
    signed = fresh if worse is b else -fresh  # by how much the one that is called best is better
    judged: dict[str, bool | float] = {
        "alone": _holds(a.alone, truth[0][0]),
        "jointly": _holds(a.jointly, truth[0][1]),
        "difference": _holds(worse.behind, -signed),
        "half width": (worse.behind.high - worse.behind.low) / 2,
        "called worse": worse.verdict == WORSE,
        "wrongly": worse.verdict == WORSE and signed <= 0,
        "fresh": abs(fresh),
        "b worse": worse is b and worse.verdict == WORSE,
    }
    if a.doubled is not None:
        judged["twice"] = _holds(a.doubled, twice)
        judged["twice said"] = a.doubled.value
        judged["twice fresh"] = twice
    return judged


def _holds(interval: Interval, value: float) -> bool:
    return interval.low <= value <= interval.high


def main() -> None:
    """Run tasks of one bank and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bank", choices=FOLDERS, default="clinc150")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--shots", type=int, default=6)
    parser.add_argument("--classes", type=int, default=30)
    parser.add_argument("--kind", choices=KINDS, action="append")
    asked = parser.parse_args()
    folder = asked.data / FOLDERS[asked.bank]
    features = np.load(folder / "features.npy").astype(np.float32)
    labels = np.load(folder / "labels.npy").astype(np.int64)
    for kind in asked.kind or KINDS:
        found = [task(features, labels, kind, asked.classes, asked.shots, seed) for seed in range(asked.tasks)]
        names = dict.fromkeys(name for one in found for name in one)
        means = {name: np.mean([float(one[name]) for one in found if name in one]) for name in names}
        told = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        print(f"{asked.bank}, {asked.classes} classes, {asked.shots} examples, {kind}, {asked.tasks} tasks: {told}")


if __name__ == "__main__":
    main()
