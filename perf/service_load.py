"""The service of `examples/service` under load: `python perf/service_load.py`.

It is started on this machine with a catalogue of 150 intents, five sentences of each, and gets batches of 75 vectors of
384 numbers. 200 callers ask at the same moment; those that are told to come back later do so after as many seconds as
they are told. Memory is the resident set of the process that was started, the highest one since its start for the peak.
Callers run on the same machine and take their share of its cores.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from handful.datasets import load_clinc150
from handful.estimators import BatchClassifier

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "service"
JSON, NPY = "application/json", "application/x-npy"
CALLERS, ROWS = 200, 75
# Longest wait for a server to start or to answer, in seconds.
PATIENCE = 120


@dataclass(frozen=True)
class Answer:
    """What came back, and after how long."""

    status: int
    retry_after: str | None
    content: Any
    seconds: float


@dataclass(frozen=True)
class Server:
    """A process that answers at a port of this machine."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(self, path: str, body: bytes | None = None, kind: str = JSON) -> Answer:
        """Send one request over a connection of its own: a POST if it has a body."""
        start = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET" if body is None else "POST", path, body, {"Content-Type": kind})
            response = connection.getresponse()
            text = response.read()
            content = json.loads(text) if response.headers["Content-Type"] == JSON else text
        finally:
            connection.close()
        return Answer(response.status, response.headers["Retry-After"], content, time.perf_counter() - start)

    def megabytes(self, what: str = "VmRSS") -> float:
        """Resident memory now, or at its highest: VmHWM."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


@contextmanager
def serving(command: Callable[[int], list[str]], catalogue: Path, **settings: object) -> Iterator[Server]:
    """Start a server on a free port, wait until it answers, and end it after the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    chosen = {f"HANDFUL_{name}": str(value) for name, value in settings.items()}
    there = {**os.environ, "HANDFUL_MODEL": str(catalogue), "PORT": str(port), **chosen}
    process = subprocess.Popen([sys.executable, *command(port)], env=there, cwd=EXAMPLE)
    server, give_up = Server(process, port), time.monotonic() + PATIENCE
    try:
        while True:
            try:
                if server.ask("/health").status == 200:
                    break
            except (OSError, ValueError) as error:  # the server is not listening yet, or the answer is not ours
                if process.poll() is not None or time.monotonic() > give_up:
                    raise RuntimeError(f"the server did not start ({process.returncode})") from error
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def uvicorn(port: int) -> list[str]:
    """Return the command that starts the server under uvicorn."""
    there = ["--host", "127.0.0.1", "--port", str(port)]
    return ["-m", "uvicorn", "service:app", "--http", "on_time:OnTime", *there, "--log-level", "warning"]


def intents(place: Path) -> tuple[Path, list[npt.NDArray[np.float32]]]:
    """Save a classifier of 150 intents in a folder; return its file, and eight batches of five intents each."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    names, rows = np.array(bank.class_names), [np.flatnonzero(bank.labels == k) for k in range(bank.n_classes)]
    examples = np.concatenate([of_class[:5] for of_class in rows])
    BatchClassifier().fit(bank.take(examples), names[bank.labels[examples]]).save(place / "intents.model")
    batches = []
    for _ in range(8):
        others = np.concatenate([rows[k][5:] for k in rng.choice(bank.n_classes, 5, replace=False)])
        batches.append(bank.take(rng.choice(others, ROWS, replace=False)))
    return place / "intents.model", batches


def as_json(batch: npt.NDArray[Any]) -> bytes:
    """Write a batch as a list of vectors."""
    return json.dumps(batch.tolist()).encode()


def as_npy(batch: npt.NDArray[Any]) -> bytes:
    """Write a batch as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, batch)
    return file.getvalue()


def at_once(server: Server, bodies: list[bytes], kind: str = JSON, retry: bool = False) -> tuple[list[Answer], int]:
    """Send all bodies at the same moment; return the answers, and how many 503 were followed by another try."""
    gate, again = threading.Barrier(len(bodies)), Counter[int]()

    def call(body: bytes) -> Answer:
        gate.wait()
        answer = server.ask("/label", body, kind)
        while retry and answer.status == 503:
            again[503] += 1
            time.sleep(float(answer.retry_after or 1))
            answer = server.ask("/label", body, kind)
        return answer

    with ThreadPoolExecutor(len(bodies)) as callers:
        return list(callers.map(call, bodies)), again[503]


@contextmanager
def watched(server: Server, every: float = 0.05) -> Iterator[list[float]]:
    """Ask for the server's health all along; yield how long each answer took, in seconds."""
    seconds: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            seconds.append(server.ask("/health").seconds)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seconds
    finally:
        over.set()
        watcher.join()


def quantiles(seconds: list[float]) -> str:
    """Return median, 95th percentile and largest, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return f"{1000 * cuts[9]:.0f} / {1000 * cuts[18]:.0f} / {1000 * max(seconds):.0f} ms"


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; times are median / 95th percentile / largest")
    with tempfile.TemporaryDirectory() as place:
        catalogue, batches = intents(Path(place))
        for kind, write in ((JSON, as_json), (NPY, as_npy)):
            bodies = [write(batches[caller % len(batches)]) for caller in range(CALLERS)]
            with serving(uvicorn, catalogue) as server:
                alone = [server.ask("/label", body, kind).seconds for body in bodies[:20]]
                print(f"\n{kind}, {len(bodies[0]):,} bytes per request; alone {quantiles(alone)}")
                large = write(np.concatenate(batches * 2)[:1000])
                alone = [server.ask("/label", large, kind).seconds for _ in range(5)]
                print(f"  1,000 rows, {len(large):,} bytes; alone {quantiles(alone)}")
                before = server.megabytes()
                for retry in (False, True):
                    start = time.perf_counter()
                    with watched(server) as health:
                        answers, again = at_once(server, bodies, kind, retry)
                    seconds = time.perf_counter() - start
                    counts = dict(sorted(Counter(answer.status for answer in answers).items()))
                    who = f"those refused come back, {again} times in all" if retry else "nobody comes back"
                    print(f"  {CALLERS} at once, {who}: {counts} in {seconds:.1f} s")
                    refused = [answer.seconds for answer in answers if answer.status == 503]
                    if len(refused) > 1:
                        print(f"    an answer 503 takes {quantiles(refused)}")
                    print(f"    {counts[200] / seconds:.0f} batches per second; health takes {quantiles(health)}")
                after, peak = server.megabytes(), server.megabytes("VmHWM")
                print(f"  memory before {before:.0f} MB, after {after:.0f} MB, peak {peak:.0f} MB")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
