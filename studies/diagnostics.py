"""Numbers behind the thresholds of the diagnostics: values for ordinary and for broken batches.

    python studies/diagnostics.py clinc150-minilm cub200-efflite0 omniglot659-conv4 [--shifted clinc150-shifted]

For every bank, unit vectors, 75 items per batch, `--supports` catalogues with `--tasks` batches each.

**unlike_catalogue**: mean probability of an item's class, alone, over that of left-out examples. For ordinary batches;
for classes that are each other's nearest; for vectors with their dimensions in another order, also in smaller
catalogues; and, with `--shifted`, for changed sentences whose originals are rows of the first bank. **weak_features**:
certainty of left-out examples beyond a guess, with the right labels and with shuffled ones. **labelled_alone**: batches
labelled alone, with equal shares and with shares of 1/rank.
**collapsed**: answers of one class, roll call's to batches of one class and published PADDLE's to batches of five; how
many of them the rule finds, and how many of these are wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import handful
from handful import fewshot
from handful.catalogue import Catalogue
from handful.engine.model import Context, JointAnswer
from handful.estimators.diagnostics import LEAST_CERTAINTY
from handful.fewshot.classifier import COLLAPSED_SHARE, collapsed
from handful.fewshot.numerics.distances import half_squared_distances
from handful.fewshot.solvers.frame import Frame

SEED = 7
N_ITEMS = 75
# Queries of the tasks that may collapse.
MOST_QUERIES = 40

Rows = list[np.ndarray]


def split(bank: handful.FeatureBank, shots: int, rng: np.random.Generator) -> tuple[np.ndarray, Rows]:
    """Rows of a catalogue, and the other rows of each class."""
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    return np.concatenate([of_class[:shots] for of_class in rows]), [of_class[shots:] for of_class in rows]


def even(spare: Rows, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Items of these classes, drawn without regard to their class."""
    pool = np.concatenate([spare[k] for k in classes])
    return rng.choice(pool, min(N_ITEMS, len(pool)), replace=False)


