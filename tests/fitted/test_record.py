"""What is recorded about examples comes back from a file, and goes with its examples."""

import numpy as np

from handful.fitted import FittedModel, Record, load_model, save_model
from tests.clouds_at_hand import clouds


def kept(path):
    """A catalogue of clouds in a file, with a record."""
    X, y = clouds()
    columns = {"genus": {row: label[:7] for row, label in enumerate(y.tolist())}}
    save_model(FittedModel.of(X, y).with_record(Record("network, weights 12", None, columns)), path)
    return load_model(path)


def test_a_record_comes_back(tmp_path):
    made = kept(tmp_path / "c.model").record
    assert made.encoder == "network, weights 12"
    assert made.columns["genus"][5] == "class 0"
    assert len(made.columns["genus"]) == 80


def test_a_class_goes_with_its_record(tmp_path):
    file = tmp_path / "c.model"
    before = kept(file)
    save_model(before.without(np.array(["class 19"])), file)
    assert sorted(load_model(file).record.columns["genus"]) == list(range(76))


def test_a_class_with_another_name_keeps_its_record(tmp_path):
    before = kept(tmp_path / "c.model")
    names = before.classes.copy()
    names[0] = "zebra"
    assert before.relabelled(names).record.columns == before.record.columns
