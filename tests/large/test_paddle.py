import numpy as np
import pytest
import torch

import handful
from handful.errors import OptionError
from handful.large import paddle, solve
from tests.large_at_hand import Problem, large_problem


def dense(problem: Problem, **options):
    catalogue, queries = problem.catalogue, problem.queries
    task = handful.TaskBatch.single(catalogue.features, catalogue.labels, queries.features, catalogue.n_classes)
    return handful.solve("paddle", task, **options)


@pytest.mark.parametrize("options", [{}, {"complexity_weight": 100.0}, {"proportion_floor": 1e-6}, {"max_iter": 3}])
def test_whole_lists_give_the_dense_answer(options, tmp_path):
    problem = large_problem()
    expected = dense(problem, **options)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", method="paddle", shard_rows=130, **options)
    best = expected.log_assignments[0].exp().max(-1)
    np.testing.assert_array_equal(found.labels(), best.indices)
    probability = np.concatenate([part["probability"] for part in found.answers()])
    np.testing.assert_allclose(probability, best.values, atol=1e-4)
    torch.testing.assert_close(found.proportions.float(), expected.proportions[0], atol=1e-6, rtol=1e-3)
    torch.testing.assert_close(found.prototypes, expected.prototypes[0][found.living], atol=1e-4, rtol=1e-3)
    assert found.converged == bool(expected.converged[0])


def test_a_run_that_was_interrupted_goes_on_to_the_same_answer(tmp_path):
    problem = large_problem()
    arguments = {"method": "paddle", "shard_rows": 130, "list_length": 12}
    whole = solve(problem.catalogue, problem.queries, tmp_path / "whole", **arguments)

    def stop(progress):
        if progress.stage == "iterate" and progress.change is not None and progress.iteration == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(problem.catalogue, problem.queries, tmp_path / "broken", on_progress=stop, **arguments)
    resumed = solve(problem.catalogue, problem.queries, tmp_path / "broken", **arguments)
    assert resumed.n_iter == whole.n_iter > 2
    assert torch.equal(resumed.prototypes, whole.prototypes)
    np.testing.assert_array_equal(resumed.labels(), whole.labels())


def test_a_class_that_was_sent_away_too_early_returns(tmp_path, monkeypatch):
    problem = large_problem()
    whole = solve(problem.catalogue, problem.queries, tmp_path / "whole", method="paddle")
    sent_away = int(whole.expected_counts.argmax())
    iterate = paddle.PaddleRun._iterate

    def without(self):
        iterate(self)
        if self.at.n_iter == 3:  # it goes, and the run is declared done
            kept = self.at.living_before != sent_away
            self.at.living_before = self.at.living_before[kept]
            self.at.prototypes_before, self.at.dual_before = self.at.prototypes_before[kept], self.at.dual_before[kept]
            kept = self.at.living != sent_away
            self.at.living = self.at.living[kept]
            self.at.prototypes, self.at.dual = self.at.prototypes[kept], self.at.dual[kept]
            self.at.converged = True

    monkeypatch.setattr(paddle.PaddleRun, "_iterate", without)
    found = solve(problem.catalogue, problem.queries, tmp_path / "harsh", method="paddle")
    assert found.readmitted >= 1
    np.testing.assert_array_equal(found.labels(), whole.labels())


def test_what_cannot_be_streamed_is_refused(tmp_path):
    problem = large_problem()
    with pytest.raises(OptionError, match="no trace"):
        solve(problem.catalogue, problem.queries, tmp_path / "run", method="paddle", record=True)
