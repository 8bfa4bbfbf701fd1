"""A large batch, streamed: CPU time compared with the bare pass over all classes, memory, and what is found.

    python perf/large.py --k 100000 --q 1000000 --d 384        # the full size: about an hour of one core
    python perf/large.py --k 10000 --q 100000 --even           # a minute or two

Features are synthetic: a variance that falls off over the dimensions as 1/j, for class centres and for points around
them; K_eff of the K classes occur, with sizes as 1/rank, or all alike with --even. Roll call labels the first kind of
batch alone, the second jointly. One process, one thread. The bare pass reads the same blocks, multiplies them with the
class means and takes the nearest; "each alone" does so with the head. Time is the process's CPU time, so a loaded
machine does not change the ratio. Memory is the peak of anonymous pages (`RssAnon`), without mapped files.

With --scratch the data are kept there, and with --json every measurement is saved as soon as it is made. Called again
with both, the script skips what has been measured, and compares with the saved labels of the exact run.
"""

from __future__ import annotations

import argparse
import json
import math
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
from torch import Tensor

from handful.banks import FeatureBank, store
from handful.catalogue import Catalogue
from handful.engine.head import LinearHead
from handful.large import LargeSolution, Progress, solve
from handful.large.candidates import Contenders
from handful.large.inputs import read_rows
from handful.shapes import Float

