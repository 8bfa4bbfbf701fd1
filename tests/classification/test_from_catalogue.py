"""A catalogue is taken wherever a model is: it says the same as its examples, and adds nothing."""

import hashlib

import numpy as np
import pytest

import handful
from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.classification import classify, steps, write_page
from handful.classification.labelled import how_labelled, predictions
from handful.errors import OptionError
from handful.estimators import BatchClassifier
from handful.extraction.pipeline import embed_items
from handful.items import bring, import_labelled
from tests.classification.test_steps import pictures as pictures  # a fixture
from tests.clouds_at_hand import clouds


@pytest.fixture
def vectors(tmp_path):
    """A catalogue and a batch of vectors, and the table that the catalogue was made of."""
    X, y = clouds()
    genus = [name[:7] for name in y]
    np.savez(tmp_path / "c.npz", features=X, labels=y, genus=genus, precursor_mz=np.arange(80) // 4 * 10.0 + 100)
    batch, _ = clouds(5, 6, seed=1)
    masses = np.arange(30) // 6 * 10.0 + 100
    np.savez(tmp_path / "b.npz", features=batch, id=[f"item {row}" for row in range(30)], precursor_mz=masses)
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, tmp_path / "c.npz")
    return tmp_path


def said(path):
    """Everything but caches that is in a catalogue."""
    with CatalogueFile.open(path) as file:
        tables = ("items", "contents", "vectors", "events", "event_items")
        rows = [file._connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


@pytest.mark.parametrize(
    "known", [{}, {"coarse": "genus"}, {"candidates": "precursor:1.0"}, {"given": {3: "class 04"}}]
)
def test_a_catalogue_says_what_its_table_says(vectors, known):
    before = said(vectors / "c.handful")
    one, two = (classify(vectors / name, vectors / "b.npz", **known) for name in ("c.npz", "c.handful"))
    assert how_labelled(one) == how_labelled(two)
    first, second = predictions(one), predictions(two)
    assert first["label"] == second["label"]
    np.testing.assert_allclose(first["certainty"], second["certainty"], atol=1e-5)
    assert said(vectors / "c.handful") == before


def test_a_classifier_and_a_session_take_a_catalogue(vectors):
    batch = np.load(vectors / "b.npz")["features"]
    expected = classify(vectors / "c.handful", vectors / "b.npz").labels.tolist()
    assert BatchClassifier.load(vectors / "c.handful").predict(batch).tolist() == expected
    assert handful.Session(batch, str(vectors / "c.handful")).first.labels.tolist() == expected


def test_a_catalogue_that_names_nothing_is_refused(tmp_path):
    np.save(tmp_path / "b.npy", np.eye(3))
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        bring(file, "b", tmp_path / "b.npy")
    with pytest.raises(OptionError, match="nobody has named an item"):
        classify(tmp_path / "c.handful", tmp_path / "b.npy")


def test_a_catalogue_of_measurements_labels_measurements(tmp_path):
    rows = [f"{height},{width},{name}\n" for name, height, width in [("a", 1.5, 20.5), ("b", 9.5, 80.5)] * 6]
    (tmp_path / "c.csv").write_text("height,width,label\n" + "".join(rows))
    (tmp_path / "b.csv").write_text("height,width\n1.6,21.5\n9.1,79.5\n1.4,20.1\n")
    with CatalogueFile.open(tmp_path / "c.handful") as file:
        import_labelled(file, tmp_path / "c.csv")
    assert classify(tmp_path / "c.handful", tmp_path / "b.csv").labels.tolist() == ["a", "b", "a"]
    with pytest.raises(OptionError, match="has measurements"):
        BatchClassifier.load(tmp_path / "c.handful")


def test_pictures_that_the_catalogue_has_are_not_embedded_again(pictures, monkeypatch):
    with CatalogueFile.open(pictures / "c.handful") as file:
        import_labelled(file, pictures / "catalogue", encoder="small")
    expected = classify(pictures / "catalogue", pictures / "batch", encoder="small")
    embedded = []
    monkeypatch.setattr(steps, "embed_items", lambda items, *rest: embedded.append(items) or embed_items(items, *rest))
    found = classify(pictures / "c.handful", pictures / "batch")
    assert found.labels.tolist() == expected.labels.tolist()
    assert list(map(len, embedded)) == [len(found.labels) + 1]  # one cannot be read
    np.testing.assert_allclose(found.certainty, expected.certainty, atol=1e-2)
    write_page(found, pictures / "page.html", title="x")  # with examples beside the items
    assert found.about.shown is not None
    assert found.about.shown.nearest
    with CatalogueFile.open(pictures / "c.handful") as file:
        bring(file, "batch", pictures / "batch")
        # Half of them are embedded again, and all are in their order.
        gone = list(file.contents_of(list(file.said.places["batch"])).values())[::2]
        with file.writing() as connection:
            connection.executemany("DELETE FROM vectors WHERE content = ?", [(one,) for one in gone])
    embedded.clear()
    again = classify(pictures / "c.handful", pictures / "batch")
    assert 0 < sum(map(len, embedded)) < len(found.labels)
    assert again.about.batch.names == found.about.batch.names
    assert again.labels.tolist() == found.labels.tolist()


def test_what_was_named_is_an_example_the_next_time(vectors):
    with CatalogueFile.open(vectors / "c.handful") as file:
        bring(file, "b", vectors / "b.npz")
        items = sorted(file.said.places["b"])
        file.append("named", {"label": "crab"}, [EventItem(item) for item in items[:6]])
    found = classify(vectors / "c.handful", vectors / "b.npz")
    assert set(found.labels[:6].tolist()) == {"crab"}
