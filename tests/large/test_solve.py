import shutil
import tempfile
import uuid
from dataclasses import replace

import numpy as np
import pytest
import torch

import handful
import handful_fewshot as fewshot
from handful.banks import write_parquet
from handful.datasets import load_clinc150
from handful.errors import FileFormatError, OptionError, StorageError, TaskError
from handful.executors.executor import in_process
from handful.fitted import FittedModel
from handful.large import solve
from handful.machine.folders import folder_at
from handful.machine.lock import only_writer
from handful.model.labelling import label_batch
from tests.conftest import SHARED
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem
from tests.stores_at_hand import upload

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
    """Rows of five examples per class, and of queries from a fifth of the classes; of others only if these run out."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(bank.n_rows)
    rows = rows[np.argsort(bank.labels[rows], kind="stable")]
    first = np.searchsorted(bank.labels[rows], np.arange(bank.n_classes))
    rank = np.arange(bank.n_rows) - first[bank.labels[rows]]
    support, rest = rows[rank < 5], rows[rank >= 5]
    present = np.isin(bank.labels[rest], rng.permutation(bank.n_classes)[: bank.n_classes // 5])
    queries = np.concatenate([rng.permutation(rest[present]), rng.permutation(rest[~present])])[:n_query]
    return support, queries


def assert_equal_to_dense(bank, n_query, tmp_path):
    support, rows = five_shots_and_queries(bank, n_query)
    assert len(rows) == n_query
    features = [bank.take(chosen).astype("float32") for chosen in (support, rows)]
    task = fewshot.TaskBatch.single(features[0], bank.labels[support], features[1], bank.n_classes)
    task = fewshot.transform("l2", task)
    examples = handful.FeatureBank.from_arrays(task.support[0].numpy(), bank.labels[support], bank.class_names)
    catalogue = FittedModel.of_bank(examples, "raw")
    labels = solve(catalogue, task.query[0].numpy(), tmp_path / "run", shard_rows=700).answer().codes[:, 0]
    # In memory other rows decide, and none beyond them are counted.
    whole = label_batch(task.query[0].numpy() - catalogue.origin, catalogue.reference).probabilities.argmax(1)
    assert (labels == whole).mean() >= 0.9
    truth = bank.labels[rows]
    assert (labels == truth).mean() > (whole == truth).mean() - 0.005


def test_equal_to_the_dense_solver_on_packaged_data(tmp_path):
    assert_equal_to_dense(load_clinc150(), 2000, tmp_path)


@pytest.mark.slow  # on the packaged bank, above, it is always tested
@pytest.mark.parametrize("name", BANKS)
def test_equal_to_the_dense_solver_on_every_shared_bank(name, tmp_path):
    folder = SHARED / "data" / name
    if not folder.is_dir():
        pytest.skip(f"the bank is not here: expected a folder shared/data/{name} beside the repository")
    assert_equal_to_dense(handful.read_bank(folder), 2000, tmp_path)


def test_shards_do_not_change_the_answer_beyond_rounding(tmp_path):
    problem = large_problem(even=True, apart=1.2)
    few = solve(problem.catalogue, problem.queries, tmp_path / "few", shard_rows=400)
    many = solve(problem.catalogue, problem.queries, tmp_path / "many", shard_rows=37)
    assert few.joint_weight == many.joint_weight
    np.testing.assert_array_equal(few.answer().codes[:, 0], many.answer().codes[:, 0])
    np.testing.assert_allclose(few.expected_counts, many.expected_counts, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shard_rows": 0}, "at least 1"),
        ({"transform": "cl2n"}, "transform each row alone"),
        ({"candidates": [1]}, "classes of a fitted catalogue; give a FittedModel"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message, tmp_path):
    problem = large_problem()
    with pytest.raises(OptionError, match=message):
        solve(problem.catalogue, problem.queries, tmp_path / "run", **arguments)


def test_a_fitted_catalogue_needs_examples_and_its_own_transform(tmp_path):
    batch = np.eye(4, dtype="float32")
    with pytest.raises(TaskError, match="has names alone"):
        solve(FittedModel.of_names(batch, np.arange(4)), batch, tmp_path / "names")
    with pytest.raises(OptionError, match="was fitted with transform 'l2', got 'raw'"):
        solve(FittedModel.of(batch, np.arange(4)), batch, tmp_path / "raw", transform="raw")


def test_answers_that_were_cut_are_refused_where_they_are_read(tmp_path):
    problem = large_problem()
    found = solve(problem.catalogue, problem.queries, tmp_path)
    file = next(tmp_path.glob("answers/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FileFormatError, match="was cut short, changed or exchanged"):
        found.answer()


def test_dimensions_must_agree(tmp_path):
    with pytest.raises(TaskError, match="24 dimensions but the queries 3"):
        solve(large_problem().catalogue, np.zeros((5, 3), "float32"), tmp_path / "run")


def one_row_changed(bank):
    """The same bank but for one number in a row that is neither at the beginning, in the middle nor at the end."""
    features = bank.features.copy()
    features[len(features) // 3, 5] += 1
    return handful.FeatureBank.from_arrays(features, bank.labels, bank.class_names)


def as_array(bank, place):
    return bank.features


def as_bank_in_memory(bank, place):
    return bank


def as_bank_on_disk(bank, place):
    shutil.rmtree(place / "bank", ignore_errors=True)
    bank.save(place / "bank")
    return str(place / "bank")


def as_bank_changed_in_place(bank, place):
    """Its manifest, with the hash in it, stays as it was."""
    if not (place / "bank").exists():
        bank.save(place / "bank")
    np.load(place / "bank" / "features.npy", mmap_mode="r+")[:] = bank.features
    return place / "bank"


def as_parquet(bank, place):
    pytest.importorskip("pyarrow")
    (place / "bank.parquet").unlink(missing_ok=True)
    handful.banks.write_parquet(bank, place / "bank.parquet")
    return place / "bank.parquet"


def as_npz(bank, place):
    np.savez(place / "bank.npz", features=bank.features, labels=bank.labels)
    return place / "bank.npz"


def as_pair(bank, place):
    return bank.features, bank.labels


@pytest.mark.parametrize(
    ("role", "kind", "called"),
    [
        ("queries", as_array, "the array of queries"),
        ("queries", as_bank_on_disk, "/bank"),
        ("queries", as_parquet, "bank.parquet"),
        ("catalogue", as_pair, r"the pair \(X, y\) of the catalogue"),
        ("catalogue", as_bank_in_memory, "the bank of the catalogue"),
        ("catalogue", as_bank_changed_in_place, "/bank"),
        ("catalogue", as_npz, "bank.npz"),
    ],
)
def test_a_changed_input_in_a_used_folder_is_refused_by_name(role, kind, called, tmp_path):
    problem = large_problem(n_query=600)
    inputs = {"catalogue": problem.catalogue, "queries": problem.queries}
    arguments = {**inputs, "folder": tmp_path / "run"}
    solve(**{**arguments, role: kind(inputs[role], tmp_path)})
    solve(**{**arguments, role: kind(inputs[role], tmp_path)})  # made again, with the same content
    with pytest.raises(OptionError, match=f"{called} has changed since it was given as the {role} of the run in"):
        solve(**{**arguments, role: kind(one_row_changed(inputs[role]), tmp_path)})


def test_another_parquet_file_is_not_answered_with_the_copy_of_the_first(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    problem = large_problem()
    for name, rows in (("a", slice(0, 200)), ("b", slice(200, 400))):
        parquet.write_table(pa.table({"v": list(problem.queries.features[rows])}), tmp_path / f"{name}.parquet")
    first = solve(problem.catalogue, tmp_path / "a.parquet", tmp_path / "run").answer().codes[:, 0]
    with pytest.raises(OptionError, match=r"b.parquet does not contain the queries .* was started with .*a.parquet"):
        solve(problem.catalogue, tmp_path / "b.parquet", tmp_path / "run")
    second = solve(problem.catalogue, tmp_path / "b.parquet", tmp_path / "other").answer().codes[:, 0]
    assert (second == problem.truth[200:]).mean() > 0.9
    (tmp_path / "a.parquet").rename(tmp_path / "moved.parquet")
    again = solve(problem.catalogue, tmp_path / "moved.parquet", tmp_path / "run").answer().codes[:, 0]
    np.testing.assert_array_equal(again, first)


def test_inputs_that_do_not_fit_leave_the_folder_free(tmp_path):
    problem = large_problem()
    with pytest.raises(TaskError, match="dimensions"):
        solve(problem.catalogue, problem.queries.features[:, :3], tmp_path / "run")
    solve(problem.catalogue, problem.queries, tmp_path / "run")


def test_a_second_process_is_refused(tmp_path):
    problem = large_problem()
    with only_writer(tmp_path, OptionError), pytest.raises(OptionError, match="another process is writing to"):
        solve(problem.catalogue, problem.queries, tmp_path)


def test_the_number_of_threads_does_not_matter(tmp_path):
    problem = large_problem(n_classes=500, n_query=300, n_present=6, dim=64, even=True)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 4):
            torch.set_num_threads(threads)
            found.append(solve(problem.catalogue, problem.queries, tmp_path / str(threads)))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found[0].expected_counts, found[1].expected_counts)
    np.testing.assert_array_equal(found[0].answer().codes[:, 0], found[1].answer().codes[:, 0])


def test_the_transform_is_by_default_that_of_the_method(tmp_path):
    problem = large_problem()
    solve(problem.catalogue, problem.queries, tmp_path)
    solve(problem.catalogue, problem.queries, tmp_path, transform="l2")
    with pytest.raises(OptionError, match=r"differs in transform \('l2', now 'raw'\)"):
        solve(problem.catalogue, problem.queries, tmp_path, transform="raw")


def test_it_is_said_how_far_a_batch_is_labelled_jointly(tmp_path):
    problem = large_problem(even=True)
    found = solve(problem.catalogue, problem.queries, tmp_path / "run")
    assert 0.9 < found.joint_weight <= 1
    assert 0 < found.confidence <= 1


def test_inputs_and_outputs_at_urls_give_the_answer_of_a_folder(tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    problem = large_problem()
    here = solve(problem.catalogue, problem.queries, tmp_path / "here", shard_rows=100)
    place = f"memory://{uuid.uuid4().hex}"
    for name in ("catalogue", "queries"):
        getattr(problem, name).save(tmp_path / name)
        upload(tmp_path / name, f"{place}/{name}")
    inputs, run = (f"{place}/catalogue", f"{place}/queries"), f"{place}/run"
    found = solve(*inputs, run, shard_rows=100)
    assert differences(found, here) == []
    assert (found.folder, repr(found).endswith(f"answers in {run}/answers)")) == (run, True)
    assert folder_at(run).names() == ["answers", "run.json", "sums"]
    assert not list(tmp_path.glob("handful-*"))  # lists, downloads: nothing is left on the disk
    # Called again it resumes, from wherever the same content is; another run is refused.
    again = solve(problem.catalogue, problem.queries, run, shard_rows=100)
    assert differences(again, here) == []
    with pytest.raises(OptionError, match=f"{run} contains a run that differs in shard_rows"):
        solve(*inputs, run, shard_rows=50)
    with folder_at(run).written("answers/part-000002.parquet") as file:
        file.write_bytes(b"damaged")
    assert differences(solve(*inputs, run, shard_rows=100), here) == []


def test_a_parquet_file_at_a_url_is_copied_to_the_run(tmp_path):
    pytest.importorskip("fsspec")
    problem = large_problem()
    place = f"memory://{uuid.uuid4().hex}"
    write_parquet(problem.queries, tmp_path / "queries.parquet")
    folder_at(place).create("queries.parquet", (tmp_path / "queries.parquet").read_bytes())
    here = solve(problem.catalogue, problem.queries, tmp_path / "here", shard_rows=100)
    for folder in (f"{place}/run", tmp_path / "there"):
        found = solve(problem.catalogue, f"{place}/queries.parquet", folder, shard_rows=100)
        assert differences(found, here) == []
        assert [name for name in folder_at(folder).names() if name.startswith("queries-")]


def test_answers_that_went_elsewhere_are_missed(tmp_path):
    """Nodes without a common folder each see a disk of their own under the path of the run."""

    def elsewhere(label, tasks):
        (tmp_path / "another disk").mkdir()
        moved = {"folder": folder_at(tmp_path / "another disk")}
        return in_process()(label, ((replace(work.value, **moved), *rest) for work, *rest in tasks))

    problem = large_problem()
    with pytest.raises(StorageError, match=r"answers of 4 shards are not in .* give a URL as the folder"):
        solve(problem.catalogue, problem.queries, tmp_path / "run", shard_rows=100, executor=elsewhere)