PRESENT = 0.5  # as in handful.estimators
BLOCK = 8192
EXACT_LABELS = "exact_labels.npy"


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
    parser.add_argument("--list-length", type=int, default=None)
    parser.add_argument("--faiss", choices=["faiss_ivf", "faiss_hnsw"], action="append", default=[])
    parser.add_argument("--paddle", action="store_true", help="published PADDLE too, at the scale of a head of means")
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
    """Run the bare pass and the streamed methods on the same banks; return all figures."""
    k_eff = arguments.k_eff or max(2, min(1000, arguments.k // 10))
    data = Synthetic(arguments.k, k_eff, arguments.d, arguments.spread, even=arguments.even)
    catalogue, queries = data.banks(folder, arguments.shots, arguments.q)
    sizes = {"k": arguments.k, "q": arguments.q, "d": arguments.d, "k_eff": k_eff, "spread": arguments.spread}
    sizes["even"] = arguments.even
    figures = noted(arguments.json, sizes)
    print(f"K = {arguments.k:,}, |Q| = {arguments.q:,}, d = {arguments.d}, K_eff = {k_eff:,}, {arguments.shots} shots")

    if "alone" not in figures:
        start = time.process_time()
        summed = Catalogue.of_bank(catalogue, "raw")
        figures["catalogue_cpu"] = time.process_time() - start
        figures["scale"] = scale_of_means(summed)
        passes = {"nearest": Contenders.of_prototypes(summed.means)}
        start = time.process_time()
        head = summed.head
        figures["head_cpu"] = time.process_time() - start
        passes["alone"] = Contenders.of(torch.from_numpy(head.weights), torch.from_numpy(head.offsets))
        del head
        for name in list(passes):
            contenders = passes.pop(name)
            with Memory() as memory:
                start = time.process_time()
                best = best_classes(contenders, summed.origin, queries)
                cpu = time.process_time() - start
            figures[name] = {"cpu": cpu, "peak_mb": memory.peak_mb, **scores(best, queries.labels, arguments.k)}
        del summed
        note(arguments.json, figures)
    bare = figures["nearest"]["cpu"]
    print(f"sum the catalogue: {figures['catalogue_cpu']:.1f} CPU s; fit its head: {figures['head_cpu']:.1f} CPU s")
    show("nearest prototype", figures["nearest"], bare)
    show("each alone", figures["alone"], bare)

    for shortlist in ("exact", *arguments.faiss):
        if shortlist not in figures:
            found, measured = streamed(arguments, folder, catalogue, queries, "roll_call", shortlist)
            labels = found.labels()
            measured |= scores(labels, queries.labels, arguments.k, found) | data.stray(found)
            measured["ratio"] = measured["cpu"] / bare
            if shortlist == "exact":
                np.save(folder / EXACT_LABELS, labels)
            else:
                measured["equal_labels"] = float((labels == np.load(folder / EXACT_LABELS)).mean())
                measured["of_exact_cpu"] = measured["cpu"] / figures["exact"]["cpu"]
                # Sums of the catalogue come before the index, its head after it.
                measured["index_cpu"] = measured["stages"]["index"] - figures["catalogue_cpu"]
            figures[shortlist] = measured
            note(arguments.json, figures)
        show(f"roll_call, {shortlist}", figures[shortlist], bare)
    if arguments.paddle:
        # Published PADDLE knows no scale: give it features multiplied by one.
        scale = figures["scale"]
        banks = {"catalogue": catalogue, "queries": queries}
        scaled = [data.scaled(folder / f"scaled-{name}", bank, scale) for name, bank in banks.items()]
        found, figures["paddle"] = streamed(arguments, folder, scaled[0], scaled[1], "paddle", "exact")
        figures["paddle"] |= scores(found.labels(), queries.labels, arguments.k, found)
        figures["paddle"] |= data.stray(found) | data.drift(found, scale)
        figures["paddle"]["ratio"] = figures["paddle"]["cpu"] / bare
        show("paddle", figures["paddle"], bare)
        note(arguments.json, figures)
    return figures


def noted(file: Path | None, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured before at these sizes, or the sizes alone."""
    if file is None or not file.exists():
        return dict(sizes)
    figures: dict[str, Any] = json.loads(file.read_text())
    if any(figures.get(name) != value for name, value in sizes.items()):
        raise SystemExit(f"{file} has figures of other sizes than {sizes}; name another file")
    return figures


def note(file: Path | None, figures: dict[str, Any]) -> None:
    """Write the figures so far: the largest runs take an hour, and may be stopped before the end."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=1) + "\n")


def streamed(
    arguments: argparse.Namespace,
    folder: Path,
    catalogue: FeatureBank,
    queries: FeatureBank,
    method: str,
    shortlist: str,
) -> tuple[LargeSolution, dict[str, Any]]:
    """Run `handful.large.solve` from its beginning; CPU seconds by stage are those up to a stage's last report."""
    place = folder / f"{method}-{shortlist}"
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
        found = solve(
            catalogue,
            queries,
            place,
            method=method,
            transform="raw",
            shortlist=shortlist,
            list_length=arguments.list_length,
            index_folder=folder,
            on_progress=listen,
        )
    cpu = time.process_time() - start
    figures = {
        "cpu": cpu,
        "peak_mb": memory.peak_mb,
        "stages": stages,
        "n_iter": found.n_iter,
        "converged": found.converged,
        "living": len(found.living),
        "readmitted": found.readmitted,
        "dropped_mass": found.dropped_mass,
        "largest_dropped_mass": found.largest_dropped_mass,
        "joint_weight": found.joint_weight,
    }
    return found, figures


def scale_of_means(catalogue: Catalogue) -> float:
    """√κ of a head of class means, whose scores are `-½κ‖z - μ‖²` up to constants."""
    examples = catalogue.examples
    codes = torch.from_numpy(np.searchsorted(catalogue.classes, examples.labels))
    head = LinearHead.of_means(
        catalogue.means.numpy(), catalogue.shots.numpy(), (examples.points - catalogue.origin).numpy(), codes.numpy()
    )
    return math.sqrt(float(np.linalg.norm(head.weights[0])) / float(catalogue.means[0].norm()))


def best_classes(contenders: Contenders, origin: Float[Tensor, "dim"], queries: FeatureBank) -> np.ndarray:
    """Run the bare engine: blocks, one product each, the best of every row."""
    size = contenders.rows_at_once()
    labels = torch.empty(queries.n_rows, dtype=torch.int64)
    for start in range(0, queries.n_rows, size):
        points = read_rows(queries, np.arange(start, min(start + size, queries.n_rows)), "raw").sub_(origin)
        labels[start : start + size] = contenders.scores(points).max(-1).indices
    return labels.numpy()


def scores(labels: np.ndarray, truth: np.ndarray, k: int, found: LargeSolution | None = None) -> dict[str, float]:
    """Accuracy, and how well the classes that occur were found."""
    sizes = np.bincount(truth, minlength=k)
    present = sizes > 0
    called = np.bincount(labels, minlength=k) > 0 if found is None else found.presence.numpy() >= PRESENT
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
            f"    {figures['n_iter']} iterations, converged {figures['converged']}, {figures['living']} living, "
            f"{figures['readmitted']} readmitted, dropped mass {figures['dropped_mass']:.2e} "
            f"(largest {figures['largest_dropped_mass']:.2e}); CPU s: {stages}"
        )
        weight = figures["joint_weight"]
        print(
            f"    {100 * figures['stray_queries']:.2f} % of the queries with classes that do not occur"
            + ("" if weight is None else f"; weight of the joint answer {weight:.3f}")
        )
    if "drift_median" in figures:
        print(
            f"    distance to the true centre, over that of the support mean: median {figures['drift_median']:.3f}, "
            f"of classes with 5 queries or fewer {figures['drift_small']:.3f}, 99th percentile "
            f"{figures['drift_99']:.3f}"
        )
    if "equal_labels" in figures:
        print(
            f"    {100 * figures['equal_labels']:.3f} % of the labels of the exact run, "
            f"in {figures['of_exact_cpu']:.2f} of its CPU time, of which {figures['index_cpu']:.1f} s for the index"
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
        self.sizes = np.bincount(truth, minlength=self.k)
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

    def scaled(self, path: Path, bank: FeatureBank, factor: float) -> FeatureBank:
        """Return a bank with its features multiplied."""
        blocks = (block.astype(np.float32) * factor for block in bank.blocks())
        names = bank.class_names
        store.write(
            path, blocks, bank.labels, dtype="float32", dim=bank.dim, class_names=names, provenance={}, splits={}
        )
        return FeatureBank.load(path)

    def drift(self, found: LargeSolution, factor: float) -> dict[str, float]:
        """Distance of prototypes of classes that occur to their true centre, over that of their support means."""
        living = found.living.numpy()
        there = np.isin(living, self.present)
        centres = factor * self.centres[living[there]]
        after, before = (
            np.linalg.norm(values.numpy()[there] - centres, axis=-1)
            for values in (found.prototypes, found.support_means)
        )
        ratio, small = after / before, self.sizes[living[there]] <= 5
        return {
            "drift_median": float(np.median(ratio)),
            "drift_small": float(np.median(ratio[small])) if small.any() else math.nan,
            "drift_99": float(np.quantile(ratio, 0.99)),
        }

    def stray(self, found: LargeSolution) -> dict[str, float]:
        """Share of the queries that went to classes that do not occur."""
        absent = np.setdiff1d(np.arange(self.k), self.present)
        return {"stray_queries": float(found.proportions.numpy()[absent].sum())}


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
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
