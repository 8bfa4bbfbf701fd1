"""What runs over many batches cost: `python perf/run.py [CASE ...] --folder FOLDER`; all cases by default.

Gaussian rows about class centres, 1,000 classes with five examples, d = 128, five classes in a group. The rows are
written to a folder and used again if they are there. Cases:

- `folders`, `scattered`: a million rows in groups of a hundred, in ten Hive folders and in random order in ten files;
  `run` with one process, beside a bare pass: read, multiply once with the class means, take the largest, write;
- `ray`: the same folders by `run` on two cores of Ray, and by the recipe for Ray Data, beside a bare pass of Ray Data;
- `duckdb`: the same rows by the recipe for DuckDB, beside a bare pass of DuckDB in the same order;
- `small`: groups of one and of three by `label_table`, beside a product and a softmax;
- `classes`: a group of a hundred of 10⁴, 10⁵ and 10⁶ classes;
- `giant`: one group of a million among 20,000 small ones;
- `rows`: ten million rows in a hundred folders, two processes.

CPU seconds are those of a process and its children, after its imports; of Ray, of all its processes after it began.
Memory is the largest resident set of one process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from handful.fitted import FittedModel, load_model, save_model
from handful.fitted.fitted import KEPT_NUMBERS
from handful.model.knowledge import Knowledge
from handful.scale import label_table, run
from handful.workers import here, on_ray
from handful.workers.cluster import connected
from measured_by import measured_by

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "perf" / "results" / "run"
N_CLASSES, DIM, SHOTS, PRESENT = 1_000, 128, 5, 5
ROWS, GROUP, FILES = 1_000_000, 100, 10
BLOCK = 8_192
REPEATS = 5
# A group has these classes, drawn by a hash of its number.
MIXING, MIXING_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(33)
KEYS = ("site", "day")
# Of batches of many classes: how far items are from the centres, so that some labels are wrong, and how many batches.
NOISE, BATCHES = 2.0, 20


def model_at(folder: Path, n_classes: int = N_CLASSES) -> Path:
    """Write a model unless it is there."""
    place = folder / f"{n_classes}.model"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Many classes have so many examples that no head is trained, which would take hours.
        shots = SHOTS if n_classes == N_CLASSES else max(SHOTS, KEPT_NUMBERS // (n_classes * DIM) + 1)
        rng = np.random.default_rng(1)
        of_classes = np.array_split(np.arange(n_classes), -(-n_classes // BLOCK))
        codes = [some.repeat(shots) for some in of_classes]
        means = centres(n_classes)
        examples = (means[some] + rng.standard_normal((len(some), DIM), dtype=np.float32) for some in codes)
        fitted = FittedModel.streamed(examples, codes)
        _ = fitted.head  # made once, and kept in the file
        save_model(fitted, place)
    return place


def centres(n_classes: int = N_CLASSES) -> Any:
    """Centres of the classes."""
    return np.random.default_rng(0).standard_normal((n_classes, DIM), dtype=np.float32)


def table_of(rng: Any, groups: Any, n_classes: int = N_CLASSES, first: int = 0, noise: float = 1.0) -> Any:
    """Draw a row for each number of a group; a group has the same classes whatever its rows."""
    seeds = (groups * PRESENT + rng.integers(0, PRESENT, len(groups))).astype(np.uint64)
    truth = ((seeds * MIXING) >> MIXING_SHIFT).astype(np.int64) % n_classes
    around = rng.standard_normal((len(groups), DIM), dtype=np.float32)
    vectors = centres(n_classes)[truth] + np.float32(noise) * around
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    return pa.table({"id": np.arange(first, first + len(groups)), "site": groups, "truth": truth, "vector": lists})


def rows_at(folder: Path, layout: str, n_rows: int = ROWS, n_files: int = FILES, size: int = GROUP) -> Path:
    """Write the rows, in Hive folders of complete groups or scattered over files, unless they are there."""
    place = folder / f"{layout}-{n_rows}"
    if place.exists():
        return place
    rng = np.random.default_rng(2)
    groups = np.arange(n_rows) // size
    if layout == "scattered":
        groups = rng.permutation(groups)
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    for number, part in enumerate(np.array_split(groups, n_files)):
        within = unfinished / (f"day={number:03}" if layout == "folders" else "")
        within.mkdir(parents=True, exist_ok=True)
        writer = None
        for at in range(0, len(part), 10 * BLOCK):
            table = table_of(rng, part[at : at + 10 * BLOCK], first=number * len(part) + at)
            if layout == "scattered":
                table = table.append_column("day", pa.array(table["site"].to_numpy() * n_files * size // n_rows))
            writer = writer or pq.ParquetWriter(within / f"{number:03}.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
    unfinished.rename(place)
    return place


def measured(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Call a function in a process of its own; return its time and memory, and what it returns beside them."""
    context = multiprocessing.get_context("spawn")
    results, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_timed, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    found = results.recv()
    process.join()
    return dict(found)


