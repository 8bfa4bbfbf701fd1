"""Every method over a Ray cluster that loses a node and its driver: the rows are those of an undisturbed run.

The grid is large: run it with `pytest -m slow -s tests/end_to_end/test_ray_run.py`, which prints what it found.
"""

import os
import time
from functools import partial

import numpy as np
import pytest

from handful import fewshot
from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from handful.fewshot.benchmark import Cell, Journal, complete
from handful.fewshot.benchmark.plan import bound_plan
from handful.reading import read_bank
from tests.clusters_at_hand import largest_difference, lose_a_node_then_the_driver
from tests.conftest import SHARED

# Those that take more than a tenth of a second a task on this bank: `docs/measured/methods.md`.
SLOW = ("baseline", "baseline_pp", "paddle_gd", "tim", "tim_adm", "alpha_tim", "ici")
QUICK = tuple(name for name in fewshot.METHODS if name not in SLOW)
SHOTS, K_EFFS = (5, 10), (2, 5, 10, 20)


def load_banks(place):
    return {"clinc150": read_bank(place)}


def cells_of(methods, shots, k_effs, n_tasks):
    return [
        Cell("clinc150", TaskSpec(ShotsPerClass(s), UniformOverPool(k)), method, n_tasks=n_tasks)
        for s in shots
        for k in k_effs
        for method in methods
    ]


@pytest.mark.slow
def test_a_large_run_survives_the_loss_of_a_node_and_of_its_driver(ray, tmp_path):
    place = SHARED / "data" / "clinc150-minilm"
    if not place.is_dir():
        pytest.skip("the bank is not here: expected a folder shared/data/clinc150-minilm beside the repository")
    banks = load_banks(place)
    # The slow ones stand between, so that some of them are done over Ray and some after the driver's death.
    first, last = (cells_of(QUICK, [shots], K_EFFS, 200) for shots in SHOTS)
    slow = cells_of(SLOW, [5], [5], 8)
    plan = bound_plan([*first, *slow, *last], banks)
    expected = sum(cell.n_tasks for cell in plan)
    assert expected == len(QUICK) * 8 * 200 + len(SLOW) * 8

    begun = time.perf_counter()
    there = Journal.create(tmp_path / "there", plan)
    node_dies_at, driver_dies_at = 2000, 200 * len(first) + 4 * len(slow)
    at = lose_a_node_then_the_driver(
        there, partial(load_banks, place), node_dies_at=node_dies_at, driver_dies_at=driver_dies_at
    )
    over_ray = time.perf_counter() - begun, np.sum(there.columns()["cpu_seconds"])
    assert node_dies_at <= at[0] < driver_dies_at <= at[1] < expected
    begun, cpu = time.perf_counter(), time.process_time()
    complete(there, banks)
    resumed = time.perf_counter() - begun, time.process_time() - cpu

    begun, cpu = time.perf_counter(), time.process_time()
    here = Journal.create(tmp_path / "here", plan)
    complete(here, banks)
    undisturbed = time.perf_counter() - begun, time.process_time() - cpu

    assert here.table().num_rows == there.table().num_rows == expected
    failed = sum(error is not None for error in here.columns()["error"])
    difference = largest_difference(there, here)
    print(
        f"\n{len(plan)} cells, {expected} rows compared, {failed} of them failures, largest difference {difference:.2g}"
        f"\nrows when the node died {at[0]}, when the driver died {at[1]}"
        f"\nover Ray {over_ray[0]:.0f} s of wall time, {over_ray[1]:.0f} s of processor time in ranges that were kept;"
        f" resumed here {resumed[0]:.0f} s of wall and {resumed[1]:.0f} s of processor time;"
        f" undisturbed {undisturbed[0]:.0f} s and {undisturbed[1]:.0f} s"
        f"\nload of the machine at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    assert failed == 0
    assert difference <= 1e-5
