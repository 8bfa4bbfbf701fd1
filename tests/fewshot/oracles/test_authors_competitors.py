"""Per-task predictions of the competing methods, with the public code's options, against its own classes."""

import numpy as np
import pytest
import torch

import handful_fewshot as fewshot
from tests.fewshot.oracles.test_authors_predictions import SETS, load_tasks

# How PADDLE's public code ran each: method, transform, options. Column sums of 15 are |Q| // K_eff, told to the class.
AS_PUBLISHED = {
    "Baseline": ("baseline", "l2", {"head": "prototypes"}),
    "BDCSPN": ("bd_cspn", "raw", {"sharpness": 50.0, "public_code": True}),
    "LaplacianShot": ("laplacian_shot", "cl2n", {}),
    "PT_MAP": ("pt_map", "pt_map_preprocess", {"step_size": 0.02, "column_mass": 15.0}),
}


def base_mean(oracle, name: str) -> np.ndarray:
    with np.load(oracle / f"tasks_{name}.npz") as tasks, np.load(oracle / f"pool_{tasks['pool']}.npz") as pool:
        return pool["base_mean"]


def query_labels(oracle, name: str, n_tasks: int) -> torch.Tensor:
    with np.load(oracle / f"tasks_{name}.npz") as tasks:
        return torch.from_numpy(tasks["y_query"][:n_tasks].astype(np.int64))


@pytest.mark.parametrize("most_tasks", [5, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reference", list(AS_PUBLISHED))
@pytest.mark.parametrize("name", SETS)
def test_predictions_and_accuracies_agree(oracle, name, reference, most_tasks):
    with np.load(oracle / "results.npz") as results:
        if f"{name}/{reference}/pred" not in results:
            pytest.skip(f"the authors' {reference} was not run on {name}")
        expected = torch.from_numpy(results[f"{name}/{reference}/pred"].astype(np.int64))[:most_tasks]
        accuracy = results[f"{name}/{reference}/acc"][:most_tasks].mean()
    method, transform, options = AS_PUBLISHED[reference]
    parameters = {"base_mean": base_mean(oracle, name)} if transform == "cl2n" else {}
    task = fewshot.transform(transform, load_tasks(oracle, name, len(expected)), **parameters)
    predictions = fewshot.solve(method, task, **options).predictions
    assert (predictions == expected).double().mean() >= 0.99
    ours = (predictions == query_labels(oracle, name, len(expected))).double().mean()
    assert ours.item() == pytest.approx(accuracy, abs=0.005)
