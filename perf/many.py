"""Many batches from Parquet to Parquet: cost against a bare pass, memory, and a run by Ray that loses a node.

    python perf/many.py [--rows 10000000] [--group 100] [--noise 1.0] [--mixed] [--ray] [--json FILE]

Gaussian rows about 1,000 class centres, d = 128; each group holds five classes. Rows of a group lie together,
or with `--mixed` in random order. The data set is written to a folder and used again if it is there.

- *bare*: read the vectors, multiply with the class means, take the largest, write the table without the vectors and
  with the label; two processes of one thread, each half of the row groups;
- *label_groups*: from the same file, with two workers; `main_thread_s` is the part of its CPU seconds for reading,
  sorting (`sort` writes the parts, `label` sorts each) and writing, which the main thread does alone, and `portions_s`
  are those of labelling each portion;
- *ray*: four workers on two nodes of this machine, one of which is killed when a third of the rows are labelled; the
  output must have the same bytes as that of a run in one process. CPU seconds are those of all of Ray's processes.

Each is a process of its own. CPU seconds are those of the process and its children (user and system), memory is the
largest resident set of the process without children. Start-up of Python and the imports are part of both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from handful.executors import in_process, on_ray
from handful.fitted import FittedModel, load_model, save_model
from handful.many import label_groups
from handful.progress import Progress
from measured_by import measured_by

N_CLASSES, DIM, SHOTS, PRESENT = 1_000, 128, 5, 5
WRITTEN_AT_ONCE, CORES = 100_000, 2


def make(place: Path, n_rows: int, size: int, noise: float, mixed: bool) -> tuple[Path, Path]:
    """Write the catalogue and the data set, unless they are there."""
    place.mkdir(parents=True, exist_ok=True)
    catalogue = place / f"catalogue-{noise}.safetensors"
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, DIM)).astype(np.float32)
    if not catalogue.exists():
        codes = np.arange(N_CLASSES).repeat(SHOTS)
        examples = centres[codes] + noise * rng.normal(size=(len(codes), DIM)).astype(np.float32)
        names = np.array([f"class {k:04}" for k in codes])
        fitted = FittedModel.of(examples, names)
        _ = fitted.head
        save_model(fitted, catalogue)
    data = place / f"rows-{n_rows}-{size}-{noise}{'-mixed' if mixed else ''}.parquet"
    if not data.exists():
        rng = np.random.default_rng(1)
        n_groups = -(-n_rows // size)
        present = rng.integers(0, N_CLASSES, (n_groups, PRESENT))
        group_of = np.arange(n_rows) // size
        if mixed:
            group_of = rng.permutation(group_of)
        schema = pa.schema([("id", pa.int64()), ("group", pa.int64()), ("truth", pa.int32()), ("vector", _vectors())])
        with pq.ParquetWriter(data.with_suffix(".partial"), schema) as writer:
            for start in range(0, n_rows, WRITTEN_AT_ONCE):
                groups = group_of[start : start + WRITTEN_AT_ONCE]
                truth = present[groups, rng.integers(0, PRESENT, len(groups))]
                around = rng.standard_normal((len(groups), DIM), dtype=np.float32)
                flat = pa.array((centres[truth] + noise * around).reshape(-1))
                vectors = pa.FixedSizeListArray.from_arrays(flat, DIM)
                rows = np.arange(start, start + len(groups))
                columns = [pa.array(rows), pa.array(groups), pa.array(truth.astype(np.int32)), vectors]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        data.with_suffix(".partial").rename(data)
    return catalogue, data


def _vectors() -> Any:
    return pa.list_(pa.float32(), DIM)


def bare(catalogue: Path, data: Path, out: Path) -> None:
    """Run the bare pass: as many processes as cores, each with some of the row groups and a file of its own."""
    out.mkdir()
    processes = [multiprocessing.Process(target=_bare_part, args=(catalogue, data, out, part)) for part in range(CORES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def _bare_part(catalogue: Path, data: Path, out: Path, part: int) -> None:
    torch.set_num_threads(1)
    fitted = load_model(catalogue)
    means, origin = torch.from_numpy(fitted.means).float(), torch.from_numpy(fitted.origin).float()
    weights, offsets = means.mT.contiguous(), -0.5 * means.square().sum(-1)
    names = pa.array(fitted.classes.tolist())
    others = ["id", "group", "truth"]
    kinds = [("id", pa.int64()), ("group", pa.int64()), ("truth", pa.int32()), ("label", pa.string())]
    file = pq.ParquetFile(data)
    mine = [k for k in range(file.num_row_groups) if k * CORES // file.num_row_groups == part]
    with pq.ParquetWriter(out / f"part-{part}.parquet", pa.schema(kinds)) as writer:
        for batch in file.iter_batches(16_384, mine, use_threads=False):
            vectors = torch.from_numpy(batch.column("vector").flatten().to_numpy()).view(-1, DIM)
            points = torch.nn.functional.normalize(vectors, dim=-1) - origin
            codes = torch.cat([torch.addmm(offsets, rows, weights).argmax(-1) for rows in torch.split(points, 2_048)])
            columns = [*(batch.column(name) for name in others), names.take(pa.array(codes.numpy()))]
            writer.write_table(pa.Table.from_arrays(columns, schema=pa.schema(kinds)))


def ours(catalogue: Path, data: Path, out: Path) -> dict[str, Any]:
    """Run `label_groups`; return the CPU seconds of its main thread by stage, and those of every portion."""
    stages: dict[str, float] = {}
    last = time.thread_time()

    def listen(progress: Progress) -> None:
        nonlocal last
        now = time.thread_time()
        stages[progress.stage] = stages.get(progress.stage, 0.0) + now - last
        last = now

    portions_s: list[float] = []

    def timed(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], lost: Any = None, /) -> Any:
        def call(*task: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*task)
            finally:
                portions_s.append(time.thread_time() - start)

        return in_process(CORES)(call, tasks, lost)

    label_groups(load_model(catalogue), data, out, group_by="group", executor=timed, on_progress=listen)
    return {"main_thread_s": stages, "portions_s": portions_s}


def ray(catalogue: Path, data: Path, out: Path) -> dict[str, Any]:
    """Run `label_groups` by Ray, and kill a node in the middle."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_worker_niceness", str(os.nice(0)))
    quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    room = {"object_store_memory": 2**30, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": quick, **room})
    doomed, _ = (cluster.add_node(num_cpus=2, **room) for _ in range(2))
    cluster.wait_for_nodes()
    seconds: dict[int, float] = {}
    labelled, killed_at = 0, 0

    def listen(progress: Progress) -> None:
        nonlocal labelled, killed_at
        labelled = progress.done if progress.stage == "label" else labelled
        seconds.update(cpu_of_children())
        if not killed_at and 3 * labelled >= progress.total:
            killed_at = labelled
            cluster.remove_node(doomed, allow_graceful=False)

    start, load = time.perf_counter(), os.getloadavg()[0]
    executor = on_ray(cluster.address)
    label_groups(load_model(catalogue), data, out, group_by="group", executor=executor, on_progress=listen)
    wall = time.perf_counter() - start
    cluster.shutdown()
    cpu = sum(seconds.values()) + time.process_time()
    return {"wall_s": wall, "cpu_s": cpu, "load": load, "killed_after_rows": killed_at}


def cpu_of_children() -> dict[int, float]:
    """CPU seconds so far of every process that this one started, directly or not, by its number."""
    tick, parents, cpu = os.sysconf("SC_CLK_TCK"), dict[int, int](), dict[int, float]()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = place.read_text().rpartition(")")[2].split()
            parents[int(place.parent.name)] = int(fields[1])
            cpu[int(place.parent.name)] = (int(fields[11]) + int(fields[12])) / tick
    mine = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return {number: cpu[number] for number in mine - {os.getpid()}}


def measured(what: str, catalogue: Path, data: Path, out: Path) -> dict[str, Any]:
    """Run in a process of its own; wall and CPU seconds, and the largest resident set of one process in megabytes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = subprocess.run(
        [sys.executable, __file__, "--do", what, str(catalogue), str(data), str(out)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": time.perf_counter() - start, "cpu_s": cpu, **json.loads(found.stdout.splitlines()[-1])}


def _bytes(out: Path) -> dict[str, str]:
    files = [file for kind in ("items", "groups") for file in (out / kind).rglob("*.parquet")]
    return {str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def accuracy(out: Path) -> float:
    """Share of items whose label is the class that they were drawn from."""
    right = total = 0
    for file in out.rglob("*.parquet"):
        for batch in pq.ParquetFile(file).iter_batches(columns=["truth", "label"]):
            wanted = np.char.mod("class %04d", batch.column("truth").to_numpy())
            right += int((np.array(batch.column("label").to_pylist()) == wanted).sum())
            total += len(batch)
    return right / total


def main() -> None:
    """Measure and print; with --json also write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--group", type=int, default=100, help="rows in a group")
    parser.add_argument("--noise", type=float, default=1.0, help="how far items lie from the centre of their class")
    parser.add_argument("--mixed", action="store_true", help="rows of a group do not lie together")
    parser.add_argument("--ray", action="store_true", help="run by Ray too, and kill one of two nodes")
    parser.add_argument("--data", type=Path, help="folder for the data set; by default one that is removed at the end")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--do", nargs=4, metavar=("WHAT", "CATALOGUE", "DATA", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.do:
        what, *paths = arguments.do
        found = {"bare": bare, "ours": ours, "ray": ray}[what](*map(Path, paths)) or {}
        # Not ru_maxrss: that begins with what the parent had.
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        print(json.dumps({"peak_mb": peak / 1024, **found}))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        catalogue, data = make(
            arguments.data or place / "data", arguments.rows, arguments.group, arguments.noise, arguments.mixed
        )
        results: dict[str, Any] = {
            **measured_by(),
            "rows": arguments.rows,
            "groups": -(-arguments.rows // arguments.group),
            "classes": N_CLASSES,
            "dim": DIM,
            "noise": arguments.noise,
            "mixed": arguments.mixed,
            "input_gb": data.stat().st_size / 1e9,
        }
        if arguments.ray:
            results |= {what: measured(what, catalogue, data, place / what) for what in ("ours", "ray")}
            results["same_bytes"] = _bytes(place / "ours") == _bytes(place / "ray")
        else:
            for what in ("bare", "ours"):
                results[what] = measured(what, catalogue, data, place / what)
                results[what]["output_gb"] = sum(f.stat().st_size for f in (place / what).rglob("*.parquet")) / 1e9
                results[what]["accuracy"] = accuracy(place / what / "items" if what == "ours" else place / what)
            for name in ("cpu_s", "wall_s"):
                results[f"ratio_{name}"] = results["ours"][name] / results["bare"][name]
    print(json.dumps(results, indent=1))
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
