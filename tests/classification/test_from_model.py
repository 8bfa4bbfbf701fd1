"""A model in a file says what the table says that it was fitted to, and keeps no examples for other methods."""

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.labelled import how_labelled, predictions
from handful.errors import OptionError
from handful.fitted import FittedModel, save_model
from handful.reading import read_bank
from tests.clouds_at_hand import clouds


def write_model(table, path):
    bank = read_bank(table)
    save_model(FittedModel.of_bank(bank).relabelled(np.array(bank.class_names)), path)


@pytest.fixture
def vectors(tmp_path):
    """A model and a batch of vectors, and the table that the model was fitted to."""
    X, y = clouds()
    np.savez(tmp_path / "c.npz", features=X, labels=y)
    np.savez(tmp_path / "b.npz", features=clouds(5, 6, seed=1)[0], id=[f"item {row}" for row in range(30)])
    write_model(tmp_path / "c.npz", tmp_path / "c.model")
    return tmp_path


@pytest.mark.parametrize("known", [{}, {"given": {3: "class 04"}}])
def test_a_model_says_what_the_table_says(vectors, known):
    one, two = (classify(vectors / name, vectors / "b.npz", **known) for name in ("c.npz", "c.model"))
    assert predictions(one) == predictions(two)
    assert how_labelled(one) == how_labelled(two)


def test_a_method_needs_the_examples(vectors):
    with pytest.raises(OptionError, match="needs the examples themselves"):
        classify(vectors / "c.model", vectors / "b.npz", method="paddle")


def test_classes_that_are_numbers_say_the_same(tmp_path):
    X, y = clouds()
    np.savez(tmp_path / "c.npz", features=X, labels=np.array([int(name[-2:]) + 95 for name in y]))
    np.savez(tmp_path / "b.npz", features=clouds(5, 6, seed=1)[0])
    write_model(tmp_path / "c.npz", tmp_path / "c.model")
    one, two = (predictions(classify(tmp_path / name, tmp_path / "b.npz")) for name in ("c.npz", "c.model"))
    assert one["label"] == two["label"]
    np.testing.assert_allclose(one["certainty"], two["certainty"], atol=1e-6)
