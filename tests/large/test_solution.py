import pytest

from handful.large import solve
from tests.large_at_hand import large_problem


def test_what_is_known_about_a_batch(tmp_path):
    problem = large_problem()
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", shard_rows=150)
    assert float(found.proportions.sum()) == pytest.approx(1)
    assert len(found.labels()) == 400
    assert [len(part["row"]) for part in found.answers()] == [150, 150, 100]
    assert "60 classes" in repr(found)
    # Each is at least as sure as its most certain query, and a class that holds nothing is not there.
    best = {k: p for part in found.answers() for k, p in zip(part["label"], part["probability"], strict=True)}
    assert all(float(found.presence[k]) >= p - 1e-6 for k, p in best.items())
    assert found.presence[found.expected_counts == 0].tolist() == [0] * int((found.expected_counts == 0).sum())
    assert found.prototypes.shape == found.support_means.shape == (len(found.living), 24)
