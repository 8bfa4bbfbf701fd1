"""Every method on another device: no operation mixes devices, the answer is on the task's, and it is the CPU's."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from handful.banks import FeatureBank
from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from handful_fewshot.benchmark.plan import Cell
from handful_fewshot.benchmark.run import Material, run_range
from tests.fewshot.other_device import ELSEWHERE, MixedDevices, OtherDevice, is_elsewhere
from tests.tasks_at_hand import ragged_tasks, random_task


def test_the_pretended_device_refuses_a_mix():
    with OtherDevice():
        there = torch.ones(2).to(ELSEWHERE)
        assert str((there * 2).device) == ELSEWHERE
        assert str(there.cpu().device) == "cpu"
        assert is_elsewhere(torch.zeros(2, device=there.device) + there[0])
        with pytest.raises(MixedDevices):
            there + torch.ones(2)
        with pytest.raises(MixedDevices):
            there.numpy()


def test_a_range_is_solved_on_the_device_it_is_given_and_scored_on_the_cpu():
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 20)
    features = (generator.normal(size=(6, 8))[labels] + generator.normal(size=(120, 8))).astype(np.float32)
    bank = FeatureBank.from_arrays(features, labels, [f"class {k}" for k in range(6)])
    cell = Cell("bank", TaskSpec(ShotsPerClass(3), UniformOverPool(2), n_query=9), "paddle", n_tasks=2)
    material = Material(bank)
    here = run_range(cell, material, [0, 1])
    with OtherDevice():
        there = run_range(cell, material, [0, 1], ELSEWHERE)
    assert [row["error"] for row in there] == [None, None]
    for key in ("task", "accuracy", "proportion_error", "n_iter", "converged"):
        assert [row[key] for row in there] == pytest.approx([row[key] for row in here])


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", sorted(fewshot.METHODS))
def test_a_method_stays_on_the_device_of_its_task(name, padded):
    method = fewshot.METHODS[name]
    task = fewshot.TaskBatch.pad(ragged_tasks(0)) if padded else random_task(1)
    task = fewshot.transform("l2", task)
    options = {"max_iter": 3} if hasattr(method.make_options(), "max_iter") else {}
    here = fewshot.solve(name, task, **options)
    with OtherDevice():
        solution = fewshot.solve(name, task.to(ELSEWHERE), **options)
        answer = [solution.log_assignments, solution.proportions, solution.n_iter, solution.converged]
        answer += [x for x in (solution.query_mask, solution.unknown) if x is not None]
        assert all(map(is_elsewhere, answer))
        found = solution.log_assignments.cpu()
    torch.testing.assert_close(found, here.log_assignments)
