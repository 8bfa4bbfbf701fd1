"""Groups: every group one joint batch, all labelled together."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from handful.errors import LabelError, OptionError, TaskError
from handful.estimators import BatchClassifier, TransductiveClassifier

N_CLASSES, DIM = 30, 16


@pytest.fixture(scope="module")
def world():
    """A fitted classifier, and 120 groups of 1 to 300 rows in random order."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, DIM))
    X = (centres.repeat(5, axis=0) + 0.8 * rng.normal(size=(5 * N_CLASSES, DIM))).astype(np.float32)
    classifier = BatchClassifier().fit(X, np.array([f"class {k:02}" for k in range(N_CLASSES)]).repeat(5))
    sizes = np.concatenate([np.exp(rng.uniform(0, 4, 117)).astype(int), [300, 1, 1]])
    groups = rng.permutation(np.repeat(np.arange(120) * 10, sizes))
    present = {g: rng.choice(N_CLASSES, rng.integers(1, 6), replace=False) for g in np.unique(groups)}
    truth = np.array([rng.choice(present[g]) for g in groups])
    batch = (centres[truth] + 0.8 * rng.normal(size=(len(truth), DIM))).astype(np.float32)
    return classifier, batch, groups, truth


def test_groups_equal_a_loop(world):
    classifier, batch, groups, _ = world
    found = classifier.infer(batch, groups=groups)
    labels = classifier.predict(batch, groups=groups)
    assert len(found) == 120
    np.testing.assert_array_equal(labels, found.labels)
    for place, group in enumerate(found.groups):
        rows = groups == group
        with warnings.catch_warnings(action="ignore"):
            one = classifier.infer(batch[rows])
        np.testing.assert_allclose(found.probabilities[rows], one.probabilities, atol=1e-5)
        np.testing.assert_array_equal(found.labels[rows], one.labels)
        np.testing.assert_allclose(found.presence[place], one.presence, atol=1e-4)
        again = found[group]
        np.testing.assert_array_equal(again.present_classes, one.present_classes)
        np.testing.assert_allclose(again.expected_counts, one.expected_counts, atol=1e-3)
        assert [d.name for d in again.diagnostics] == [d.name for d in one.diagnostics]
        assert (again.n_iter, again.converged) == (one.n_iter, one.converged)


def test_the_order_of_rows_is_kept(world):
    classifier, batch, groups, truth = world
    order = np.random.default_rng(1).permutation(len(groups))
    here, there = (classifier.predict(batch[o], groups=groups[o]) for o in (np.arange(len(groups)), order))
    np.testing.assert_array_equal(here[order], there)
    assert (here == np.array([f"class {k:02}" for k in truth])).mean() > 0.9


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_frames_and_tensors_come_back_as_they_came(world):
    classifier, batch, groups, _ = world
    frame = pd.DataFrame(batch, index=[f"row {i}" for i in range(len(batch))])
    found = classifier.infer(frame, groups=pd.Series(groups))
    assert found.labels.index.equals(frame.index)
    assert found.probabilities.shape == (len(batch), N_CLASSES)
    tensors = classifier.infer(torch.from_numpy(batch), groups=torch.from_numpy(groups))
    assert isinstance(tensors.probabilities, torch.Tensor)
    np.testing.assert_array_equal(tensors.labels, found.labels.to_numpy())
    assert found[0].probabilities.shape == ((groups == 0).sum(), N_CLASSES)
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {f"x{i}": column for i, column in enumerate(batch.T.copy())}
    for table in (pl.DataFrame(columns), pa.table(columns)):
        again = classifier.infer(table, groups=groups)
        np.testing.assert_allclose(again[0].probabilities, found[0].probabilities, atol=1e-6)


def test_several_columns_make_a_group(world):
    classifier, batch, groups, _ = world
    table = pd.DataFrame({"site": np.array(["wood", "marsh", "lake"])[groups // 500], "day": groups % 500})
    found = classifier.infer(batch, groups=table)
    assert len(found) == 120
    assert ("wood", 0) in found.groups.tolist()
    np.testing.assert_array_equal(found.labels, classifier.predict(batch, groups=groups))
    assert len(found["marsh", 0].labels) == (groups == 500).sum()


def test_groups_that_do_not_fit_are_refused_with_a_sentence(world):
    classifier, batch, groups, _ = world
    with pytest.raises(TaskError, match="one entry per row"):
        classifier.infer(batch, groups=groups[:-1])
    with pytest.raises(TaskError, match="some rows have no value in groups"):
        classifier.infer(batch[:2], groups=np.array(["a", None], dtype=object))
    with pytest.raises(TaskError, match="some rows have no value in groups"):
        classifier.infer(batch[:2], groups=[1.0, np.nan])
    with pytest.raises(LabelError, match="no group 'marshland'"):  # not cut to the length of the others
        classifier.infer(batch[:2], groups=["marsh", "wood"])["marshland"]
    with pytest.raises(LabelError, match="no group 7"):
        classifier.infer(batch[:3], groups=[1, 2, 3])[7]
    other = TransductiveClassifier("nearest_prototype").fit(batch[:4], [0, 0, 1, 1])
    with pytest.raises(OptionError, match="groups need the method roll_call"):
        other.predict(batch, groups=groups)


def test_one_group_comes_in_the_container_of_the_batch(world):
    classifier, batch, groups, _ = world
    rows = np.flatnonzero(groups == 10)
    index = np.arange(len(batch)) + 1000
    frames = {
        np.ndarray: batch,
        torch.Tensor: torch.from_numpy(batch),
        pd.DataFrame: pd.DataFrame(batch, index=index),
        pl.DataFrame: pl.DataFrame(batch),
        pa.Table: pa.table({str(i): column for i, column in enumerate(batch.T.copy())}),
    }
    with warnings.catch_warnings(action="ignore"):
        for kind, frame in frames.items():
            whole = classifier.infer(frame, groups=groups)
            found = whole[10]
            assert type(found.probabilities) is kind
            assert type(found.labels) is type(whole.labels)
            assert type(found.unknown) is type(whole.unknown)
            np.testing.assert_array_equal(np.asarray(found.probabilities), np.asarray(whole.probabilities)[rows])
            np.testing.assert_array_equal(np.asarray(found.labels), np.asarray(whole.labels)[rows])
        assert (
            classifier.infer(frames[pd.DataFrame], groups=groups)[10].probabilities.index.tolist()
            == index[rows].tolist()
        )


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_reading_every_group_looks_at_each_once(world):
    classifier, batch, _, _ = world
    names = np.empty(300, dtype=object)
    names[:] = [Name(f"{i % 100:03}") for i in range(300)]
    found = classifier.infer(batch[:300], groups=names)
    Name.compared = 0
    assert [len(found[Name(name)].labels) for name in found.groups] == [3] * 100
    assert Name.compared <= 300
    with pytest.raises(LabelError, match="there is no group"):
        found[["000"]]
