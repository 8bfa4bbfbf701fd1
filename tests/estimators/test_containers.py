"""Containers: the same numbers in and out, whoever holds them."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from handful.errors import TaskError
from handful.estimators import TransductiveClassifier
from handful.estimators.containers import container_of, labels_of

RNG = np.random.default_rng(0)
CENTRES = np.array([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
X = np.repeat(CENTRES, 3, axis=0) + 0.5 * RNG.standard_normal((9, 3))
Y = np.repeat(["ant", "bee", "cat"], 3)
BATCH = CENTRES[[0, 0, 2, 2, 2]] + 0.5 * RNG.standard_normal((5, 3))
COLUMNS = ["a", "b", "c"]
AS = {
    "list": np.ndarray.tolist,
    "array": lambda x: x,
    "single precision": lambda x: x.astype(np.float32),
    "half precision": lambda x: x.astype(np.float16),
    "tensor": torch.from_numpy,
    "tensor of half precision": lambda x: torch.from_numpy(x).half(),
    "pandas": lambda x: pd.DataFrame(x, columns=COLUMNS, index=[f"row {i}" for i in range(len(x))]),
    "pandas, vectors": lambda x: pd.DataFrame({"v": list(x)}, index=[f"row {i}" for i in range(len(x))]),
    "polars": lambda x: pl.DataFrame(x, schema=COLUMNS),
    "polars, vectors": lambda x: pl.DataFrame({"v": x.tolist()}),
    "polars, arrays": lambda x: pl.DataFrame({"v": x}),
    "arrow": lambda x: pa.table(dict(zip(COLUMNS, x.T, strict=True))),
    "arrow, vectors": lambda x: pa.table({"v": x.tolist()}),
    "arrow, record batch": lambda x: pa.RecordBatch.from_pydict(dict(zip(COLUMNS, x.T, strict=True))),
    "arrow, record batch of vectors": lambda x: pa.RecordBatch.from_pydict({"v": x.tolist()}),
    "arrow, arrays": lambda x: pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 3)}),
}


def classifier() -> TransductiveClassifier:
    return TransductiveClassifier("soft_kmeans", feature_transform="raw")


EXPECTED = classifier().fit(X, Y).infer(BATCH)


@pytest.mark.parametrize("kind", AS)
def test_the_answer_is_the_same_in_every_container(kind):
    fitted = classifier().fit(AS[kind](X), Y)
    found = fitted.infer(AS[kind](BATCH))
    assert fitted.n_features_in_ == 3
    labels = found.labels.to_pylist() if "arrow" in kind else list(found.labels)
    assert labels == EXPECTED.labels.tolist() == ["ant", "ant", "cat", "cat", "cat"]
    tolerance = 2e-2 if "half" in kind else 1e-5 if "single" in kind else 1e-12
    table = np.asarray(found.probabilities)
    np.testing.assert_allclose(table, EXPECTED.probabilities, atol=tolerance)
    assert (np.asarray(fitted.predict_proba(AS[kind](BATCH))) == table).all()


def test_pandas_keeps_its_index():
    frame = AS["pandas"](BATCH)
    fitted = classifier().fit(AS["pandas"](X), pd.Series(Y))
    labels, probabilities = fitted.predict(frame), fitted.predict_proba(frame)
    assert isinstance(labels, pd.Series)
    assert labels.index.equals(frame.index)
    assert isinstance(probabilities, pd.DataFrame)
    assert probabilities.index.equals(frame.index)
    assert probabilities.columns.tolist() == ["ant", "bee", "cat"]
    assert (frame.join(labels)["label"] == labels).all()


def test_polars_and_arrow_get_their_own():
    by_polars = classifier().fit(AS["polars"](X), pl.Series(Y)).infer(AS["polars"](BATCH))
    assert isinstance(by_polars.labels, pl.Series)
    assert by_polars.probabilities.columns == ["ant", "bee", "cat"]
    by_arrow = classifier().fit(AS["arrow"](X), pa.array(Y.tolist())).infer(AS["arrow"](BATCH))
    assert isinstance(by_arrow.labels, pa.Array)
    assert isinstance(by_arrow.probabilities, pa.Table)
    assert by_arrow.probabilities.column_names == ["ant", "bee", "cat"]
    batch = AS["arrow, record batch of vectors"](BATCH)
    assert isinstance(classifier().fit(X, Y).predict_proba(batch), pa.RecordBatch)


def test_tensors_come_back_where_they_were():
    fitted = classifier().fit(AS["tensor"](X), torch.arange(9) // 3 + 10)
    batch = AS["tensor"](BATCH).requires_grad_()
    found = fitted.infer(batch)
    assert isinstance(found.labels, torch.Tensor)
    assert found.labels.tolist() == [10, 10, 12, 12, 12]
    assert found.labels.device == found.probabilities.device == batch.device
    assert not found.probabilities.requires_grad
    names = classifier().fit(AS["tensor"](X), Y).predict(batch)
    assert isinstance(names, np.ndarray)


def test_a_frame_with_other_columns_is_refused():
    fitted = classifier().fit(AS["pandas"](X), Y)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(AS["pandas"](BATCH).rename(columns={"a": "z"}))


@pytest.mark.parametrize("vectors", [[[1.0, 2.0, 3.0], [1.0]], [["a", "b", "c"]] * 2])
def test_vectors_that_are_none_are_refused(vectors):
    with pytest.raises(TaskError, match="must hold numbers and be equally long"):
        classifier().fit(pd.DataFrame({"v": vectors}), [0, 1])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (torch.zeros(5, 4), "with 3 features, got shape"),
        (torch.zeros(3), "must have the axes"),
        (torch.zeros(0, 3), "got shape"),
        (torch.full((2, 3), torch.nan), "NaN or infinity"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(wrong, sentence):
    with pytest.raises(TaskError, match=sentence):
        classifier().fit(X, Y).predict(wrong)


DAYS = [datetime.date(2026, 1, d) for d in (1, 2, 3)]


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (pd.Series(Y, dtype="category"), ["ant", "cat"]),
        (pd.Series(np.repeat([5, 7, 9], 3), dtype="Int64"), [5, 9]),
        (pd.Series(np.repeat(pd.to_datetime(DAYS), 3)), [pd.Timestamp(DAYS[0]), pd.Timestamp(DAYS[2])]),
        (pl.Series(np.repeat([5, 7, 9], 3)), [5, 9]),
        (pa.array(Y.tolist()), ["ant", "cat"]),
        (torch.arange(9) // 3, [0, 2]),
        (np.repeat(np.array(DAYS, dtype="datetime64[D]"), 3), [DAYS[0], DAYS[2]]),
        (np.repeat(np.array(DAYS, dtype=object), 3), [DAYS[0], DAYS[2]]),
    ],
    ids=["category", "nullable", "timestamps", "polars", "arrow", "tensor", "days", "objects"],
)
def test_labels_of_every_container_come_back_by_value(labels, values):
    found = classifier().fit(X, labels).predict(BATCH)
    expected = [values[0]] * 2 + [values[1]] * 3
    assert type(found.tolist()[0]) is type(np.array(expected, dtype=found.dtype).tolist()[0])
    assert found.dtype.kind == np.asarray(labels).dtype.kind or isinstance(labels, pd.Series)
    assert found.tolist() == np.array(expected, dtype=found.dtype).tolist()


def test_subclasses_and_strangers():
    class Frame(pd.DataFrame):
        pass

    assert container_of(Frame()) is container_of(pd.DataFrame())
    assert container_of([[1.0]]) is container_of(np.eye(2))
    assert labels_of(["a"]) == ["a"]