def _timed(results: Any, function: Callable[..., Any], arguments: Any) -> None:
    before = cpu()
    begun = time.perf_counter()
    beside = function(*arguments) or {}
    seconds = time.perf_counter() - begun
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    results.send({"cpu_s": cpu() - before, "wall_s": seconds, "peak_gb": peak * 1024 / 1e9, **beside})


def cpu() -> float:
    """CPU seconds of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cpu_of_tree() -> float:
    """CPU seconds of this process and of all below it, also of those that ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    parent, used = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        parent[int(place.parent.name)] = int(fields[1])
        used[int(place.parent.name)] = sum(map(int, fields[11:15])) / ticks

    def is_below(pid: int) -> bool:
        while pid in parent and pid != os.getpid():
            pid = parent[pid]
        return pid == os.getpid()

    return sum(seconds for pid, seconds in used.items() if is_below(pid))


class Bare:
    """The bare pass: multiply once with the class means, and take the largest."""

    def __init__(self, model: Path) -> None:
        fitted = load_model(model)
        self.fitted: FittedModel = fitted
        self.weights = np.ascontiguousarray(fitted.means.T.astype(np.float32))
        self.offsets = (-0.5 * (fitted.means**2).sum(1)).astype(np.float32)
        self.names = pa.array(fitted.classes.tolist())

    def __call__(self, table: Any) -> Any:
        """Label a table."""
        column = table["vector"].combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        vectors = column.flatten().to_numpy().reshape(-1, DIM)
        codes = np.empty(len(vectors), np.int64)
        for at in range(0, len(vectors), BLOCK):
            points = self.fitted.points(vectors[at : at + BLOCK])
            codes[at : at + BLOCK] = (points @ self.weights + self.offsets).argmax(1)
        return table.drop_columns(["vector"]).append_column("label", self.names.take(pa.array(codes)))


@cache
def bare_of(model: Path) -> Bare:
    """Open the model once in a process."""
    return Bare(model)


def bare_table(table: Any, model: Path) -> Any:
    """Label a table of Ray Data."""
    return bare_of(model)(table)


def bare(model: Path, data: Path, out: Path) -> None:
    """Run the bare pass from file to file."""
    label = Bare(model)
    for file in sorted(data.rglob("*.parquet")):
        place = out / file.relative_to(data)
        place.parent.mkdir(parents=True, exist_ok=True)
        writer = None
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(BLOCK, use_threads=False):
                table = label(pa.Table.from_batches([batch]))
                writer = writer or pq.ParquetWriter(place, table.schema)
                writer.write_table(table)
        if writer is not None:
            writer.close()


def ours(model: Path, data: Path, out: Path, processes: int = 1, keys: tuple[str, ...] = KEYS) -> Any:
    """Run `run`."""
    report = run(data, model, out, group_by=keys, workers=here(processes))
    items = pq.ParquetDataset(report.items).read(["label", "truth"])
    return {"rows": report.rows, "accuracy": pc.mean(pc.equal(items["label"], items["truth"])).as_py()}


