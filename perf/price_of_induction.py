"""What transduction costs compared with induction: PADDLE against the bare nearest prototype.

    python perf/price_of_induction.py [--bank clinc150=PATH ...] [--out docs/results/price_of_induction.json]

Tasks are row numbers in a bank in memory in single precision, |Q| = 75, five classes in each query. The bare
pass reads the support once, sums it by class, multiplies the queries with the prototypes and takes the largest. It is
written as fast as plain torch allows, with the same read-and-sum as the library (`embedding_bag`), on the same threads,
in the chunk size that suits it best. PADDLE runs through the public `gather` and `solve` to convergence at the
default tolerance, and its predictions are computed. The public code's arithmetic is `straightforward` at 20 iterations,
on points already copied out, eight tasks at a time, denormals flushed; it is compared with 20 of ours.

All measurements alternate within one process, and a figure is the median over the rounds: CPU milliseconds per task on
one thread, wall-clock milliseconds on two.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import handful
from handful import fewshot

DIM, PRESENT, REPEATS, N_QUERY, N_ITER = 512, 5, 3, 75, 20
CENTRE, SCALE = 0.7, 1.4  # nearest prototype is right for about four queries in five at K = 160
BARE_CHUNKS = (4, 16)
PUBLIC_CHUNK = 8
SHAPES = {(20, 5): 600, (160, 5): 300, (160, 20): 300, (227, 10): 280}  # (classes, shots): tasks
BANK_SHOTS, BANK_TASKS = (5, 10), 200
# What we aim at: PADDLE over bare, by (classes, shots).
AIMS = {(20, 5): 3.0, (160, 5): 1.8, (160, 20): 1.3, (227, 10): 1.6}


@dataclass(frozen=True)
class Case:
    """Tasks of one shape from one bank."""

    name: str
    bank: handful.FeatureBank
    shots: int
    n_tasks: int

    @property
    def n_classes(self) -> int:
        """K."""
        return self.bank.n_classes

    def drawn(self) -> handful.fewshot.tasks.Draw:
        """Row numbers of the tasks."""
        query = fewshot.UniformOverPool(k_eff=PRESENT)
        spec = fewshot.TaskSpec(fewshot.ShotsPerClass(self.shots), query, n_query=N_QUERY)
        return fewshot.draw(self.bank.labels, spec, seed=0, indices=range(self.n_tasks))


def synthetic_bank(n_classes: int, shots: int) -> handful.FeatureBank:
    """Gaussian classes whose variance falls off over the dimensions, as that of embeddings does."""
    rng = np.random.default_rng(0)
    spectrum = SCALE * np.arange(1, DIM + 1) ** -0.5
    labels = np.repeat(np.arange(n_classes), shots + N_QUERY)
    centres = CENTRE * spectrum * rng.standard_normal((n_classes, DIM))
    features = centres[labels] + spectrum * rng.standard_normal((len(labels), DIM))
    order = rng.permutation(len(labels))
    names = [str(k) for k in range(n_classes)]
    return handful.FeatureBank.from_arrays(features[order].astype(np.float32), labels[order], names)


def read_bank(path: Path) -> handful.FeatureBank:
    """Read features.npy, labels.npy and classes.json, or a bank of ours, into memory in single precision."""
    if (path / "classes.json").exists():
        names = json.loads((path / "classes.json").read_text())
        features, labels = np.load(path / "features.npy"), np.load(path / "labels.npy")
    else:
        bank = handful.FeatureBank.load(path)
        names, features, labels = bank.class_names, bank.features, bank.labels
    return handful.FeatureBank.from_arrays(np.array(features, dtype=np.float32), labels, [str(n) for n in names])


def bare(features: Tensor, support: Tensor, query: Tensor, n_classes: int, chunk: int) -> Tensor:
    """Nearest prototype and nothing else; support rows class by class, equally many of each."""
    predictions = []
    shots = support.shape[1] // n_classes
    for start in range(0, len(support), chunk):
        rows = support[start : start + chunk]
        bags = torch.arange(0, rows.numel(), shots)
        prototypes = torch.nn.functional.embedding_bag(rows.reshape(-1), features, bags, mode="mean")
        prototypes = prototypes.reshape(len(rows), n_classes, -1)
        half_norms = torch.linalg.vector_norm(prototypes, dim=-1).square_().mul_(0.5)
        points = features.index_select(0, query[start : start + chunk].reshape(-1)).reshape(len(rows), N_QUERY, -1)
        predictions.append(torch.bmm(points, prototypes.mT).sub_(half_norms.unsqueeze(1)).argmax(-1))
    return torch.cat(predictions)


def straightforward(task: fewshot.TaskBatch) -> Tensor:
    """Run the updates as one would first write them, support sums included; return U."""
    one_hot = torch.nn.functional.one_hot(task.support_labels, task.n_classes).to(task.support.dtype)
    prototypes = one_hot.mT @ task.support / one_hot.sum(1).unsqueeze(-1)
    dual = task.query.new_zeros(task.n_tasks, 1, task.n_classes)
    for _ in range(N_ITER):
        squares = task.query.square().sum(-1, keepdim=True) + prototypes.square().sum(-1).unsqueeze(1)
        distances = 0.5 * squares - task.query @ prototypes.mT
        u = (-distances + dual).softmax(-1)
        dual = 1 + torch.log(u.mean(1, keepdim=True))
        sums = one_hot.mT @ task.support + u.mT @ task.query
        prototypes = sums / (one_hot.sum(1) + u.sum(1)).unsqueeze(-1)
    return u


def contenders(case: Case) -> dict[str, Callable[[], Tensor]]:
    """Everything that is timed, each from row numbers to predictions."""
    drawn = case.drawn()
    features = torch.from_numpy(case.bank.stored)
    support, query = (torch.from_numpy(rows.astype(np.int64)) for rows in (drawn.support, drawn.query))

    def library(method: str, **options: Any) -> Callable[[], Tensor]:
        return lambda: fewshot.solve(method, fewshot.gather(case.bank, drawn)[0], **options).predictions

    def plain(chunk: int) -> Callable[[], Tensor]:
        return lambda: bare(features, support, query, case.n_classes, chunk)

    return {
        **{f"bare {chunk}": plain(chunk) for chunk in BARE_CHUNKS},
        "paddle": library("paddle"),
        "paddle 20": library("paddle", max_iter=N_ITER, tol=0.0),
    }


def public_milliseconds(case: Case) -> float:
    """CPU time per task of the public code's arithmetic; a few tasks are enough."""
    task, _ = fewshot.gather(case.bank, case.drawn())
    part = task.select(slice(0, PUBLIC_CHUNK))
    _ = part.support, part.query
    torch.set_flush_denormal(True)
    times = [timed(lambda: straightforward(part), time.process_time) for _ in range(3)]
    torch.set_flush_denormal(False)
    return min(times) / PUBLIC_CHUNK


