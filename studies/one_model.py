"""The model of `studies/engine` against the default, on the same batches and with the same head.

    python studies/one_model.py DATA --group tuning [--tasks 20]

Prints one row per cell: accuracy of each item alone, of the default (`roll_call`) and of the model, the difference with
its 95 % interval over batches; for default and model the expected calibration error in points, the log loss, and the
squared error of presence, summed over the classes of a batch. Both label as if every item had a class. Cells: 1 and 5
shots with 5, 20 and all classes present, and real requests (`harm.py` describes the data). One thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.model import Classes, label
from handful.reports.summary import Estimate
from harm_data import GROUPS, Group, bank, drawn, orders, plain, rng_of, shared_out, taken
from side_by_side import BINS, LEAST_PROBABILITY, OURS, Batch, Catalogue, Outcome, whole_numbers

SHOTS, PRESENT, N_QUERY, CATALOGUES = (1, 5), (5, 20, None), 75, 4
MODEL = "one_model"

Cells = Iterator[tuple[str, list[tuple[Catalogue, list[Batch]]]]]


def cells(data: Path, group: Group, tasks: int) -> Cells:
    """Name each cell, with its catalogues and their batches."""
    for name in group.banks:
        folder = data / name
        n_classes = int(bank(folder)[1].max()) + 1
        for shots in SHOTS:
            for present in PRESENT:
                pairs = []
                for number, n in enumerate(shared_out(tasks, CATALOGUES)):
                    left = [order[shots:] for order in orders(folder, number)]
                    rng = rng_of("one_model", name, shots, present, number)
                    batches = drawn(folder, left, present or n_classes, n, rng, N_QUERY)
                    pairs.append((plain(folder, shots, number), batches))
                yield f"{name}, {shots} shots, {present or 'all'} present", pairs
    folder = data / group.requests
    features, labels = bank(folder)
    written = whole_numbers(folder / "original_split.npy") == 1
    catalogue = Catalogue(features[written], labels[written])
    asked = np.flatnonzero(~written & (catalogue.codes_of(labels) >= 0))
    order = rng_of("one_model", group.requests).permutation(asked)
    parts = np.split(order, range(N_QUERY, len(order), N_QUERY))
    yield f"{group.requests}, batches of {N_QUERY}", [(catalogue, [taken(folder, part) for part in parts])]


def with_model(catalogue: Catalogue, batches: Sequence[Batch]) -> list[Outcome]:
    """Label batches by all rules and by the model."""
    head = catalogue.head
    weights, offsets, means, mass = (
        part.double().numpy() for part in (head.weights, head.offsets, head.means, head.mass)
    )
    classes = Classes(weights, offsets, means, mass, head.spread)
    outcomes = catalogue.outcomes(batches)
    for batch, outcome in zip(batches, outcomes, strict=True):
        found = label((batch.points - catalogue.origin.numpy()).astype(np.float64), classes)
        truth, items, said = catalogue.codes_of(batch.truth), np.arange(len(batch.truth)), found.probabilities
        outcome.right[MODEL] = said.argmax(1) == truth
        outcome.said[MODEL] = said.max(1)
        outcome.loss[MODEL] = -np.log(said[items, truth].clip(min=LEAST_PROBABILITY))
        outcome.said["presence"] = found.presence
    return outcomes


def row(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Figures of a cell."""
    ahead = Estimate.of(np.array([one.accuracy(MODEL) - one.accuracy(OURS) for one in outcomes]))
    figures: dict[str, Any] = {"ahead": f"{ahead.mean:+.1f} ± {ahead.half_width:.1f}"}
    for rule in ("head", OURS, MODEL):
        figures[rule] = round(float(np.mean([one.accuracy(rule) for one in outcomes])), 1)
    for rule in (OURS, MODEL):
        said, right = (np.concatenate([getattr(one, part)[rule] for one in outcomes]) for part in ("said", "right"))
        presence = [one.presence if rule == OURS else one.said["presence"] for one in outcomes]
        squares = [float(((p - one.there) ** 2).sum()) for p, one in zip(presence, outcomes, strict=True)]
        figures[f"{rule}: ECE, log loss, presence"] = (
            round(_calibration_error(said, right), 1),
            round(float(np.concatenate([one.loss[rule] for one in outcomes]).mean()), 3),
            round(float(np.mean(squares)), 2),
        )
    return figures


def _calibration_error(said: Any, right: Any) -> float:
    """Mean distance of what is said from what is right over equal bins, in points."""
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    gaps = [abs(float((said - right)[place == one].sum())) for one in range(BINS)]
    return 100 * sum(gaps) / len(said)


def main() -> None:
    """Measure and print every cell of a group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds the data")
    parser.add_argument("--group", choices=list(GROUPS), required=True)
    parser.add_argument("--tasks", type=int, default=20, help="batches per cell")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name, pairs in cells(given.data, GROUPS[given.group], given.tasks):
        outcomes = [one for catalogue, batches in pairs for one in with_model(catalogue, batches)]
        print(name, row(outcomes), flush=True)


if __name__ == "__main__":
    main()
