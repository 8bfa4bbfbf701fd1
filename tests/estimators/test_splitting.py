"""Splits with few classes in the batch, under scikit-learn's contract."""

import inspect

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, check_cv, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from handful.errors import LabelError, OptionError
from handful.estimators import BatchClassifier, FewClassSplit
from tests.optional import optional

pd = optional("pandas")
fewshot = optional("handful_fewshot", needs="torch")

Y = np.array([f"class {k:02}" for k in range(12)]).repeat(20)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 16)).repeat(20, axis=0) + 1.2 * rng.normal(size=(240, 16)), Y


def test_every_class_is_trained_on_and_few_are_in_the_batch():
    splits = list(FewClassSplit(20, n_present=3, n_items=25, shots=4, random_state=0).split(None, Y))
    assert len(splits) == 20
    present = set()
    for train, test in splits:
        assert not set(train.tolist()) & set(test.tolist())
        assert np.unique(Y[train], return_counts=True)[1].tolist() == [4] * 12
        assert len(test) == 25
        assert len(set(Y[test])) <= 3
        present |= set(Y[test])
    assert len(present) == 12


def test_it_is_a_splitter_to_scikit_learn(world):
    splits = FewClassSplit(6, n_present=2, n_items=20, random_state=0)
    assert check_cv(splits) is splits
    for name in ("split", "get_n_splits"):
        ours, theirs = (inspect.signature(getattr(cv, name)).parameters for cv in (FewClassSplit, KFold))
        assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in theirs.values()]
    scores = cross_val_score(BatchClassifier(), *world, cv=splits)
    assert scores.shape == (6,)
    pipeline = make_pipeline(StandardScaler(), BatchClassifier())
    assert cross_val_score(pipeline, pd.DataFrame(world[0]), pd.Series(world[1]), cv=splits).mean() > 0.7


def test_joint_labels_gain_in_these_splits(world):
    splits = FewClassSplit(8, n_present=2, n_items=20, shots=2, random_state=0)
    joint, alone = (
        cross_val_score(classifier, *world, cv=splits).mean()
        for classifier in (BatchClassifier(), fewshot.MethodClassifier("nearest_prototype"))
    )
    assert joint > alone + 0.05


def test_a_search_over_methods_uses_them(world):
    search = GridSearchCV(
        fewshot.MethodClassifier(),
        {"method": ["batch_classifier", "nearest_prototype"]},
        cv=FewClassSplit(4, n_present=2, n_items=20, shots=2, random_state=0),
    ).fit(*world)
    assert search.best_params_ == {"method": "batch_classifier"}


def test_splits_follow_the_random_state():
    def rows(splits):
        return [test.tolist() for _, test in splits.split(None, Y)]

    same = FewClassSplit(3, n_items=10, random_state=7)
    assert rows(same) == rows(same) == rows(FewClassSplit(3, n_items=10, random_state=7))
    assert rows(same) != rows(FewClassSplit(3, n_items=10, random_state=8))
    moving = FewClassSplit(3, n_items=10, random_state=np.random.RandomState(0))
    assert rows(moving) != rows(moving)
    assert repr(same) == "FewClassSplit(n_splits=3, n_present=5, n_items=10, shots=5, random_state=7)"


def test_what_cannot_be_split_is_refused():
    with pytest.raises(OptionError, match="n_items must be a whole number of at least 1"):
        FewClassSplit(n_items=0)
    with pytest.raises(LabelError, match="y is None"):
        next(FewClassSplit().split([[1.0]]))
    with pytest.raises(LabelError, match="class 'b' has 2 rows"):
        next(FewClassSplit(shots=2).split(None, ["a"] * 9 + ["b"] * 2))
    with pytest.raises(LabelError, match="more than the 12 classes"):
        next(FewClassSplit(n_present=13).split(None, Y))
    with pytest.raises(LabelError, match="1 classes left"):
        next(FewClassSplit(n_present=1, n_items=50).split(None, Y))
