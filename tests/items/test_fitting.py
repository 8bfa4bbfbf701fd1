"""The model of a catalogue is that of what people named; it is fitted once, and again when something was named."""

import numpy as np
import pytest

from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.errors import OptionError
from handful.fitted import FittedModel, load_model, save_model
from handful.items import bring, fitting, import_labelled
from handful.items.fitting import examples_in, model_at, model_of
from tests.clouds_at_hand import clouds


def fits(monkeypatch):
    """Count how often a model is fitted."""
    seen = []
    fitted = fitting._fitted
    monkeypatch.setattr(fitting, "_fitted", lambda *rest: seen.append(1) or fitted(*rest))
    return seen


def models_kept(file):
    return [name for (name,) in file._connection.execute("SELECT name FROM caches") if name.startswith("model ")]


def test_a_model_is_that_of_the_examples_themselves(tmp_path):
    X, y = clouds()
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, (X, y), "examples")
        found = model_of(file)
        again = model_of(file)
    expected = FittedModel.of(X.astype(np.float32), y)
    assert found.classes.tolist() == expected.classes.tolist() == again.classes.tolist()
    np.testing.assert_allclose(found.head.weights, expected.head.weights, atol=1e-5)
    for name in ("weights", "offsets", "means", "mass"):
        np.testing.assert_array_equal(getattr(found.head, name), getattr(again.head, name))
    assert found.unknown_model == again.unknown_model


def test_a_model_is_fitted_once_until_something_is_named(tmp_path, monkeypatch):
    seen = fits(monkeypatch)
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, clouds(3, 2), "examples")
        for _ in range(2):
            assert model_of(file).n_examples == 6
        assert len(seen) == 1
        bring(file, "monday", clouds(3, 2, seed=1)[0])
        assert model_of(file).n_examples == 6
        assert len(seen) == 1  # new items without an answer are no examples
        file.append("named", {"label": "crab"}, [EventItem(7)])
        assert "crab" in model_of(file).classes.tolist()
        assert len(seen) == 2
        assert len(models_kept(file)) == 1  # the newest alone
    assert model_at(tmp_path / "c.handful").n_examples == 7
    assert len(seen) == 2


def test_a_kept_model_that_was_damaged_is_fitted_again(tmp_path, monkeypatch):
    seen = fits(monkeypatch)
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, clouds(3, 2), "examples")
        model_of(file)
        (name,) = models_kept(file)
        file.cache(name, b"no model")
        assert model_of(file).n_classes == 3
        assert len(seen) == 2
        assert file.cached(name) != b"no model"


def test_a_catalogue_that_cannot_be_written_has_a_model(tmp_path):
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, clouds(3, 2), "examples")
        file.writable = False
        assert model_of(file).n_classes == 3
        assert models_kept(file) == []


def test_a_content_is_one_example_of_a_class_and_a_batch_can_be_left_out():
    file = CatalogueFile.open()
    import_labelled(file, (np.eye(3)[[0, 0, 1]], ["fox", "fox", "owl"]), "monday")
    import_labelled(file, (np.eye(3)[[0, 0, 2]], ["fox", "elk", "cat"]), "tuesday")
    assert sorted(examples_in(file).values()) == ["cat", "elk", "fox", "owl"]
    assert sorted(examples_in(file, without_batch="tuesday").values()) == ["fox", "owl"]
    assert model_of(file, without_batch="tuesday").classes.tolist() == ["fox", "owl"]


def test_without_examples_or_with_measurements_there_is_no_model(tmp_path):
    file = CatalogueFile.open()
    bring(file, "monday", np.eye(3))
    with pytest.raises(OptionError, match="nobody has named an item"):
        model_of(file)
    file = CatalogueFile.open()
    import_labelled(file, {"height": [1.5, 2.5], "width": [3.5, 4.5], "label": ["a", "b"]}, "monday")
    with pytest.raises(OptionError, match="has measurements"):
        model_of(file)


def test_a_saved_model_is_read_by_its_ending(tmp_path):
    save_model(FittedModel.of(np.eye(3), np.array(["ant", "bee", "cat"])), tmp_path / "m.model")
    assert model_at(tmp_path / "m.model").classes.tolist() == load_model(tmp_path / "m.model").classes.tolist()
