"""Containers: every kind of table gives the same numbers, and answers come back as a table of that kind."""

import datetime

import numpy as np
import pytest

import handful
from handful.errors import TaskError
from handful.estimators import BatchClassifier
from handful.estimators.containers import column_of, family_of, frame_of, labels_of, vectors_of
from tests.optional import optional

pd = optional("pandas")
pl = optional("polars")
pa = optional("pyarrow")
torch = optional("torch")

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


def classifier() -> BatchClassifier:
    return BatchClassifier()


EXPECTED = classifier().fit(X, Y).infer(BATCH)


@pytest.mark.parametrize("kind", AS)
def test_the_answer_is_the_same_in_every_container(kind):
    fitted = classifier().fit(AS[kind](X), Y)
    found = fitted.infer(AS[kind](BATCH))
    assert fitted.n_features_in_ == 3
    assert found.labels.tolist() == EXPECTED.labels.tolist() == ["ant", "ant", "cat", "cat", "cat"]
    tolerance = 2e-2 if "half" in kind else 1e-5 if "single" in kind else 1e-12
    assert type(found.probabilities) is type(found.labels) is np.ndarray
    np.testing.assert_allclose(found.probabilities, EXPECTED.probabilities, atol=tolerance)
    assert (fitted.predict_proba(AS[kind](BATCH)) == found.probabilities).all()


def test_a_frame_with_other_columns_is_refused():
    fitted = classifier().fit(AS["pandas"](X), Y)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(AS["pandas"](BATCH).rename(columns={"a": "z"}))


@pytest.mark.parametrize("vectors", [[[1.0, 2.0, 3.0], [1.0]], [["a", "b", "c"]] * 2])
def test_vectors_that_are_none_are_refused(vectors):
    with pytest.raises(TaskError, match="must be numbers and have the same length"):
        classifier().fit(pd.DataFrame({"v": vectors}), [0, 1])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (torch.zeros(5, 4), "X has 4 features, but BatchClassifier is expecting 3"),
        (torch.zeros(3), "Expected 2D array, got 1D array"),
        (torch.zeros(0, 3), "0 sample"),
        (torch.full((2, 3), torch.nan), "contains NaN"),
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


def test_a_table_is_of_the_kind_of_the_rows():
    columns = {
        "label": np.array(["ant", "bee"]),
        "code": np.array([None, 3], dtype=object),
        "share": np.array([0.5, 1]),
    }
    for rows, kind in (
        (AS["pandas"](BATCH), pd.DataFrame),
        (BATCH, pd.DataFrame),
        (AS["tensor"](BATCH), pd.DataFrame),
        (AS["polars"](BATCH), pl.DataFrame),
        (AS["arrow, record batch"](BATCH), pa.Table),
    ):
        table = frame_of(rows).rows(np.array([3, 1]))(columns)
        assert type(table) is kind
        assert np.asarray(table["label"]).tolist() == ["ant", "bee"]
        if isinstance(rows, pd.DataFrame):
            assert table.index.tolist() == ["row 3", "row 1"]
            assert frame_of(rows).rows(None)(columns).index.tolist() == [0, 1]


def test_tensors_that_need_gradients_are_read():
    batch = AS["tensor"](BATCH).requires_grad_()
    found = classifier().fit(AS["tensor"](X), torch.arange(9) // 3 + 10).predict(batch)
    assert found.tolist() == [10, 10, 12, 12, 12]


def test_subclasses_and_strangers():
    class Frame(pd.DataFrame):
        pass

    assert family_of(Frame()) == family_of(pd.DataFrame()) == "pandas"
    assert family_of([[1.0]]) == family_of(np.eye(2)) == ""
    assert vectors_of([[1.0]]) == [[1.0]]
    assert labels_of(["a"]) == ["a"]


@pytest.mark.parametrize("make", [list, np.array, torch.tensor, pd.Series, lambda v: pd.DataFrame({"visit": v})])
def test_values_and_places(make):
    values, places = column_of(make([7, 3, 7]), 3, "groups")
    assert values.tolist() == [3, 7]
    assert places.tolist() == [1, 0, 1]


def test_several_columns_make_tuples():
    values, places = column_of(pd.DataFrame({"site": ["b", "a", "b"], "day": [1, 2, 1]}), 3, "groups")
    assert values.tolist() == [("a", 2), ("b", 1)]
    assert places.tolist() == [1, 0, 1]


def test_dates_can_be_missing_too():
    with pytest.raises(TaskError, match="no value in order"):
        column_of(np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), 2, "order")
    with pytest.raises(TaskError, match="pool must have one entry per row of X, 3"):
        column_of([1, 2], 3, "pool")


@pytest.mark.parametrize("make", [list, pd.Series, lambda values: np.array(values, dtype=object)])
def test_values_of_several_kinds_are_refused_and_not_made_text(make):
    with pytest.raises(TaskError, match="groups must have values of one kind, such as text or numbers, got int, str"):
        column_of(make([1, "1", 2]), 3, "groups")
    for gap in (None, float("nan"), pd.NA):
        with pytest.raises(TaskError, match="no value in groups"):
            column_of(make(["a", gap, "b"]), 3, "groups")


def test_a_matrix_of_numpy_is_an_array():
    with pytest.warns(PendingDeprecationWarning, match="matrix"):
        matrix, batch = np.matrix(X), np.matrix(BATCH)
    wanted = BatchClassifier().fit(X, Y).predict_proba(BATCH)
    assert (BatchClassifier().fit(matrix, Y).predict_proba(batch) == wanted).all()
    assert handful.read(batch).vectors.tolist() == BATCH.tolist()
