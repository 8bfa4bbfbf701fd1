"""Every kind of run, killed with SIGKILL and resumed: it ends as an undisturbed one, and keeps what it had.

What is on disk changes only when a file gets its name, so a run is killed there: before the name is given, when what
was written lies there unfinished, or right after. The long versions, with the counts printed:

    python -m pytest tests/end_to_end/test_kills.py -m slow -s
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from handful.banks import FeatureBank
from handful.extraction.extract import extract
from handful.extraction.items import list_items
from handful.machine.threads import one_thread
from handful.scale import plan, run
from handful.workers import here
from handful_fewshot.benchmark import completion
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.errors import PlanError
from handful_fewshot.networks.checkpoint import Checkpoint
from handful_fewshot.training import BaseSplit, hold_out, train
from tests.items_at_hand import image_folder, small_encoder
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server
from tests.plans_at_hand import small_plan
from tests.scale_at_hand import world
from tests.trainings_at_hand import RECIPE

TIMINGS = ("seconds", "cpu_seconds")
RANDOM_KILLS = 20
# Numbers of a table in memory, so that a small data set has two buckets.
FEW_NUMBERS = 16 * 300


def nothing(out: Path) -> dict[Any, Any]:
    return {}


@dataclass(frozen=True)
class Kind:
    """How a run is prepared, and begun or resumed; what it ends with; and what no later kill may change."""

    prepare: Callable[[Path], None]
    run: Callable[[Path, Path], None]
    outcome: Callable[[Path], Any]
    kept: Callable[[Path], dict[Any, Any]] = nothing


def prepare_partitions(inputs: Path) -> None:
    """Files whose groups are scattered, so that rows are brought together first."""
    given = world(inputs)
    (inputs / "rows").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(given.sites)), 3)):
        pq.write_table(given.table(rows), inputs / "rows" / f"{number}.parquet")


def run_partitions(inputs: Path, out: Path) -> None:
    with mock.patch.object(plan, "HELD_NUMBERS", FEW_NUMBERS):
        run(inputs / "rows", inputs / "birds.model", out, group_by="site", workers=here())


def outcome_of_partitions(out: Path) -> Any:
    """Rows of all files; nothing twice, and nothing beside them."""
    return {str(file.relative_to(out)): pq.read_table(file).to_pydict() for file in sorted(out.glob("*/*.parquet"))}


def run_extraction(inputs: Path, out: Path) -> None:
    extract(list_items(inputs / "images"), small_encoder(), out, shard_size=4)


def outcome_of_extraction(out: Path) -> Any:
    assert not (out.parent / f".{out.name}.shards").exists()
    return {file.name: file.read_bytes() for file in out.iterdir()}


def prepare_benchmark(inputs: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(5).repeat(12)
    features = rng.normal(size=(5, 8))[labels] + rng.normal(size=(60, 8))
    FeatureBank.from_arrays(features, labels, list("abcde")).save(inputs / "bank")


def run_benchmark(inputs: Path, out: Path) -> None:
    banks = {"toy": FeatureBank.load(inputs / "bank")}
    try:
        journal = Journal(out)
    except PlanError:
        journal = Journal.create(out, small_plan(banks))
    with mock.patch.object(completion, "WAITING_SECONDS", 0.0):
        completion.complete(journal, banks)


def rows_of(out: Path) -> dict[Any, Any]:
    """Rows by cell and task, times included; two rows of one task are an error of the journal."""
    try:
        columns = Journal(out).columns()
    except PlanError:
        return {}
    keys = zip(columns["cell"].tolist(), columns["task"].tolist(), strict=True)
    return {key: {name: repr(values[k]) for name, values in columns.items()} for k, key in enumerate(keys)}


def outcome_of_benchmark(out: Path) -> Any:
    return {
        key: {name: value for name, value in row.items() if name not in TIMINGS} for key, row in rows_of(out).items()
    }


def run_training(inputs: Path, out: Path) -> None:
    base = hold_out(list_items(inputs), 2, seed=0).base
    with one_thread():
        train(BaseSplit(base, None), RECIPE, out, accelerator="cpu")  # without validation the last epoch is kept


def outcome_of_training(out: Path) -> Any:
    kept = Checkpoint.load(out)
    return kept.epoch, {name: value.numpy().tobytes() for name, value in kept.weights.items()}


KINDS = {
    "partitions": Kind(prepare_partitions, run_partitions, outcome_of_partitions),
    "extraction": Kind(lambda inputs: image_folder(inputs / "images"), run_extraction, outcome_of_extraction),
    "benchmark": Kind(prepare_benchmark, run_benchmark, outcome_of_benchmark, rows_of),
    "training": Kind(lambda inputs: image_folder(inputs, n_classes=6), run_training, outcome_of_training),
}


@dataclass
class Killed:
    """One run of a kind in a folder, killed and resumed."""

    name: str
    inputs: Path
    out: Path

    def at_file(self, number: int, named: bool) -> bool:
        """Run in a process that dies at the file of this number, before or after it is named; whether there was one."""
        return self._checked(run_until_file, number, named)

    def after(self, seconds: float) -> bool:
        """Run in a process that is killed after that time; whether it was still running."""
        return self._checked(run_until_ended, seconds=seconds)

    def _checked(self, target: Callable[..., None], *moment: Any, seconds: float | None = None) -> bool:
        before = KINDS[self.name].kept(self.out)
        began = PROCESSES.Event()
        process = PROCESSES.Process(target=target, args=(self.name, self.inputs, self.out, began, *moment))
        process.start()
        assert began.wait(PATIENCE)
        process.join(seconds)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        assert before.items() <= KINDS[self.name].kept(self.out).items(), "something was lost or changed"
        return process.exitcode != 0


def run_until_file(name: str, inputs: Path, out: Path, began: Any, number: int, named: bool) -> None:
    count = itertools.count(1)

    def deadly(rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(*names: Any) -> None:
            last = next(count) == number
            if last and not named:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(*names)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)

        return renamed

    os.replace, os.rename = deadly(os.replace), deadly(os.rename)
    run_until_ended(name, inputs, out, began)


def run_until_ended(name: str, inputs: Path, out: Path, began: Any) -> None:
    os.fsync = lambda _: None  # what is written survives a killed process without it
    began.set()
    KINDS[name].run(inputs, out)


def later_and_later(run: Killed, whole: Any) -> tuple[int, bool]:
    """Kill one run at its first file, the next process at its second, and so on, until one reaches the end."""
    kills = 0
    while run.at_file(kills + 1, named=kills % 2 == 1):
        kills += 1
    return kills, kills >= 3


def at_every_file(run: Killed, whole: Any) -> tuple[int, bool]:
    """Kill a new run before and after each of its files is named, and resume it."""
    kills = 0
    for named in (False, True):
        for number in itertools.count(1):
            shutil.rmtree(run.out, ignore_errors=True)
            if not run.at_file(number, named):
                break
            kills += 1
            KINDS[run.name].run(run.inputs, run.out)
            assert KINDS[run.name].outcome(run.out) == whole, f"killed at file {number}"
    return kills, kills >= 8


def at_random_moments(run: Killed, whole: Any) -> tuple[int, bool]:
    """Kill runs at random moments, uniform over the time that one takes, and resume them."""
    moments, outcomes = random.Random(0), Counter[str]()
    while outcomes["killed"] < RANDOM_KILLS:
        shutil.rmtree(run.out, ignore_errors=True)
        start = time.monotonic()
        run.after(PATIENCE)
        seconds = time.monotonic() - start
        for _ in range(5):  # other work on the machine comes and goes, so runs are timed again
            shutil.rmtree(run.out, ignore_errors=True)
            outcomes["killed" if run.after(moments.uniform(0, seconds)) else "faster"] += 1
            KINDS[run.name].run(run.inputs, run.out)
            assert KINDS[run.name].outcome(run.out) == whole
    return outcomes["killed"], True


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Inputs of a kind, and what a run ends with that is not killed."""
    start_server(__name__, "handful_fewshot.training.on_lightning")
    made = {}

    def of(name: str) -> tuple[Path, Any]:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            (folder / "inputs").mkdir()
            KINDS[name].prepare(folder / "inputs")
            KINDS[name].run(folder / "inputs", folder / "whole")
            made[name] = folder / "inputs", KINDS[name].outcome(folder / "whole")
        return made[name]

    return of


@pytest.mark.parametrize(
    "moment",
    [
        later_and_later,
        pytest.param(at_every_file, marks=pytest.mark.slow),
        pytest.param(at_random_moments, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.beyond] if name == "training" else []) for name in KINDS]
)
def test_killed_and_resumed_a_run_ends_as_if_undisturbed(name, moment, undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    inputs, whole = undisturbed(name)
    run = Killed(name, inputs, tmp_path / "run")
    kills, enough = moment(run, whole)
    print(f"{name}: killed {kills} times, {moment.__name__.replace('_', ' ')}")
    assert enough
    assert KINDS[name].outcome(run.out) == whole
    KINDS[name].run(inputs, run.out)  # nothing is left to do
    assert KINDS[name].outcome(run.out) == whole
