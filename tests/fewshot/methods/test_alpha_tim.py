"""α-TIM: its limit is TIM, its orders matter as they should."""

import torch

from handful import fewshot
from tests.tasks_at_hand import random_task

SHARED = {"temperature": 0.5, "learning_rate": 1e-2, "max_iter": 40, "marginal_weight": 0.7}


def test_at_order_one_it_is_tim():
    task = random_task(1)
    tim = fewshot.solve("tim", task, **SHARED)
    alpha = fewshot.solve("alpha_tim", task, tsallis_alpha_marginal=1.0, tsallis_alpha_conditional=1.0, **SHARED)
    assert torch.equal(tim.log_assignments, alpha.log_assignments)
    assert torch.equal(tim.prototypes, alpha.prototypes)


def test_a_higher_order_of_the_marginal_tolerates_imbalance():
    task = random_task(3, spread=2.0)
    options = {"temperature": 0.3, "learning_rate": 1e-2, "max_iter": 200, "tsallis_alpha_conditional": 1.0}
    low, high = (fewshot.solve("alpha_tim", task, tsallis_alpha_marginal=b, **options) for b in (1.0, 7.0))
    assert (high.proportions.amax(-1) > low.proportions.amax(-1)).all()
