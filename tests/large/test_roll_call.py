from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
import torch

import handful
from handful.catalogue import Catalogue
from handful.estimators import PaddleClassifier
from handful.inference.roll_call_stack import label
from handful.large import roll_call, solve
from handful.large.crew import in_process
from handful.large.progress import Progress
from tests.kills_at_hand import differences
from tests.large_at_hand import Problem, large_problem

# Classes close enough that some queries have another label jointly than alone.
CLOSE = {"apart": 1.2, "even": True}
BATCHES = {
    "even": large_problem(**CLOSE),
    "heavy tail": large_problem(1, apart=1.2),
    "one shot": large_problem(shots=1, **CLOSE),
    "unequal shots": large_problem(shots=(1, 2, 4, 12), **CLOSE),
    "all classes": large_problem(n_present=60, n_query=600, **CLOSE),
    "very uneven": large_problem(n_present=60, n_query=90, apart=1.2),
    "very uneven, large": large_problem(n_present=60, n_query=600, apart=1.2),
    "one class": large_problem(n_classes=1, n_present=1, n_query=50),
}


def dense(problem: Problem, **options):
    catalogue, queries = problem.catalogue, problem.queries
    task = handful.TaskBatch.single(catalogue.features, catalogue.labels, queries.features, catalogue.n_classes)
    return handful.solve("roll_call", task, **options)


@cache
def fitted_once(name: str) -> Catalogue:
    return Catalogue.of_bank(BATCHES[name].catalogue, "l2")


def fitted(problem: Problem) -> Catalogue:
    return fitted_once(next(name for name, batch in BATCHES.items() if batch is problem))


def in_memory(problem: Problem):
    batch = torch.from_numpy(problem.queries.features).unsqueeze(0)
    return label(fitted(problem).against(batch), max_iter=200, tol=1e-3)


def probabilities(found):
    return np.concatenate([part["probability"] for part in found.answers()])


def stop_at(stage: str, iteration: int):
    def stop(progress: Progress) -> None:
        if (progress.stage, progress.iteration) == (stage, iteration):
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("name", BATCHES)
def test_whole_lists_give_the_dense_answer(name, tmp_path):
    """The closed one: a batch with unknown items is labelled again in memory, but not if it is streamed."""
    problem = BATCHES[name]
    batch = torch.from_numpy(problem.queries.features).unsqueeze(0)
    expected = label(Catalogue.of_bank(problem.catalogue, "raw").against(batch), max_iter=200, tol=1e-3)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", shard_rows=130, transform="raw")
    best = expected.log_probabilities[0].exp().max(-1)
    np.testing.assert_array_equal(found.labels(), best.indices)
    np.testing.assert_allclose(probabilities(found), best.values, atol=1e-4)
    torch.testing.assert_close(found.expected_counts, expected.expected_counts[0], atol=1e-3, rtol=1e-4)
    assert (found.n_iter, found.converged) == (int(expected.n_iter[0]), bool(expected.converged[0]))
    assert found.dropped_mass < 1e-6


@pytest.mark.parametrize("name", BATCHES)
def test_all_that_is_said_about_a_batch_is_what_the_classifier_says(name, tmp_path):
    problem = BATCHES[name]
    classifier = PaddleClassifier().fit(problem.catalogue.features, problem.catalogue.labels)
    expected = classifier.infer(problem.queries.features)
    found = solve(fitted(problem), problem.queries, tmp_path / "run", shard_rows=130)
    np.testing.assert_array_equal(found.labels(), expected.probabilities.argmax(-1))
    assert found.joint_weight == pytest.approx(expected.joint_weight, rel=1e-6)
    np.testing.assert_allclose(found.expected_counts, expected.expected_counts, atol=1e-3)
    np.testing.assert_allclose(found.presence, expected.presence, atol=1e-3)


def test_joint_labels_are_better_than_those_of_each_query_alone(tmp_path):
    """The batches above would show little if joint labels were those of each query alone."""
    problem = BATCHES["even"]
    found = solve(fitted(problem), problem.queries, tmp_path / "run")
    alone = in_memory(problem).alone[0].numpy()
    assert (found.labels() == problem.truth).mean() > (alone == problem.truth).mean() + 0.02
    assert found.joint_weight > 0.9
    np.testing.assert_array_equal((found.presence >= 0.5).nonzero()[:, 0], np.unique(problem.truth))


def test_in_a_very_uneven_batch_each_query_is_labelled_alone(tmp_path):
    problem = BATCHES["very uneven"]
    found = solve(fitted(problem), problem.queries, tmp_path / "run")
    assert found.joint_weight == 0
    expected = in_memory(problem)
    np.testing.assert_array_equal(found.labels(), expected.alone[0])
    np.testing.assert_allclose(probabilities(found), expected.log_probabilities[0].exp().amax(-1), atol=1e-5)
    assert found.confidence == pytest.approx(float(expected.confidence.mean()), abs=1e-6)
    assert in_memory(BATCHES["very uneven, large"]).joint_weight[0] > 0


def test_short_lists_give_nearly_the_dense_answer_and_say_what_they_drop(tmp_path):
    problem = large_problem(n_classes=400, n_query=1500, n_present=20, apart=1.5, even=True)
    best = dense(problem).log_assignments[0].exp().max(-1)
    arguments = {"shard_rows": 400, "list_length": 12, "transform": "raw"}
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", **arguments)
    assert (found.labels() == best.indices.numpy()).mean() > 0.995
    assert np.abs(probabilities(found) - best.values.numpy()).mean() < 5e-3
    assert 0 < found.dropped_mass < found.largest_dropped_mass < 1


