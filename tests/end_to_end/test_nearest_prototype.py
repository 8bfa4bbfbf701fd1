"""Nearest prototype on unit-norm features of seven real banks: all classes, five of them in the query, five shots."""

import pytest
import torch

import handful
from handful import fewshot
from handful.fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from tests.conftest import SHARED

ACCURACY = {
    "clinc150-minilm": 87.6,
    "banking77-minilm": 76.2,
    "hwu64-minilm": 74.5,
    "omniglot659-conv4": 78.7,
    "caltech101-efflite0": 86.0,
    "cub200-efflite0": 53.1,
    "tinyimagenet200-efflite0": 43.3,
}
QUICK = ("clinc150-minilm", "banking77-minilm", "hwu64-minilm")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in ACCURACY])
def test_accuracy_over_five_hundred_tasks(name):
    if not (SHARED / "data" / name).is_dir():
        pytest.skip(f"the bank is not here: expected a folder shared/data/{name} beside the repository")
    bank = handful.read_bank(SHARED / "data" / name)
    spec = TaskSpec(ShotsPerClass(5), UniformOverPool(k_eff=5), n_query=75)
    hits = []
    for start in range(0, 500, 20):
        task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, 0, range(start, start + 20)))
        nearest = fewshot.solve("soft_kmeans", fewshot.transform("l2", task), max_iter=1, tol=0.0)
        hits.append(nearest.predictions == truth)
    assert 100 * torch.cat(hits).float().mean().item() == pytest.approx(ACCURACY[name], abs=1.5)
