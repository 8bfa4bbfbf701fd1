"""BD-CSPN: labels by cosine of the moved query; the public code's by distance of the query where it was."""

import torch

from handful import fewshot
from handful.fewshot.solvers.rectification import rectify
from tests.tasks_at_hand import random_task


def test_the_moved_query_is_labelled_by_cosine():
    task = random_task(0, spread=2.0)
    solution = fewshot.solve("bd_cspn", task)
    rectified = rectify(task, 10.0, public_code=False)
    torch.testing.assert_close(solution.prototypes, rectified.prototypes)
    cosines = torch.nn.functional.cosine_similarity(
        rectified.query.unsqueeze(2), rectified.prototypes.unsqueeze(1), dim=-1
    )
    torch.testing.assert_close(solution.log_assignments, (10 * cosines).log_softmax(-1))


def test_in_public_code_the_query_is_labelled_by_distance_where_it_was():
    task = random_task(1, spread=2.0)
    solution = fewshot.solve("bd_cspn", task, sharpness=50.0, public_code=True)
    rectified = rectify(task, 50.0, public_code=True)
    torch.testing.assert_close(solution.prototypes, rectified.prototypes)
    assert torch.equal(solution.predictions, torch.cdist(task.query, rectified.prototypes).argmin(-1))
