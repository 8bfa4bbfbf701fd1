"""What FAISS finds in a large catalogue, compared with exact lists: `python perf/large_shortlists.py --scratch FOLDER`.

For each kind of index and effort: CPU seconds for a million queries, estimated from a sample; how often the true class
of a query is in its list of 32, how often the nearest class is, and the share of the exact list that is found. Data are
those of `perf/large.py`, read from its scratch folder or made; one thread. Writes perf/results/large/shortlists.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders, FaissIndex, exact_lists
from handful.large.inputs import read_rows
from handful.large.solve import LIST_LENGTH
from handful.machine.extras import import_extra
from handful.machine.folders import LocalFolder
from large import Synthetic

FILE = Path(__file__).resolve().parent / "results" / "large" / "shortlists.json"
EFFORTS = {"faiss_ivf": (16, 32, 64, 128), "faiss_hnsw": (64, 128, 256)}


def main() -> None:
    """Make or find the data, build every index, ask it with every effort."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=100_000, help="classes in the catalogue")
    parser.add_argument("--q", type=int, default=1_000_000, help="queries of the data; a sample of them is asked for")
    parser.add_argument("--asked", type=int, default=1024, help="size of that sample")
    parser.add_argument("--scratch", type=Path, default=None, help="folder where perf/large.py left its data")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.scratch is not None:
        measure(arguments, arguments.scratch)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Print a line for each index and effort, and write all."""
    faiss = import_extra("faiss", "faiss")
    data = Synthetic(arguments.k, min(1000, arguments.k // 10), 384, 1.0)
    catalogue, queries = data.banks(folder, 5, arguments.q)
    summed = Catalogue.of_bank(catalogue, "raw")
    points = read_rows(queries, np.arange(arguments.asked), "raw").sub_(summed.origin)
    truth = queries.labels[: arguments.asked]
    contenders = Contenders.of_prototypes(summed.means)
    size = contenders.rows_at_once()

    def exactly() -> np.ndarray:
        parts = [exact_lists(points[i : i + size], contenders, LIST_LENGTH) for i in range(0, len(points), size)]
        return torch.cat([part.classes for part in parts]).numpy()

    rows = [asked("exact", 0, 0.0, exactly, truth, exact := exactly())]
    with tempfile.TemporaryDirectory() as place:
        for kind, efforts in EFFORTS.items():
            start = time.process_time()
            made = FaissIndex(LocalFolder(Path(place)), kind, kind)
            made.build(summed.means)
            build = time.process_time() - start
            index = faiss.read_index(str(Path(place) / kind))
            rough = faiss.downcast_index(faiss.downcast_index(index.base_index).index)
            for effort in efforts:
                if kind == "faiss_ivf":
                    rough.nprobe = effort
                else:
                    rough.hnsw.efSearch = effort
                search = lambda: index.search(points.numpy(), LIST_LENGTH)[1]  # noqa: E731, B023
                rows.append(asked(kind, effort, build, search, truth, exact))
    FILE.write_text(json.dumps({"k": arguments.k, "asked": arguments.asked, "rows": rows}, indent=1) + "\n")


def asked(
    kind: str, effort: int, build: float, search: Callable[[], np.ndarray], truth: np.ndarray, exact: np.ndarray
) -> dict[str, Any]:
    """Ask once, print and return what came."""
    start = time.process_time()
    found = search()
    seconds = (time.process_time() - start) / len(truth) * 1e6
    row = {
        "shortlist": kind,
        "effort": effort,
        "build_cpu": build,
        "cpu_per_million": seconds,
        "true_class": float((found == truth[:, None]).any(-1).mean()),
        "nearest_class": float((found == exact[:, :1]).any(-1).mean()),
        "of_exact_list": float(np.mean([np.isin(of, own).mean() for of, own in zip(exact, found, strict=True)])),
    }
    print(
        f"| {kind} | {effort or ''} | {build:.0f} | {seconds:.0f} | {row['true_class']:.3f} "
        f"| {row['nearest_class']:.3f} | {row['of_exact_list']:.3f} |",
        flush=True,
    )
    return row


if __name__ == "__main__":
    main()