def test_the_spread_of_a_batch_comes_from_some_of_its_queries_if_no_class_has_two_examples(tmp_path, monkeypatch):
    problem = BATCHES["one shot"]
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    assert catalogue.head.spread is None  # nothing can be told from the examples
    seen = []

    def watch(head, centre, n_query, spread, count):
        seen.append(float(spread))
        return alone(head, centre, n_query, spread, count)

    alone = roll_call.alone
    monkeypatch.setattr(roll_call, "alone", watch)
    for sampled in (1024, 100):
        monkeypatch.setattr(roll_call, "SAMPLED_QUERIES", sampled)
        solve(catalogue, problem.queries, tmp_path / str(sampled))
    whole = float(catalogue.against(torch.from_numpy(problem.queries.features).unsqueeze(0)).spread[0])
    assert seen[0] == pytest.approx(whole, rel=1e-5)
    assert seen[1] != seen[0]
    assert seen[1] == pytest.approx(whole, rel=0.2)


def test_a_class_that_no_query_would_have_alone_stays_absent(tmp_path, monkeypatch):
    """As in a stack in memory: its count is nothing in every iteration, so no count of it can grow."""
    problem = BATCHES["one shot"]
    counts = []
    save = roll_call.Run.save

    def watch(self, tensors, notes):
        counts.append(tensors["joint_counts"])
        save(self, tensors, notes)

    monkeypatch.setattr(roll_call.Run, "save", watch)
    solve(fitted(problem), problem.queries.take(range(40)), tmp_path / "run")
    absent = counts[0] == 0
    assert 0 < int(absent.sum()) < 60
    assert len(counts) > 5
    assert all(bool((later[absent] == 0).all()) for later in counts)


@pytest.mark.parametrize("list_length", [None, 12])
@pytest.mark.parametrize("stop", [1, 3, 9])
def test_a_run_that_was_interrupted_goes_on_to_the_same_answer(stop, list_length, tmp_path):
    problem = large_problem(n_classes=100, n_query=600, n_present=10, shots=(3, 5), **CLOSE)
    arguments = {"shard_rows": 200, "list_length": list_length}
    whole = solve(problem.catalogue, problem.queries, tmp_path / "whole", **arguments)
    assert whole.n_iter > 9
    broken = (problem.catalogue, problem.queries, tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        solve(*broken, **arguments, on_progress=stop_at("iterate", stop))
    seen = []
    resumed = solve(*broken, **arguments, on_progress=lambda p: seen.append((p.stage, p.iteration)))
    assert min(iteration for _, iteration in seen) >= stop
    assert "add up" not in dict(seen)  # offset and shares come from the checkpoint
    assert differences(resumed, whole) == []


@pytest.mark.parametrize("stage", ["compare", "add up"])
def test_a_run_that_was_interrupted_before_its_first_checkpoint_gives_the_same_answer(stage, tmp_path):
    problem = BATCHES["unequal shots"]
    whole = solve(fitted(problem), problem.queries, tmp_path / "whole", shard_rows=130)
    broken = (fitted(problem), problem.queries, tmp_path / "broken")
    with pytest.raises(KeyboardInterrupt):
        solve(*broken, shard_rows=130, on_progress=stop_at(stage, 0))
    assert not (tmp_path / "broken" / "state.safetensors").exists()
    assert len(list((tmp_path / "broken").glob("lists-*/*.npy"))) == (1 if stage == "compare" else 4)
    assert differences(solve(*broken, shard_rows=130), whole) == []


def test_a_run_that_was_interrupted_while_offset_and_shares_are_estimated_gives_the_same_answer(tmp_path, monkeypatch):
    problem = BATCHES["unequal shots"]
    whole = solve(fitted(problem), problem.queries, tmp_path / "whole", shard_rows=130)
    broken = (fitted(problem), problem.queries, tmp_path / "broken")
    counted = []
    with monkeypatch.context() as patch:

        def count(self, name, tilts):
            counted.append(name)
            if len(counted) == 5:
                raise KeyboardInterrupt
            return original(self, name, tilts)

        original = roll_call.Run.count
        patch.setattr(roll_call.Run, "count", count)
        with pytest.raises(KeyboardInterrupt):
            solve(*broken, shard_rows=130)
    assert not (tmp_path / "broken" / "state.safetensors").exists()
    assert differences(solve(*broken, shard_rows=130), whole) == []


def test_a_finished_run_counts_nothing_again(tmp_path, monkeypatch):
    problem = BATCHES["even"]
    whole = solve(fitted(problem), problem.queries, tmp_path / "run", shard_rows=130)
    monkeypatch.setattr(roll_call.Run, "count", None)
    assert differences(solve(fitted(problem), problem.queries, tmp_path / "run", shard_rows=130), whole) == []


def test_a_limit_of_iterations_is_kept_and_said(tmp_path):
    problem = BATCHES["one shot"]
    found = solve(problem.catalogue, problem.queries, tmp_path / "run", max_iter=1, transform="raw")
    expected = dense(problem, max_iter=1)
    assert not found.converged
    assert found.n_iter == int(expected.n_iter[0]) == roll_call.DONE  # one in each stage
    np.testing.assert_array_equal(found.labels(), expected.predictions[0])


def test_iterations_read_the_lists_alone(tmp_path):
    """After the comparison and the mean, no row of the queries is read again before unknown ones are looked for."""
    problem = BATCHES["even"]
    operations = []

    @contextmanager
    def watched(work):
        with in_process()(work) as crew:
            add_up = crew.add_up
            crew.add_up = lambda *asked, **report: (operations.append(asked[0]), add_up(*asked, **report))[1]
            yield crew

    solve(fitted(problem), problem.queries, tmp_path / "run", executor=watched)
    assert operations[:2] == ["compare", "total"]
    assert set(operations[2:-3]) == {"count"}
    assert operations[-3:] == ["answer", "look", "answer"]
