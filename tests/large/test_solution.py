import numpy as np
import pytest

from handful.large import solve
from tests.large_at_hand import large_problem


def test_what_is_known_about_a_batch(tmp_path):
    problem = large_problem(even=True)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", shard_rows=150)
    assert float(found.answer().class_proportions.sum()) == pytest.approx(1)
    assert len(found.answer().codes[:, 0]) == 400
    assert [len(part["row"]) for part in found.answers()] == [150, 150, 100]
    assert "60 classes" in repr(found)
    assert ((found.presence >= 0) & (found.presence <= 1)).all()
    occurs = np.isin(np.arange(60), problem.truth)
    assert (found.presence >= 0.5).tolist() == occurs.tolist()
    assert 0 < found.joint_weight <= 1
