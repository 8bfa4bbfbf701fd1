import numpy as np
import pytest
import torch

from handful.errors import OptionError, TaskError
from handful.features import FeatureBank, write_parquet
from handful.frame import Frame
from handful.large import inputs
from handful.large.inputs import as_bank, fingerprint, read_rows, sampled_task, sum_catalogue
from handful.task import TaskBatch
from tests.large_at_hand import large_problem


def test_means_are_those_of_a_frame_whatever_the_block(monkeypatch):
    problem = large_problem()
    bank = problem.catalogue
    frame = Frame(TaskBatch.single(bank.features, bank.labels, problem.queries.features, bank.n_classes))
    monkeypatch.setattr(inputs, "BLOCK_ROWS", 7)
    catalogue = sum_catalogue(bank, "raw")
    torch.testing.assert_close(catalogue.means, frame.support.mean()[0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(catalogue.origin, frame.origin[0])
    classes = torch.tensor([3, 5])
    torch.testing.assert_close(catalogue.moments(classes).sums[0].float(), frame.support.sums[0, classes])


def test_rows_are_transformed_as_they_are_read():
    bank = large_problem().queries
    lengths = read_rows(bank, 5, 9, "l2").norm(dim=-1)
    assert len(lengths) == 4
    torch.testing.assert_close(lengths, torch.ones(4))


def test_a_transform_that_needs_other_rows_is_refused():
    with pytest.raises(OptionError, match="range_scale"):
        sum_catalogue(large_problem().catalogue, "range_scale")


def test_a_class_without_example_is_named():
    bank = FeatureBank.from_arrays([[1.0], [2.0]], [0, 2], ["ant", "bee", "cat"])
    with pytest.raises(TaskError, match="'bee' has none"):
        sum_catalogue(bank, "raw")


def test_a_row_that_is_not_finite_is_named():
    bank = FeatureBank.from_arrays([[1.0], [np.nan]], [0, 0], ["ant"])
    with pytest.raises(TaskError, match="row 1"):
        read_rows(bank, 0, 2, "raw")


def test_queries_come_from_parquet_without_labels_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    queries = large_problem().queries
    column = pa.FixedSizeListArray.from_arrays(pa.array(queries.features.reshape(-1)), queries.dim)
    parquet.write_table(pa.table({"embedding": column}), tmp_path / "q.parquet")
    bank = as_bank(tmp_path / "q.parquet", tmp_path, role="query")
    assert isinstance(bank.stored, np.memmap)
    np.testing.assert_array_equal(bank.features, queries.features)
    write_parquet(queries, tmp_path / "labelled.parquet")
    assert as_bank(tmp_path / "labelled.parquet", tmp_path, role="catalogue").n_classes == 60


def test_a_catalogue_needs_labels(tmp_path):
    with pytest.raises(TaskError, match=r"pair \(X, y\)"):
        as_bank(np.eye(3), tmp_path, role="catalogue")
    assert as_bank((np.eye(3), ["b", "a", "b"]), tmp_path, role="catalogue").class_names == ("a", "b")


def test_a_sample_of_many_classes_is_small_and_of_few_is_all(monkeypatch):
    problem = large_problem()
    catalogue = sum_catalogue(problem.catalogue, "raw")
    assert sampled_task(problem.catalogue, catalogue, problem.queries, "raw").n_classes == 60
    monkeypatch.setattr(inputs, "SAMPLED_CLASSES", 10)
    small = sampled_task(problem.catalogue, catalogue, problem.queries, "raw")
    assert (small.n_classes, small.support.shape[1]) == (10, 40)
    monkeypatch.setattr(inputs, "SAMPLED_ROWS", 20)
    assert sampled_task(problem.catalogue, catalogue, problem.queries, "raw").n_classes == 5


def test_fingerprints_tell_banks_apart(tmp_path):
    one, other = large_problem(0).queries, large_problem(1).queries
    assert fingerprint(one) == fingerprint(large_problem(0).queries) != fingerprint(other)
    assert fingerprint(one.save(tmp_path / "bank")) == one.content_hash


@pytest.mark.parametrize("factor", [1e-30, 1e-20, 1e20, 1e37])
def test_features_of_any_scale_are_read_or_refused(factor):
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    bank = FeatureBank.from_arrays((rows * factor).astype("float32"), [0, 0], ["ant"])
    np.testing.assert_allclose(read_rows(bank, 0, 2, "l2").numpy(), rows / 5, rtol=1e-6)
    with pytest.raises(TaskError, match=r"longest of the rows 0 … 1 has the length .*use transform='l2'"):
        read_rows(bank, 0, 2, "raw")


def test_features_that_have_lost_digits_are_refused():
    bank = FeatureBank.from_arrays(np.full((2, 2), 1e-42, np.float32), [0, 0], ["ant"])
    with pytest.raises(TaskError, match="lost digits"):
        read_rows(bank, 0, 2, "l2")
