"""Per-task predictions of the slow methods against those of the authors' classes, all task sets they were run on."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from tests.fewshot.oracles.test_authors_predictions import load_tasks

METHODS = {"TIM_GD": ("tim", {}), "ALPHA_TIM": ("alpha_tim", {}), "ICI": ("ici", {"ties": "position"})}
QUICK = ["k20_d64_s5", "k20_d64_bal5w", "k20_d64_dir", "k20_d64_fixed"]
SLOW = ["k20_d512_s5", "k64_d64_s10", "k160_d512_s5"]


@pytest.mark.parametrize("most_tasks", [5, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reference", METHODS)
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_predictions_and_accuracies_agree(oracle, name, reference, most_tasks):
    with np.load(oracle / "results.npz") as results, np.load(oracle / f"tasks_{name}.npz") as tasks:
        if f"{name}/{reference}/pred" not in results:
            pytest.skip(f"the authors' {reference} was not run on {name}")
        expected = torch.from_numpy(results[f"{name}/{reference}/pred"].astype(np.int64))[:most_tasks]
        truth = torch.from_numpy(tasks["y_query"][: len(expected)].astype(np.int64))
    task = fewshot.transform("l2", load_tasks(oracle, name, len(expected)))
    method, options = METHODS[reference]
    predictions = fewshot.solve(method, task, **options).predictions
    assert (predictions == expected).double().mean() >= 0.999
    ours, theirs = ((labels == truth).double().mean() for labels in (predictions, expected))
    assert abs(ours - theirs) <= 0.001
