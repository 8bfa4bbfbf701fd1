import numpy as np
import pytest

import handful
from handful.datasets import load_clinc150
from handful.errors import OptionError, TaskError
from handful.large import solve
from handful.large.solve import list_length_for
from tests.conftest import SHARED
from tests.large_at_hand import large_problem

BANKS = (
    "banking77-minilm",
    "caltech101-efflite0",
    "clinc150-minilm",
    "cub200-efflite0",
    "hwu64-minilm",
    "omniglot659-conv4",
    "tinyimagenet200-efflite0",
)


def five_shots_and_queries(bank, n_query, seed=0):
    """Rows of five shots a class, and of queries from a fifth of the classes; of others only if these run out."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(bank.n_rows)
    rows = rows[np.argsort(bank.labels[rows], kind="stable")]
    first = np.searchsorted(bank.labels[rows], np.arange(bank.n_classes))
    rank = np.arange(bank.n_rows) - first[bank.labels[rows]]
    support, rest = rows[rank < 5], rows[rank >= 5]
    present = np.isin(bank.labels[rest], rng.permutation(bank.n_classes)[: bank.n_classes // 5])
    queries = np.concatenate([rng.permutation(rest[present]), rng.permutation(rest[~present])])[:n_query]
    return support, queries


def assert_equal_to_dense(bank, n_query, method, tmp_path):
    support, rows = five_shots_and_queries(bank, n_query)
    assert len(rows) == n_query
    features = [bank.take(chosen).astype("float32") for chosen in (support, rows)]
    task = handful.TaskBatch.single(features[0], bank.labels[support], features[1], bank.n_classes)
    # PADDLE as published needs a scale; ten makes its classes compete on unit vectors.
    task = handful.transform("l2_times", task, factor=10.0) if method == "paddle" else handful.transform("l2", task)
    expected = handful.solve(method, task)
    catalogue = handful.FeatureBank.from_arrays(task.support[0].numpy(), bank.labels[support], bank.class_names)
    found = solve(catalogue, task.query[0].numpy(), tmp_path / "run", method=method, shard_rows=700)
    best = expected.log_assignments[0].exp().topk(2)
    columns = {name: np.concatenate([part[name] for part in found.answers()]) for name in next(found.answers())}
    np.testing.assert_array_equal(columns["label"], best.indices[:, 0])
    np.testing.assert_allclose(columns["probability"], best.values[:, 0], atol=1e-4)
    np.testing.assert_allclose(columns["runner_up_probability"], best.values[:, 1], atol=1e-4)
    np.testing.assert_allclose(found.proportions, expected.proportions[0], atol=1e-6)


@pytest.mark.parametrize("method", ["calibrated_paddle", "paddle"])
def test_equal_to_the_dense_solver_on_packaged_data(method, tmp_path):
    assert_equal_to_dense(load_clinc150(), 2000, method, tmp_path)


@pytest.mark.parametrize("method", ["calibrated_paddle", pytest.param("paddle", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", BANKS)
def test_equal_to_the_dense_solver_on_every_shared_bank(name, method, tmp_path):
    folder = SHARED / "data" / name
    if not folder.is_dir():
        pytest.skip(f"the bank is not here: expected a folder shared/data/{name} beside the repository")
    assert_equal_to_dense(handful.read_bank(folder), 2000, method, tmp_path)


def test_shards_do_not_change_the_answer_beyond_rounding(tmp_path):
    problem = large_problem()
    few = solve(problem.catalogue, problem.queries, tmp_path / "few", shard_rows=400)
    many = solve(problem.catalogue, problem.queries, tmp_path / "many", shard_rows=37)
    np.testing.assert_array_equal(few.labels(), many.labels())
    np.testing.assert_allclose(few.expected_counts, many.expected_counts, atol=1e-3)


def test_an_approximate_index_gives_nearly_all_labels(tmp_path):
    pytest.importorskip("faiss")
    problem = large_problem(n_classes=500, n_query=1500, n_present=20)
    exact = solve(problem.catalogue, problem.queries, tmp_path / "exact", list_length=12)
    approximate = {"list_length": 12, "shortlist": "faiss_ivf", "index_folder": tmp_path}
    found = solve(problem.catalogue, problem.queries, tmp_path / "ivf", **approximate)
    assert (found.labels() == exact.labels()).mean() > 0.99
    assert 0 < found.dropped_mass < 1
    # Another batch finds the index, another catalogue does not.
    (index,) = tmp_path.glob("*.index")
    written = index.stat().st_mtime_ns
    solve(problem.catalogue, problem.queries.take(range(100)), tmp_path / "again", **approximate)
    assert index.stat().st_mtime_ns == written
    other = large_problem(1, n_classes=500, n_query=100)
    solve(other.catalogue, other.queries, tmp_path / "other", **approximate)
    assert len(list(tmp_path.glob("*.index"))) == 2


def test_lists_are_whole_while_they_are_small():
    assert list_length_for(2000, 659) == 659
    assert list_length_for(1_000_000, 100_000) == 32
    assert list_length_for(1_000_000, 20) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "ici"}, "can be streamed"),
        ({"shortlist": "guess"}, "faiss_ivf"),
        ({"list_length": 1}, "list_length"),
        ({"transform": "cl2n"}, "need no row but their own"),
        ({"alpha": 3}, "has no option 'alpha'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message, tmp_path):
    problem = large_problem()
    with pytest.raises(OptionError, match=message):
        solve(problem.catalogue, problem.queries, tmp_path / "run", **arguments)


def test_dimensions_must_agree(tmp_path):
    with pytest.raises(TaskError, match="24 dimensions but the queries 3"):
        solve(large_problem().catalogue, np.zeros((5, 3), "float32"), tmp_path / "run")


def test_another_problem_does_not_resume_in_the_same_folder(tmp_path):
    problem = large_problem()
    solve(problem.catalogue, problem.queries, tmp_path / "run")
    with pytest.raises(OptionError, match="differs in queries"):
        solve(problem.catalogue, large_problem(1).queries, tmp_path / "run")
