"""A large batch, streamed: CPU time compared with the bare pass over all classes, memory, and what is found.

    python perf/large.py --k 100000 --q 1000000 --d 384        # the full size: about an hour of one core
    python perf/large.py --k 10000 --q 100000 --even           # a minute or two

Features are synthetic: a variance that falls off over the dimensions as 1/j, for class centres and for points around
them; K_eff of the K classes occur, with sizes as 1/rank, or all alike with --even. The model labels the first kind of
batch alone, the second jointly. One process, one thread. The bare pass reads the same blocks, multiplies them with the
class means and takes the nearest; "each alone" does so with the head. Time is the process's CPU time, so a loaded
machine does not change the ratio. Memory is the peak of anonymous pages (`RssAnon`), without mapped files.

With --scratch the data are kept there, and with --json every measurement is saved as soon as it is made. Called again
with both, the script skips what has been measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

from handful.banks import FeatureBank, store
from handful.fitted import FittedModel
from handful.large import LargeSolution, solve
from handful.large.inputs import read_rows
from handful.progress import Progress
from handful.shapes import Float
from measured_by import measured_by

PRESENT = 0.5  # as in handful.estimators
BLOCK = 8192
# Numbers in a block of scores, and the fewest and most queries of a block.
SCORE_NUMBERS, FEWEST_ROWS, MOST_ROWS = 2**23, 16, 4096


def main() -> None:
    """Make the data, run everything that was asked for, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=2_000, help="classes in the catalogue")
    parser.add_argument("--q", type=int, default=20_000, help="queries")
    parser.add_argument("--d", type=int, default=384, help="dimensions")
    parser.add_argument("--k-eff", type=int, default=None, help="classes that occur; by default min(1000, K/10)")
    parser.add_argument("--shots", type=int, default=5, help="examples of each class")
    parser.add_argument("--spread", type=float, default=1.0, help="centres' spread over that around them")
    parser.add_argument("--even", action="store_true", help="classes that occur have equally many queries")
    parser.add_argument("--json", type=Path, default=None, help="write the figures there")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for data and runs, which stay there")
    parser.add_argument("--progress", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.scratch is not None:
        arguments.scratch.mkdir(parents=True, exist_ok=True)
        measure(arguments, arguments.scratch)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the bare passes and the streamed batch on the same banks; return all figures."""
    k_eff = arguments.k_eff or max(2, min(1000, arguments.k // 10))
    data = Synthetic(arguments.k, k_eff, arguments.d, arguments.spread, even=arguments.even)
    catalogue, queries = data.banks(folder, arguments.shots, arguments.q)
    sizes = {"k": arguments.k, "q": arguments.q, "d": arguments.d, "k_eff": k_eff, "spread": arguments.spread}
    sizes |= {"even": arguments.even, "shots": arguments.shots}
    figures = noted(arguments.json, sizes)
    print(f"K = {arguments.k:,}, |Q| = {arguments.q:,}, d = {arguments.d}, K_eff = {k_eff:,}, {arguments.shots} shots")

    if "alone" not in figures:
        start = time.process_time()
        summed = FittedModel.of_bank(catalogue, "raw")
        figures["catalogue_cpu"] = time.process_time() - start
        means = summed.means
        start = time.process_time()
        head = summed.head
        figures["head_cpu"] = time.process_time() - start
        passes = {
            "nearest": (means, -0.5 * np.square(means).sum(-1)),
            "alone": (head.weights, head.offsets),
        }
        for name, (weights, offsets) in passes.items():
            with Memory() as memory:
                start = time.process_time()
                best = best_classes(weights, offsets, summed.origin, queries)
                cpu = time.process_time() - start
            figures[name] = {"cpu": cpu, "peak_mb": memory.peak_mb, **scores(best, queries.labels, arguments.k)}
        del means, head, passes
        del summed
        note(arguments.json, figures)
    bare = figures["nearest"]["cpu"]
    print(f"sum the catalogue: {figures['catalogue_cpu']:.1f} CPU s; fit its head: {figures['head_cpu']:.1f} CPU s")
    show("nearest prototype", figures["nearest"], bare)
    show("each alone", figures["alone"], bare)

    if "streamed" not in figures:
        found, measured = streamed(arguments, folder, catalogue, queries)
        measured |= scores(found.answer().codes[:, 0], queries.labels, arguments.k, found) | data.stray(found)
        measured["ratio"] = measured["cpu"] / bare
        figures["streamed"] = measured
        note(arguments.json, figures)
    show("batch_classifier", figures["streamed"], bare)
    return figures


def noted(file: Path | None, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return what this version measured before at these sizes, or the sizes alone."""
    figures: dict[str, Any] = {} if file is None or not file.exists() else json.loads(file.read_text())
    if figures.get("version") != (now := measured_by())["version"]:
        return now | sizes
    if any(figures.get(name) != value for name, value in sizes.items()):
        raise SystemExit(f"{file} has figures of other sizes than {sizes}; name another file")
    return figures


def note(file: Path | None, figures: dict[str, Any]) -> None:
    """Write the figures so far: the largest runs take an hour, and may be stopped before the end."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=1) + "\n")


def streamed(
    arguments: argparse.Namespace, folder: Path, catalogue: FeatureBank, queries: FeatureBank
) -> tuple[LargeSolution, dict[str, Any]]:
    """Run `handful.large.solve` from its beginning; CPU seconds by stage are those up to a stage's last report."""
    place = folder / "run"
    # What is there is of a run that was cut short: it would be resumed, and only its rest measured.
    shutil.rmtree(place, ignore_errors=True)
    stages: dict[str, float] = {}
    last = start = time.process_time()

    def listen(progress: Progress) -> None:
        nonlocal last
        now = time.process_time()
        stages[progress.stage] = stages.get(progress.stage, 0.0) + now - last
        last = now
        if arguments.progress:
            print(progress, flush=True)

    with Memory() as memory:
        found = solve(catalogue, queries, place, transform="raw", on_progress=listen)
    cpu = time.process_time() - start
    figures = {"cpu": cpu, "peak_mb": memory.peak_mb, "stages": stages, "joint_weight": found.joint_weight}
    return found, figures


def best_classes(
    weights: Float[np.ndarray, "class dim"],
    offsets: Float[np.ndarray, "class"],
    origin: Float[np.ndarray, "dim"],
    queries: FeatureBank,
) -> np.ndarray:
    """Run the bare engine: blocks, one product each, the best of every row."""
    size = max(FEWEST_ROWS, min(MOST_ROWS, SCORE_NUMBERS // len(weights)))
    labels = np.empty(queries.n_rows, np.int64)
    for start in range(0, queries.n_rows, size):
        rows = np.arange(start, min(start + size, queries.n_rows))
        found = read_rows(queries, rows, "raw") - origin
        labels[rows] = (found @ weights.T + offsets).argmax(-1)
    return labels


def scores(labels: np.ndarray, truth: np.ndarray, k: int, found: LargeSolution | None = None) -> dict[str, float]:
    """Accuracy, and how well the classes that occur were found."""
    sizes = np.bincount(truth, minlength=k)
    present = sizes > 0
    called = np.bincount(labels, minlength=k) > 0 if found is None else found.presence >= PRESENT
    return {
        "accuracy": float((labels == truth).mean()),
        "presence_recall": float((called & present).sum() / present.sum()),
        "presence_precision": float((called & present).sum() / max(1, called.sum())),
        # Classes that occur and were not found, and the queries of the largest of them.
        "missed": int((present & ~called).sum()),
        "largest_missed": int(sizes[present & ~called].max(initial=0)),
    }


def show(name: str, figures: dict[str, Any], bare: float) -> None:
    """Print one line, and a second with what only a streamed run has."""
    print(
        f"{name:32s} CPU {figures['cpu']:8.1f} s ({figures['cpu'] / bare:.2f} of bare)"
        f"  peak {figures['peak_mb']:6.0f} MB  accuracy {figures['accuracy']:.4f}"
        f"  presence recall {figures['presence_recall']:.4f} precision {figures['presence_precision']:.4f}"
    )
    if "stages" in figures:
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in figures["stages"].items())
        print(
            f"    CPU s: {stages}; {100 * figures['stray_queries']:.2f} % of the queries in absent classes; "
            f"weight of the joint answer {figures['joint_weight']:.3f}"
        )


class Synthetic:
    """Gaussian classes with an anisotropic spectrum; some of them occur, sizes with a heavy tail or all alike."""

    def __init__(self, k: int, k_eff: int, dim: int, spread: float, *, even: bool = False) -> None:
        self.k, self.dim = k, dim
        self.spectrum = (1 / np.sqrt(np.arange(1, dim + 1))).astype(np.float32)
        rng = np.random.default_rng(0)
        self.centres = rng.standard_normal((k, dim), dtype=np.float32)
        self.centres *= spread * self.spectrum
        self.present = np.sort(rng.permutation(k)[:k_eff])
        self.shares = np.ones(k_eff) if even else rng.permutation(1 / np.arange(1, k_eff + 1))
        self.shares /= self.shares.sum()

    def banks(self, folder: Path, shots: int, n_query: int) -> tuple[FeatureBank, FeatureBank]:
        """Write catalogue and queries, block by block, in half precision."""
        labels = np.repeat(np.arange(self.k), shots)
        rng = np.random.default_rng(1)
        # Every class that occurs has a query at least.
        rest = self.present[rng.choice(len(self.present), max(0, n_query - len(self.present)), p=self.shares)]
        truth = rng.permutation(np.concatenate([self.present, rest])[:n_query])
        return self._write(folder / "catalogue", labels, 2), self._write(folder / "queries", truth, 3)

    def _write(self, path: Path, labels: np.ndarray, seed: int) -> FeatureBank:
        if path.exists():
            return FeatureBank.load(path)
        names = [str(k) for k in range(self.k)]
        blocks = self._blocks(labels, seed)
        store.write(path, blocks, labels, dtype="float16", dim=self.dim, class_names=names, provenance={}, splits={})
        return FeatureBank.load(path)

    def _blocks(self, labels: np.ndarray, seed: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        for start in range(0, len(labels), BLOCK):
            classes = labels[start : start + BLOCK]
            noise = rng.standard_normal((len(classes), self.dim), dtype=np.float32)
            yield (self.centres[classes] + noise * self.spectrum).astype(np.float16)

    def stray(self, found: LargeSolution) -> dict[str, float]:
        """Share of the queries that went to classes that do not occur."""
        absent = np.setdiff1d(np.arange(self.k), self.present)
        return {"stray_queries": float(found.expected_counts[absent].sum() / found.expected_counts.sum())}


class Memory:
    """Peak of anonymous resident pages while it is open, by a thread that looks every 20 ms."""

    def __enter__(self) -> Self:
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.peak_mb = max(self.peak_mb, anonymous_mb())


def anonymous_mb() -> float:
    """Anonymous pages now; where the system does not tell, the highest resident size so far."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
