import numpy as np
import pytest
import torch

import handful
from handful.inference import joint
from handful.large import calibrated_paddle, solve
from handful.large.progress import Progress
from tests.large_at_hand import Problem, large_problem


def dense(problem: Problem, **options):
    catalogue, queries = problem.catalogue, problem.queries
    task = handful.TaskBatch.single(catalogue.features, catalogue.labels, queries.features, catalogue.n_classes)
    return handful.solve("calibrated_paddle", task, **options)


def probabilities(found):
    return np.concatenate([part["probability"] for part in found.answers()])


@pytest.mark.parametrize("seed", [0, 1])
def test_whole_lists_give_the_dense_answer(seed, tmp_path):
    problem = large_problem(seed)
    expected = dense(problem)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", shard_rows=130, transform="raw")
    best = expected.log_assignments[0].exp().max(-1)
    np.testing.assert_array_equal(found.labels(), best.indices)
    np.testing.assert_allclose(probabilities(found), best.values, atol=1e-4)
    torch.testing.assert_close(found.proportions.float(), expected.proportions[0], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(found.prototypes, expected.prototypes[0][found.living], atol=1e-4, rtol=1e-4)
    assert (found.n_iter, found.converged) == (int(expected.n_iter[0]), bool(expected.converged[0]))
    assert found.dropped_mass < 1e-6


def test_short_lists_give_nearly_the_dense_answer_and_say_what_they_drop(tmp_path):
    problem = large_problem(n_classes=400, n_query=1500, n_present=20)
    expected = dense(problem)
    arguments = {"shard_rows": 400, "list_length": 12, "transform": "raw"}
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", **arguments)
    assert len(found.living) < 50  # the queries were compared again with these alone
    assert (found.labels() == expected.predictions[0].numpy()).mean() > 0.995
    assert 0 < found.dropped_mass < found.largest_dropped_mass < 1


def test_when_all_classes_occur_alike_proportions_are_uniform(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((30, 8))
    labels = np.repeat(np.arange(30), 4)
    truth = np.tile(np.arange(30), 4)
    around = [(centres[k] + 0.8 * rng.standard_normal((len(k), 8))).astype("float32") for k in (labels, truth)]
    banks = [
        handful.FeatureBank.from_arrays(x, k, [str(i) for i in range(30)])
        for x, k in zip(around, (labels, truth), strict=True)
    ]
    problem = Problem(*banks, truth)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", list_length=29, transform="raw")
    expected = dense(problem)
    assert (found.labels() == expected.predictions[0].numpy()).all()
    assert len(found.living) == 30


@pytest.mark.parametrize("list_length", [None, 12])
@pytest.mark.parametrize("stop_at", [1, 3, 9])
def test_a_run_that_was_interrupted_goes_on_to_the_same_answer(stop_at, list_length, tmp_path):
    problem = large_problem(n_classes=400, n_query=600, n_present=10)
    whole = solve(problem.catalogue, problem.queries, tmp_path / "whole", shard_rows=200, list_length=list_length)
    seen = []

    def stop(progress: Progress) -> None:
        seen.append(progress.iteration)
        if progress.stage == "iterate" and progress.iteration == stop_at:
            raise KeyboardInterrupt

    arguments = (problem.catalogue, problem.queries, tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        solve(*arguments, shard_rows=200, list_length=list_length, on_progress=stop)
    seen.clear()
    resumed = solve(*arguments, shard_rows=200, list_length=list_length, on_progress=lambda p: seen.append(p.iteration))
    assert min(seen) >= stop_at
    assert torch.equal(resumed.expected_counts, whole.expected_counts)
    assert torch.equal(resumed.prototypes, whole.prototypes)
    assert resumed.n_iter == whole.n_iter
    np.testing.assert_array_equal(probabilities(resumed), probabilities(whole))


def test_a_class_that_was_sent_away_too_early_returns(tmp_path, monkeypatch):
    problem = large_problem(n_classes=400, n_query=600, n_present=10)
    arguments = {"shard_rows": 200, "list_length": 12}
    whole = solve(problem.catalogue, problem.queries, tmp_path / "whole", **arguments)
    sent_away = int(whole.expected_counts.argmax())
    living = calibrated_paddle.CalibratedRun._living

    def harsh(self, state):
        kept = living(self, state)
        return kept if self.at.returns else kept[kept != sent_away]

    monkeypatch.setattr(calibrated_paddle.CalibratedRun, "_living", harsh)
    # At a concentration of one a class without queries keeps a proportion with which it can return.
    monkeypatch.setattr(joint, "concentration_step", lambda counts, alpha, n_classes: torch.ones_like(alpha))
    monkeypatch.setattr(joint, "dirichlet_divergence", lambda counts, alpha, n_classes: -1e9)
    monkeypatch.setattr(calibrated_paddle, "typical_shots", lambda shots: torch.tensor(torch.inf, dtype=torch.float64))
    found = solve(problem.catalogue, problem.queries, tmp_path / "harsh", **arguments)
    assert found.readmitted >= 1
    assert sent_away in found.living.tolist()
    assert float(found.expected_counts[sent_away]) == pytest.approx(float(whole.expected_counts[sent_away]), rel=0.2)