def by_rank(spare: Rows, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Items of these classes with shares of 1/rank, as far as there are enough."""
    shares = 1 / np.arange(1, len(classes) + 1)
    counts = rng.multinomial(N_ITEMS, shares / shares.sum())
    return np.concatenate([spare[k][:n] for k, n in zip(classes, counts, strict=True)])


def called(catalogue: Catalogue, batches: list[np.ndarray]) -> list[JointAnswer]:
    """Answers, one batch at a time: they may differ in size."""
    return [catalogue.label(batch.astype(np.float32), Context()) for batch in batches]


def quantiles(values: list[float]) -> str:
    """Least, a twentieth, median and greatest."""
    found = torch.tensor(values, dtype=torch.float64)
    least, low, middle, most = found.quantile(torch.tensor([0, 0.05, 0.5, 1], dtype=torch.float64)).tolist()
    return f"{least:.3f} ({low:.3f}) … {middle:.3f} … {most:.3f} of {len(values)}"


class Figures:
    """Values by name, printed when complete."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.ratios: dict[str, list[float]] = {}
        self.alone: dict[str, list[bool]] = {}
        self.signal: dict[str, list[float]] = {}

    def add(self, name: str, catalogue: Catalogue, batches: list[np.ndarray]) -> None:
        """Label these batches."""
        usual = catalogue.head.confidence
        for one in called(catalogue, batches):
            self.alone.setdefault(name, []).append(one.joint_weight < 0.5)
            if usual is not None:
                self.ratios.setdefault(name, []).append(float(one.confidence.mean()) / usual)

    def add_signal(self, name: str, catalogue: Catalogue) -> None:
        """Note how certain left-out examples are."""
        usual, guess = catalogue.head.confidence, 1 / catalogue.n_classes
        if usual is not None:
            self.signal.setdefault(name, []).append((usual - guess) / (1 - guess))

    def show(self) -> None:
        """Print one line per name."""
        for name, values in self.ratios.items():
            below = sum(value < LEAST_CERTAINTY for value in values)
            print(f"unlike_catalogue: {self.what}, {name}: {quantiles(values)}, {below} below {LEAST_CERTAINTY}")
        for name, found in self.alone.items():
            print(f"labelled_alone: {self.what}, {name}: {sum(found)} of {len(found)}")
        for name, values in self.signal.items():
            print(f"weak_features: {self.what}, {name}: {', '.join(f'{value:.3f}' for value in values)}")


def kinds(
    bank: handful.FeatureBank, catalogue: Catalogue, spare: Rows, n_tasks: int, rng: np.random.Generator
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Batches of every kind that needs no other data."""

    def drawn(k_eff: int, draw: Callable[..., np.ndarray]) -> list[np.ndarray]:
        many = min(k_eff, bank.n_classes)
        return [bank.take(draw(spare, rng.choice(bank.n_classes, many, replace=False), rng)) for _ in range(n_tasks)]

    for k_eff in (1, 2, 5, 20, 60):
        yield f"{k_eff} classes", drawn(k_eff, even)
    for k_eff in (5, 20, 60):
        yield f"{k_eff} classes, shares of 1/rank", drawn(k_eff, by_rank)
    means = torch.from_numpy(catalogue.means)
    distances = torch.cdist(means, means)
    for k_eff in (5, 10):
        near = [distances[k].topk(k_eff, largest=False).indices for k in rng.permutation(bank.n_classes)[:n_tasks]]
        yield (
            f"{k_eff} classes nearest to each other",
            [bank.take(even(spare, catalogue.classes[of_class.numpy()], rng)) for of_class in near],
        )
    order = rng.permutation(bank.dim)
    for k_eff in (5, 20):
        yield f"{k_eff} classes, dimensions in another order", [b[:, order] for b in drawn(k_eff, even)]


def study(
    bank: handful.FeatureBank, what: str, shots: int, n_supports: int, n_tasks: int, shifted: Path | None
) -> None:
    """Print all figures of roll call for one bank and number of shots."""
    figures = Figures(f"{what}, {shots} shots")
    for support in range(n_supports):
        rng = np.random.default_rng([SEED, support])
        rows, spare = split(bank, shots, rng)
        catalogue = Catalogue.of(bank.take(rows).astype(np.float32), bank.labels[rows])
        figures.add_signal("labels right", catalogue)
        mixed = rng.permutation(bank.labels[rows])
        figures.add_signal("labels shuffled", Catalogue.of(bank.take(rows).astype(np.float32), mixed))
        for name, batches in kinds(bank, catalogue, spare, n_tasks, rng):
            figures.add(name, catalogue, batches)
        for n_classes in (60, 20, 5):
            some = rng.choice(bank.n_classes, min(n_classes, bank.n_classes), replace=False)
            chosen = rows[np.isin(bank.labels[rows], some)]
            few = Catalogue.of(bank.take(chosen).astype(np.float32), bank.labels[chosen])
            ordinary = [bank.take(even(spare, rng.choice(some, 5, replace=False), rng)) for _ in range(n_tasks)]
            order, what = rng.permutation(bank.dim), f"5 classes of a catalogue of {n_classes}"
            figures.add(what, few, ordinary)
            figures.add(f"{what}, dimensions in another order", few, [batch[:, order] for batch in ordinary])
        if shifted is not None:
            for name, batches in changed(bank, shifted, set(rows.tolist()), n_tasks, rng):
                figures.add(name, catalogue, batches)
    figures.show()


def changed(
    bank: handful.FeatureBank, folder: Path, used: set[int], n_tasks: int, rng: np.random.Generator
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Batches of changed items: `rows.npy` has the rows of the bank, `<kind>.npy` their vectors after the change."""
    rows = np.load(folder / "rows.npy")
    free = np.array([row not in used for row in rows.tolist()])
    of_class = [np.flatnonzero(free & (bank.labels[rows] == k)) for k in range(bank.n_classes)]
    for kind in json.loads((folder / "kinds.json").read_text()):
        vectors = np.load(folder / f"{kind}.npy")
        for k_eff in (5, 20):
            chosen = [rng.choice(bank.n_classes, k_eff, replace=False) for _ in range(n_tasks)]
            yield f"{k_eff} classes, {kind}", [vectors[even(of_class, classes, rng)] for classes in chosen]


def tasks(
    bank: handful.FeatureBank, n_tasks: int, shots: int, k_eff: int
) -> Iterator[tuple[fewshot.TaskBatch, Tensor]]:
    """Single tasks with unit vectors, and their query labels."""
    n_query = min(MOST_QUERIES, (int(bank.class_sizes.min()) - shots) * k_eff)
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(shots), fewshot.UniformOverPool(k_eff), n_query)
    for index in range(n_tasks):
        task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=SEED, indices=[index]))
        yield fewshot.transform("l2", task), truth[0]


def collapses(bank: handful.FeatureBank, n_tasks: int, shots: int, k_eff: int, method: str) -> str:
    """How many answers of one class there are, how many of them are found, and how many of those are wrong."""
    answers = found = wrong = 0
    for task, truth in tasks(bank, n_tasks, shots, k_eff):
        labels = fewshot.solve(method, task).predictions[0]
        if labels.bincount().max() < COLLAPSED_SHARE * len(labels):
            continue
        answers += 1
        frame = Frame(task)
        nearest = half_squared_distances(frame.query, frame.support.mean())[0].argmin(-1)
        if collapsed(labels, nearest, range(task.n_classes)) is not None:
            found += 1
            wrong += bool((labels == truth).double().mean() < 0.5)
    return f"{answers} answers of one class, {found} found, {wrong} of these wrong"


def main() -> None:
    """Print the numbers, bank by bank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path)
    parser.add_argument("--shifted", type=Path, help="folder of changed items of the first bank")
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--supports", type=int, default=3)
    parser.add_argument("--collapses", type=int, default=30, help="tasks to look for collapses in")
    arguments = parser.parse_args()
    for place, path in enumerate(arguments.banks):
        bank = handful.read_bank(path)
        for shots in (2, 5):
            shifted = arguments.shifted if place == 0 else None
            study(bank, path.name, shots, arguments.supports, arguments.tasks, shifted)
        for shots in (1, 5):
            for k_eff, method in ((1, "roll_call"), (5, "paddle")):
                what = f"{path.name}, {shots} shots, {k_eff} classes there, {method}"
                print(f"collapsed: {what}: {collapses(bank, arguments.collapses, shots, k_eff, method)}", flush=True)


if __name__ == "__main__":
    main()
