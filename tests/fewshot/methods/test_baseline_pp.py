"""Baseline++: cosine logits, the scale, the length of features."""

import torch

from handful import fewshot
from handful.fewshot.methods.baseline_pp import BaselinePPOptions
from handful.fewshot.solvers.finetuning import fit_linear
from tests.tasks_at_hand import random_task


def test_it_is_a_linear_layer_without_bias_on_unit_features():
    task = random_task(0, spread=2.0)
    unit = fewshot.transform("l2", task)
    scaled = unit.with_features(3 * unit.support, 3 * unit.query)
    layer = fit_linear(scaled, BaselinePPOptions(), bias=False)
    solution = fewshot.solve("baseline_pp", task, scale=3.0)
    torch.testing.assert_close(solution.log_assignments, layer.logits(scaled.query).log_softmax(-1))


def test_the_scale_is_two_and_beyond_two_hundred_classes_ten():
    few, many = random_task(1), random_task(1, n_classes=201, n_tasks=1)
    for task, scale in ((few, 2.0), (many, 10.0)):
        a, b = fewshot.solve("baseline_pp", task), fewshot.solve("baseline_pp", task, scale=scale)
        assert torch.equal(a.log_assignments, b.log_assignments)