def timed(function: Callable[[], object], clock: Callable[[], float]) -> float:
    """Milliseconds of one call."""
    start = clock()
    function()
    return 1e3 * (clock() - start)


def measure(case: Case, n_threads: int) -> dict[str, Any]:
    """Milliseconds per task of every method, measured in turns, and the ratios."""
    torch.set_num_threads(n_threads)
    clock = time.process_time if n_threads == 1 else time.perf_counter
    entrants = contenders(case)
    for function in entrants.values():
        function()
    turns = [{name: timed(f, clock) / case.n_tasks for name, f in entrants.items()} for _ in range(REPEATS)]
    times = {name: statistics.median(turn[name] for turn in turns) for name in entrants}
    floor = min(BARE_CHUNKS, key=lambda chunk: times[f"bare {chunk}"])
    base = times[f"bare {floor}"]

    def ratio(name: str) -> float:
        """Median over the turns, each against the bare pass of the same turn."""
        return round(statistics.median(turn[name] / turn[f"bare {floor}"] for turn in turns), 2)

    row: dict[str, Any] = {
        "name": case.name,
        "classes": case.n_classes,
        "shots": case.shots,
        "dim": case.bank.dim,
        "threads": n_threads,
        "bare_ms": round(base, 3),
        "paddle_ms": round(times["paddle"], 3),
        "paddle_ratio": ratio("paddle"),
    }
    if n_threads == 1:
        public = public_milliseconds(case)
        row |= {"public_ms": round(public, 1), "public_ratio": round(public / times["paddle 20"], 1)}
    if case.name == "synthetic":
        row["aim"] = AIMS[case.n_classes, case.shots]
    return row


def main() -> None:
    """Print the table, and write it if a file was given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", action="append", default=[], metavar="NAME=PATH", help="a bank to measure as well")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    cases = [Case("synthetic", synthetic_bank(k, s), s, n) for (k, s), n in SHAPES.items()]
    for name, _, path in (entry.partition("=") for entry in arguments.bank):
        if not Path(path).exists():
            print(f"{name}: no bank at {path}, left out")
            continue
        bank = read_bank(Path(path))
        cases += [Case(name, bank, shots, BANK_TASKS) for shots in BANK_SHOTS]
    columns = ["classes", "shots", "threads", "bare_ms", "paddle_ms", "paddle_ratio", "aim", "public_ratio"]
    print(" " * 12 + "".join(f"{column.removesuffix('_ratio'):>14}" for column in columns))
    rows = []
    for n_threads in arguments.threads:
        for case in cases:
            row = measure(case, n_threads)
            rows.append(row)
            print(f"{row['name']:12}" + "".join(f"{row.get(column, ''):>14}" for column in columns), flush=True)
            if arguments.out:  # after every row: a run that is stopped keeps what it measured
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                arguments.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
