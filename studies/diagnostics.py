"""Numbers behind the thresholds of `handful.estimators.diagnostics`: values for ordinary and for broken batches.

    python studies/diagnostics.py clinc150-minilm cub200-efflite0 omniglot659-conv4 --tasks 30

For every bank, l2 features, up to 40 queries. **collapsed**: answers of one class, calibrated PADDLE's to batches of
one class and published PADDLE's to batches of five; how many the rule finds, and how many of these were wrong.
**unlike_support**: the ratio for ordinary batches, for items whose classes were taken out of the catalogue, and for
vectors with their dimensions in another order. **calibration_border**: c² times the mean margin, with all classes, 20
and 5, and with labels given to other rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import handful
from handful.catalogue.usual import expected_half_distances, mean_margin
from handful.estimators.diagnostics import COLLAPSED_SHARE, collapsed
from handful.inference.calibration import squared_scale
from handful.inference.frame import Frame
from handful.numerics.distances import half_squared_distances

SEED = 7
MOST_QUERIES = 40


def tasks(
    bank: handful.FeatureBank, n_tasks: int, shots: int, k_eff: int, n_classes: int | None = None
) -> Iterator[tuple[handful.TaskBatch, Tensor]]:
    """Single tasks with unit vectors, and their query labels."""
    spare = int(bank.class_sizes.min()) - shots
    n_query = min(MOST_QUERIES, spare * k_eff)
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), handful.UniformOverPool(k_eff), n_query, n_classes)
    for index in range(n_tasks):
        task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=SEED, indices=[index]))
        yield handful.transform("l2", task), truth[0]


def nearest(task: handful.TaskBatch) -> Tensor:
    """Half squared distances of the query to the prototypes."""
    frame = Frame(task)
    return half_squared_distances(frame.query, frame.support.mean())[0]


def without(task: handful.TaskBatch, classes: Tensor) -> handful.TaskBatch:
    """Take these classes out of the catalogue."""
    kept = ~torch.isin(task.support_labels[0], classes)
    left, labels = np.unique(task.support_labels[0][kept].numpy(), return_inverse=True)
    return handful.TaskBatch(task.support[:, kept], labels[None], task.query, len(left))


def quantiles(values: list[float]) -> str:
    """Least, median and greatest."""
    if not values:
        return "none"
    found = torch.tensor(values)
    return f"{found.min():.3g} … {found.median():.3g} … {found.max():.3g} (of {len(values)})"


def collapses(bank: handful.FeatureBank, n_tasks: int, shots: int, k_eff: int, method: str) -> str:
    """How many answers of one class there are, how many of them are found, and how many of those are wrong."""
    answers = found = wrong = 0
    for task, truth in tasks(bank, n_tasks, shots, k_eff):
        labels = handful.solve(method, task).predictions[0]
        if labels.bincount().max() < COLLAPSED_SHARE * len(labels):
            continue
        answers += 1
        if collapsed(labels, partial(torch.argmin, nearest(task), -1), range(task.n_classes)) is not None:
            found += 1
            wrong += bool((labels == truth).double().mean() < 0.5)
    return f"{answers} answers of one class, {found} found, {wrong} of these wrong"


def main() -> None:
    """Print the numbers, bank by bank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path)
    parser.add_argument("--tasks", type=int, default=40)
    arguments = parser.parse_args()
    for path in arguments.banks:
        bank, n = handful.read_bank(path), arguments.tasks
        for shots in (1, 5):
            for k_eff, method in ((1, "calibrated_paddle"), (5, "paddle")):
                what = f"{path.name}, {shots} shots, {k_eff} classes there, {method}"
                print(f"collapsed: {what}: {collapses(bank, n, shots, k_eff, method)}", flush=True)
        for shots in (2, 5):
            for k_eff in (1, 5, 20):
                ratios: dict[str, list[float]] = {"ordinary": [], "classes missing": [], "dimensions shuffled": []}
                for task, truth in tasks(bank, n, shots, k_eff):
                    usual = float(expected_half_distances(Frame(task)).median())
                    order = torch.randperm(task.dim, generator=torch.Generator().manual_seed(SEED))
                    kinds = (task, without(task, truth), task.with_features(task.support, task.query[..., order]))
                    for name, one in zip(ratios, kinds, strict=True):
                        ratios[name].append(float(nearest(one).amin(-1).median()) / usual)
                for name, values in ratios.items():
                    what = f"{path.name}, {shots} shots, {k_eff} classes there, {name}"
                    print(f"unlike_support: {what}: {quantiles(values)}", flush=True)
            for n_classes in (None, 20, 5):
                nats: dict[str, list[float]] = {"ordinary": [], "labels of other rows": []}
                for task, _ in tasks(bank, n, shots, 5, n_classes):
                    order = torch.randperm(task.support.shape[1], generator=torch.Generator().manual_seed(SEED))
                    mixed = handful.TaskBatch(task.support, task.support_labels[:, order], task.query, task.n_classes)
                    for name, one in zip(nats, (task, mixed), strict=True):
                        nats[name].append(float(squared_scale(Frame(one))[0]) * mean_margin(Frame(one)))
                for name, values in nats.items():
                    what = f"{path.name}, {shots} shots, catalogue of {n_classes or 'all'} classes, {name}"
                    print(f"calibration_border: {what}: {quantiles(values)}", flush=True)


if __name__ == "__main__":
    main()
