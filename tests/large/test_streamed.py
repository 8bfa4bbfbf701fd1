"""A streamed batch: the answer of `handful.model`, whatever the shards."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from handful.banks import FeatureBank
from handful.executors.executor import in_process
from handful.fitted import FittedModel
from handful.large import shard, solve
from handful.model import stream
from handful.model.labelling import label_batch
from handful.model.settings import DEFAULT
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem
from tests.worlds import Clouds

# Classes close enough that some queries have another label jointly than alone.
CLOSE = {"apart": 1.2, "even": True}
BATCHES = {
    "even": {**CLOSE},
    "heavy tail": {"seed": 1, "apart": 1.2},
    "one shot": {"shots": 1, **CLOSE},
    "unequal shots": {"shots": (1, 2, 4, 12), **CLOSE},
    "all classes": {"n_present": 60, "n_query": 600, **CLOSE},
    "very uneven": {"n_present": 60, "n_query": 90, "apart": 1.2},
    "apart": {"apart": 3.0, "even": True, "n_present": 12},
    "one class": {"n_classes": 1, "n_present": 1, "n_query": 50},
}


@cache
def batch(name="even", n_gone=0):
    """A fitted catalogue, without some of the classes present; the queries, and what they are."""
    problem = large_problem(**BATCHES[name])
    gone = np.unique(problem.truth)[:n_gone]
    kept = problem.catalogue.classes(np.setdiff1d(np.arange(problem.catalogue.n_classes), gone))
    return FittedModel.of_bank(kept, "l2"), problem.queries, problem.truth, np.isin(problem.truth, gone)


def in_memory(catalogue: FittedModel, queries: FeatureBank):
    return label_batch(catalogue.points(queries.features), catalogue.reference)


def column(found, name):
    return np.concatenate([part[name] for part in found.answers()])


@pytest.mark.parametrize("name", BATCHES)
def test_all_that_is_said_about_a_batch_is_what_the_model_says_in_memory(name, tmp_path):
    catalogue, queries, *_ = batch(name)
    expected, found = in_memory(catalogue, queries), solve(catalogue, queries, tmp_path / "run")
    np.testing.assert_array_equal(found.answer().codes[:, 0], expected.probabilities.argmax(1))
    known, n = 1 - np.nan_to_num(expected.unknown), catalogue.reference.head.mass.sum()
    best = np.sort(expected.probabilities, axis=1)[:, ::-1] * known[:, None] * (n + 1) / (n + 2)
    np.testing.assert_allclose(column(found, "certainty"), best[:, 0], atol=1e-4)
    if best.shape[1] > 1:
        np.testing.assert_allclose(column(found, "runner_up_certainty"), best[:, 1], atol=1e-4)
    else:
        assert (column(found, "runner_up") == -1).all()
    np.testing.assert_allclose(found.expected_counts, expected.expected_counts, atol=1e-2)
    np.testing.assert_allclose(found.presence, expected.presence, atol=1e-3)
    np.testing.assert_allclose(column(found, "unknown"), expected.unknown, atol=1e-3)
    assert found.joint_weight == pytest.approx(expected.joint_weight, abs=1e-4)
    assert found.confidence == pytest.approx(float(expected.confidence.mean()), abs=1e-5)
    assert found.unknown_interval == expected.interval
    assert (found.unknown_share is None) == np.isnan(expected.unknown).any() == (found.unknown_reason is not None)


def test_joint_labels_are_better_than_those_of_each_query_alone(tmp_path):
    """The batches above would show little if joint labels were those of each query alone."""
    catalogue, queries, truth, _ = batch()
    found = solve(catalogue, queries, tmp_path / "run")
    rows = queries.features / np.linalg.norm(queries.features, axis=1, keepdims=True) - np.asarray(catalogue.origin)
    alone = catalogue.reference.head.scores(rows).argmax(1)
    assert (found.answer().codes[:, 0] == truth).mean() > (alone == truth).mean() + 0.02
    assert found.joint_weight > 0.9
    np.testing.assert_array_equal(np.flatnonzero(found.presence >= 0.5), np.unique(truth))


def test_rows_that_decide_are_left_out_of_the_means_that_they_moved(tmp_path, monkeypatch):
    """All rows decide, so in parts or as a whole they have the same answer."""
    catalogue, queries, *_ = batch("one shot")
    whole = solve(catalogue, queries, tmp_path / "whole")
    monkeypatch.setattr(stream, "BLOCK_ROWS", 64)
    parts = solve(catalogue, queries, tmp_path / "parts")
    np.testing.assert_array_equal(whole.answer().codes[:, 0], parts.answer().codes[:, 0])
    np.testing.assert_allclose(column(whole, "certainty"), column(parts, "certainty"), atol=1e-4)


@pytest.mark.parametrize("n_gone", [0, 1])
def test_unknown_queries_are_found_if_there_are_any(n_gone, tmp_path):
    catalogue, queries, _, strange = batch("apart", n_gone)
    found = solve(catalogue, queries, tmp_path / "run", shard_rows=150)
    assert found.answer().rejected.any() == (n_gone > 0)
    chances = column(found, "unknown")
    assert found.answer().rejected.tolist() == (chances > 0.5).tolist()
    assert found.unknown_share == pytest.approx(chances.mean(), abs=1e-5)
    if n_gone:
        assert (chances[strange][:, None] > chances[~strange]).mean() > 0.95
        assert float(found.expected_counts.sum()) == pytest.approx(400 - chances.sum(), rel=1e-3)


def test_what_cannot_tell_says_why(tmp_path):
    problem = large_problem(shots=1)
    found = solve(problem.catalogue, problem.queries, tmp_path)
    assert np.isnan(column(found, "unknown")).all()
    assert (found.unknown_share, found.unknown_interval) == (None, (0.0, 1.0))
    assert "add examples" in found.unknown_reason
    assert not found.answer().rejected.any()


def test_more_rows_than_decide_are_labelled_by_classes_that_these_do_not_show(tmp_path):
    """Fifty classes of 1/rank sizes, and 40 rows that decide."""
    problem = large_problem(n_classes=60, n_query=3000, n_present=50, apart=0.9)
    catalogue = FittedModel.of_bank(problem.catalogue, transform="raw")
    few = replace(DEFAULT, most_deciding=40)
    sized = solve(catalogue.with_settings(few), problem.queries, tmp_path / "sized")
    bare = solve(catalogue.with_settings(replace(few, most_counted=40)), problem.queries, tmp_path / "bare")
    assert (sized.answer().codes[:, 0] == problem.truth).mean() > (
        bare.answer().codes[:, 0] == problem.truth
    ).mean() + 0.01


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("done", [1, 3])
def test_an_interrupted_run_labels_only_what_is_left_and_gives_the_same_bits(done, workers, tmp_path, monkeypatch):
    catalogue, queries, *_ = batch("apart", 1)
    arguments = {"shard_rows": 90, "executor": in_process(workers)}
    whole = solve(catalogue, queries, tmp_path / "whole", shard_rows=90)

    def stop(progress):
        if (progress.stage, progress.done) == ("label", done):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(catalogue, queries, tmp_path / "broken", **arguments, on_progress=stop)
    made = len(list((tmp_path / "broken" / "sums").iterdir()))
    assert made >= done
    again, original = [], shard.write_answers
    monkeypatch.setattr(shard, "write_answers", lambda *given: again.append(1) or original(*given))
    assert differences(solve(catalogue, queries, tmp_path / "broken", **arguments), whole) == []
    assert len(again) == 5 - made
    assert differences(solve(catalogue, queries, tmp_path / "broken", **arguments), whole) == []
    assert len(again) == 5 - made


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"", None])
@pytest.mark.parametrize("pattern", ["answers/part-000001.parquet", "sums/000001.npy"])
def test_a_shard_whose_files_are_damaged_exchanged_or_missing_is_labelled_again(pattern, damage, tmp_path):
    catalogue, queries, *_ = batch()
    whole = solve(catalogue, queries, tmp_path / "run", shard_rows=90)
    file = tmp_path / "run" / pattern
    if damage is None:
        file.unlink()
        (file.parent / file.name.replace("1", "2")).rename(file)
    else:
        file.write_bytes(damage(file.read_bytes()))
    again = solve(catalogue, queries, tmp_path / "run", shard_rows=90)
    assert differences(again, solve(catalogue, queries, tmp_path / "fresh", shard_rows=90)) == []
    np.testing.assert_array_equal(again.expected_counts, whole.expected_counts)


def test_totals_of_another_decision_are_not_used(tmp_path):
    catalogue, queries, *_ = batch()
    solve(catalogue, queries, tmp_path / "run", shard_rows=90)
    catalogue = catalogue.with_settings(replace(DEFAULT, most_deciding=200))
    again = solve(catalogue, queries, tmp_path / "run", shard_rows=90)
    assert differences(again, solve(catalogue, queries, tmp_path / "fresh", shard_rows=90)) == []


def test_copies_of_a_known_item_stay_known(tmp_path):
    rng = np.random.default_rng(0)
    clouds = Clouds(10, 12, rng)
    y = np.arange(10).repeat(5)
    X = clouds.around(y, 0.3)
    item = (clouds.centres[1] + 0.3 * rng.normal(size=12)).astype(np.float32)
    for n in (1, 11, 50):
        found = solve((X.astype(np.float32), y), np.tile(item, (n, 1)), tmp_path / str(n))
        assert not found.answer().rejected.any()