def fresh(folder: Path) -> Path:
    """Return a place that does not exist."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    return folder / "out"


def beside_bare(folder: Path, layout: str) -> dict[str, Any]:
    """Measure `run` between two bare passes: what else the machine does makes CPU seconds longer."""
    model, data = model_at(folder), rows_at(folder, layout)
    found = {"bare": measured(bare, model, data, fresh(folder))}
    found["run"] = measured(ours, model, data, fresh(folder))
    found["bare_after"] = measured(bare, model, data, fresh(folder))
    passes = (found["bare"]["cpu_s"] + found["bare_after"]["cpu_s"]) / 2
    return found | {"ratio": found["run"]["cpu_s"] / passes}


def folders(folder: Path) -> dict[str, Any]:
    """Label groups in Hive folders."""
    return beside_bare(folder, "folders")


def scattered(folder: Path) -> dict[str, Any]:
    """Label groups all over the files."""
    return beside_bare(folder, "scattered")


def ray(folder: Path) -> dict[str, Any]:
    """Measure `run` on Ray, and the recipe for Ray Data, beside a bare pass of Ray Data."""
    model, data = model_at(folder), rows_at(folder, "folders")
    found = {name: measured(_on_ray, name, model, data, fresh(folder)) for name in ("bare", "recipe", "run")}
    ratios = {
        "ratio": found["run"]["on_ray_cpu_s"] / found["bare"]["on_ray_cpu_s"],
        "recipe_ratio": found["recipe"]["on_ray_cpu_s"] / found["run"]["on_ray_cpu_s"],
    }
    return found | ratios


def _on_ray(what: str, model: Path, data: Path, out: Path) -> Any:
    # Ray's workers run as this process does, whatever else the machine does.
    os.environ |= {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_worker_niceness": "0"}
    places = [str(ROOT / "examples"), str(ROOT / "perf")]
    sys.path[:0] = places
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")])  # for workers
    of_this = importlib.import_module("run")  # workers import it under this name
    with connected():
        list(on_ray()(of_this.model_at, [(model.parent,)]))  # so that a worker has begun
        before = cpu_of_tree()
        if what == "run":
            run(data, model, out, group_by=KEYS, workers=on_ray())
        elif what == "recipe":
            importlib.import_module("ray_groups").main(str(data), str(model), str(out))
        else:
            import ray.data as ray_data

            rows = ray_data.read_parquet(str(data))
            labelled = rows.map_batches(
                of_this.bare_table, batch_format="pyarrow", batch_size=BLOCK, fn_kwargs={"model": model}
            )
            labelled.write_parquet(str(out))
        return {"on_ray_cpu_s": cpu_of_tree() - before}


def duckdb(folder: Path) -> dict[str, Any]:
    """Measure the recipe for DuckDB, beside a bare pass of DuckDB in the same order."""
    model, data = model_at(folder), rows_at(folder, "scattered")
    found = {name: measured(_in_duckdb, name, model, data, fresh(folder)) for name in ("bare", "recipe")}
    return found | {"ratio": found["recipe"]["cpu_s"] / found["bare"]["cpu_s"]}


def _in_duckdb(what: str, model: Path, data: Path, out: Path) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    if what == "recipe":
        importlib.import_module("duckdb_groups").main(str(data), str(model), str(out))
        return
    import duckdb as engine

    label = Bare(model)
    out.mkdir()
    rows = engine.sql(f"SELECT * FROM '{data}/*.parquet' ORDER BY site, day")
    assert rows is not None
    writer = None
    for batch in rows.to_arrow_reader(BLOCK):
        table = label(pa.Table.from_batches([batch]))
        writer = writer or pq.ParquetWriter(out / "items.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def small(folder: Path) -> dict[str, Any]:
    """Label groups of one and of three, beside a product and a softmax."""
    return measured(_small, model_at(folder))


def _small(model: Path) -> Any:
    found: dict[str, Any] = {}
    fitted = load_model(model)
    head = fitted.head
    n_rows = 3 * BLOCK
    for size in (1, 3):
        table = table_of(np.random.default_rng(3), np.arange(n_rows) // size)
        vectors = table["vector"].chunk(0).flatten().to_numpy().reshape(-1, DIM)
        label_table(table.slice(0, 300), model, "site")  # opens the model

        def product(vectors: Any = vectors) -> None:
            for at in range(0, n_rows, 1024):
                scores = head.scores(fitted.points(vectors[at : at + 1024]))
                chances = np.exp(scores - scores.max(1, keepdims=True))
                chances /= chances.sum(1, keepdims=True)

        def labelled(table: Any = table) -> None:
            label_table(table, model, "site")

        times = {"product": [], "label_table": []}  # type: dict[str, list[float]]
        for _ in range(REPEATS):
            for name, call in (("product", product), ("label_table", labelled)):
                begun = time.process_time()
                call()
                times[name].append(time.process_time() - begun)
        of_row = {f"{name}_us": 1e6 * min(some) / n_rows for name, some in times.items()}
        found[f"groups_of_{size}"] = of_row | {"ratio": min(times["label_table"]) / min(times["product"])}
    return found


def classes(folder: Path) -> dict[str, Any]:
    """Label a group of a hundred of many classes."""
    return {str(n): measured(_classes, model_at(folder, n), n) for n in (10_000, 100_000, 1_000_000)}


def _classes(model: Path, n_classes: int) -> Any:
    fitted = load_model(model)
    batches = [
        table_of(np.random.default_rng(seed), np.full(GROUP, seed), n_classes, noise=NOISE) for seed in range(BATCHES)
    ]
    label_table(batches[0], fitted)
    seconds, right, together = [], [], []
    for batch in batches:
        begun = time.process_time()
        items, _ = label_table(batch, fitted)
        seconds.append(time.process_time() - begun)
        truth = batch["truth"].to_numpy()
        right.append((items["label"].to_numpy() == truth).mean())
        if n_classes <= 10_000:
            vectors = batch["vector"].chunk(0).flatten().to_numpy().reshape(-1, DIM)
            answer = fitted.label_points(fitted.points(vectors), Knowledge())
            together.append((fitted.classes[answer.probabilities.argmax(1)] == truth).mean())
    beside = {"group_cpu_s": float(np.median(seconds)), "accuracy": float(np.mean(right))}
    return beside | ({"accuracy_among_all": float(np.mean(together))} if together else {})


def giant(folder: Path) -> dict[str, Any]:
    """Label one group of a million among 20,000 small ones."""
    place = folder / "giant"
    if not place.exists():
        rng = np.random.default_rng(4)
        place.with_suffix(".unfinished").mkdir(parents=True)
        groups = rng.permutation(np.concatenate([np.zeros(ROWS, np.int64), 1 + np.arange(20_000).repeat(5)]))
        with pq.ParquetWriter(place.with_suffix(".unfinished") / "a.parquet", table_of(rng, groups[:1]).schema) as file:
            for at in range(0, len(groups), 10 * BLOCK):
                file.write_table(table_of(rng, groups[at : at + 10 * BLOCK], first=at))
        place.with_suffix(".unfinished").rename(place)
    return measured(ours, model_at(folder), place, fresh(folder), 1, ("site",))


def rows(folder: Path) -> dict[str, Any]:
    """Label ten million rows."""
    data = rows_at(folder, "folders", 10 * ROWS, 10 * FILES)
    return measured(ours, model_at(folder), data, fresh(folder), 2)


CASES = {one.__name__: one for one in (folders, scattered, ray, duckdb, small, classes, giant, rows)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--folder", type=Path, required=True, help="where the rows are")
    given = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in given.cases or CASES:
        found = {**measured_by(), "cores": os.cpu_count(), "load": os.getloadavg()[0], **CASES[name](given.folder)}
        print(name, json.dumps(found, indent=1))
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
