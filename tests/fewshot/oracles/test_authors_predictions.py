"""Per-task predictions against those of the authors' classes, all task sets, both geometries."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot

SETS = [
    *("k20_d64_s5", "k20_d64_s20", "k20_d64_bal5w", "k20_d64_dir", "k20_d64_fixed"),
    *("k20_d512_s5", "k20_d512_s20", "k64_d64_s10", "k160_d512_s5", "k160_d512_s20"),
]
METHODS = ["PADDLE", "SOFT_KM", "PADDLE_raw", "SOFT_KM_raw", "PADDLE_l2_T15", "PADDLE_l2_T60", "PADDLE_l2_T240"]


def load_tasks(oracle, name: str, n_tasks: int) -> fewshot.TaskBatch:
    with np.load(oracle / f"tasks_{name}.npz") as tasks, np.load(oracle / f"pool_{tasks['pool']}.npz") as pool:
        features = pool["x_u16"].astype(np.float32) / 256
        labels = tasks["y_support"][:n_tasks].astype(np.int64)
        return fewshot.TaskBatch(
            features[tasks["support"][:n_tasks]], labels, features[tasks["query"][:n_tasks]], int(labels.max()) + 1
        )


def transformed(task: fewshot.TaskBatch, reference: str) -> fewshot.TaskBatch:
    if reference.endswith("_raw"):
        return task
    if "_l2_T" in reference:
        unit, factor = fewshot.transform("l2", task), float(reference.split("_T")[1]) ** 0.5
        return unit.with_features(factor * unit.support, factor * unit.query)
    return fewshot.transform("range_scale_public_code", task)


@pytest.mark.parametrize("most_tasks", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reference", METHODS)
@pytest.mark.parametrize("name", SETS)
def test_predictions_agree(oracle, name, reference, most_tasks):
    with np.load(oracle / "results.npz") as results:
        if f"{name}/{reference}/pred" not in results:
            pytest.skip(f"the authors' {reference} was not run on {name}")
        expected = torch.from_numpy(results[f"{name}/{reference}/pred"].astype(np.int64))[:most_tasks]
    task = transformed(load_tasks(oracle, name, len(expected)), reference)
    method = "soft_kmeans" if reference.startswith("SOFT_KM") else "paddle"
    options = {} if method == "soft_kmeans" else {"proportion_floor": 1e-6}
    solution = fewshot.solve(method, task, max_iter=100, tol=0.0, **options)
    assert (solution.predictions == expected).double().mean() >= 0.999
