"""Catalogues in files, built of files: they say the same, and grow by what a person said alone."""

import csv
import json

import numpy as np
import pytest

from handful.classification import classify, label
from handful.classification.batch import extracted
from handful.classification.building import add_to_catalogue, build_catalogue
from handful.classification.labelled import how_labelled, predictions
from handful.classification.page import write_page
from handful.errors import BankError, LabelError, OptionError, SkippedRowsWarning
from handful.fitted import load_catalogue
from handful.fitted.changes import relative_to
from tests.classification.test_label import pictures as pictures  # a fixture
from tests.fitted.test_changes import clouds


@pytest.fixture
def vectors(tmp_path):
    """A catalogue and a batch of vectors, and the file of the catalogue."""
    X, y = clouds()
    genus = [name[:7] for name in y]
    np.savez(tmp_path / "c.npz", features=X, labels=y, genus=genus, precursor_mz=np.arange(80) // 4 * 10.0 + 100)
    batch, truth = clouds(5, 6, seed=1)
    masses = np.arange(30) // 6 * 10.0 + 100
    np.savez(tmp_path / "b.npz", features=batch, id=[f"item {row}" for row in range(30)], precursor_mz=masses)
    build_catalogue(tmp_path / "c.npz", tmp_path / "c.handful")
    return tmp_path, truth


def labels_table(path, rows, columns):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return path


@pytest.mark.parametrize(
    "known", [{}, {"coarse": "genus"}, {"candidates": "precursor:1.0"}, {"given": {3: "class 04"}}]
)
def test_a_file_says_what_the_table_says(vectors, known):
    folder, _ = vectors
    one, two = (classify(folder / name, folder / "b.npz", **known) for name in ("c.npz", "c.handful"))
    assert predictions(one) == predictions(two)
    assert how_labelled(one) == how_labelled(two)


def test_a_method_needs_the_examples(vectors):
    with pytest.raises(OptionError, match="needs the examples themselves"):
        classify(vectors[0] / "c.handful", vectors[0] / "b.npz", method="paddle")


def test_classes_that_are_numbers_say_the_same(tmp_path):
    X, y = clouds()
    np.savez(tmp_path / "c.npz", features=X, labels=np.array([int(name[-2:]) + 95 for name in y]))
    np.savez(tmp_path / "b.npz", features=clouds(5, 6, seed=1)[0])
    assert build_catalogue(tmp_path / "c.npz", tmp_path / "c.handful").classes.tolist()[:6] == [
        *("100", "101", "102", "103", "104", "105")
    ]
    one, two = (predictions(classify(tmp_path / name, tmp_path / "b.npz")) for name in ("c.npz", "c.handful"))
    assert one["label"] == two["label"]
    np.testing.assert_allclose(one["certainty"], two["certainty"], atol=1e-6)


def test_pictures_say_the_same_and_are_shown(pictures, monkeypatch):
    made = build_catalogue(pictures / "catalogue", pictures / "c.handful", encoder="small")
    assert made.record.kind == "image"
    assert made.record.encoder.startswith("small, weights ")
    assert all(picture.startswith(b"\xff\xd8") for picture in made.record.previews.values())
    assert len(made.record.previews) == made.n_examples
    source = made.record.sources[0]
    assert (pictures / source.file / source.item).is_file()
    embedded = []
    monkeypatch.setattr(label, "extracted", lambda items, *rest: embedded.append(items) or extracted(items, *rest))
    one, two = (classify(pictures / name, pictures / "batch", encoder="small") for name in ("catalogue", "c.handful"))
    assert predictions(one) == predictions(two)
    assert list(map(len, embedded)) == [16, 10, 10]  # of the file, the batch alone
    for found, name in ((one, "one"), (two, "two")):
        write_page(found, pictures.parent / f"{name}.html", title="x")
    first, second = ((pictures.parent / f"{name}.html").read_text() for name in ("one", "two"))
    assert first == second.replace("/c.handful", "/catalogue")  # in the command that the page shows


def test_corrections_are_added_with_who_said_them(vectors):
    folder, _ = vectors
    found = classify(folder / "c.handful", folder / "b.npz")

    def item(row, **label):
        return {"row": row, "item": f"item {row}", "content": found.about.batch.content(row), **label}

    said = {
        "handful_corrections": 3,
        "corrections": [item(0, label="class 07")],
        "confirmed": [item(1, label="class 00")],
        "new_classes": [{"label": "crab", "items": [item(2)]}],
        "none_of_these": [item(3)],
    }
    (folder / "b.corrections.json").write_text(json.dumps(said))
    files = folder / "c.handful", folder / "b.corrections.json", folder / "b.npz"
    added = add_to_catalogue(*files, person="Ada", session="Monday")
    assert (added.n_added, added.new_classes) == (3, ("crab",))
    after = load_catalogue(folder / "c.handful")
    new = {source.item: source for at, source in after.record.sources.items() if at >= 80}
    assert set(new) == {"item 0", "item 1", "item 2"}
    assert {(one.person, one.session, one.file) for one in new.values()} == {("Ada", "Monday", "b.npz")}
    assert after.examples.labels[80:].tolist() == ["class 07", "class 00", "crab"]
    assert add_to_catalogue(*files).n_added == 0


def test_what_only_the_model_said_is_not_added(vectors):
    folder, _ = vectors
    rows = [[f"item {row}", "class 00", certainty, ""] for row, certainty in enumerate((0.99, 0.5, 0.97))]
    rows[1][3], rows[2][3] = "class 03", "none of these"
    columns = ["item", "label", "certainty", "person"]
    both = labels_table(folder / "both.csv", rows, columns)
    alone = labels_table(folder / "alone.csv", [row[:3] for row in rows], columns[:3])
    with pytest.raises(OptionError, match="no column 'person'"):
        add_to_catalogue(folder / "c.handful", alone, folder / "b.npz")
    with pytest.raises(OptionError, match="name the batch"):
        add_to_catalogue(folder / "c.handful", folder / "both.json")
    assert add_to_catalogue(folder / "c.handful", both, folder / "b.npz").n_added == 1
    after = load_catalogue(folder / "c.handful")
    assert (after.examples.labels[80], after.record.sources[80].item) == ("class 03", "item 1")
    asked = add_to_catalogue(folder / "c.handful", alone, folder / "b.npz", by_model=0.98)
    assert asked.n_added == 1
    assert asked.catalogue.record.sources[81].session == "labelled by the model"
    assert asked.catalogue.record.sources[81].person == ""


def test_a_table_of_labels_and_more_examples_are_added(vectors):
    folder, truth = vectors
    table = labels_table(folder / "l.csv", [["item 4", truth[4]], ["item 5", ""], ["x", "y"]], ["item", "label"])
    with pytest.warns(match="1 of 3"):
        assert add_to_catalogue(folder / "c.handful", table, folder / "b.npz").n_added == 1
    nothing = labels_table(folder / "n.csv", [["x", "y"]], ["item", "label"])
    with pytest.raises(LabelError, match="no item of the batch"):
        add_to_catalogue(folder / "c.handful", nothing, folder / "b.npz")
    X, y = clouds(3, 2, seed=5)
    np.savez(folder / "more.npz", features=X, labels=y)
    assert add_to_catalogue(folder / "c.handful", folder / "more.npz").n_added == 6
    np.savez(folder / "other.npz", features=X[:, :5], labels=y)
    with pytest.raises(BankError, match="have 16 numbers"):
        add_to_catalogue(folder / "c.handful", folder / "other.npz")


def test_only_pictures_that_were_named_are_embedded(pictures):
    build_catalogue(pictures / "catalogue", pictures / "c.handful", encoder="small")
    names = sorted(path.relative_to(pictures / "batch").as_posix() for path in (pictures / "batch").rglob("*.png"))
    found = classify(pictures / "c.handful", pictures / "batch", encoder="small")
    name = next(name for name in names if name in found.about.batch.names)
    table = labels_table(pictures / "l.csv", [[name, "mauve"]], ["item", "label"])
    seen = []
    added = add_to_catalogue(pictures / "c.handful", table, pictures / "batch", on_progress=seen.append)
    assert (added.n_added, added.new_classes, seen[-1].total) == (1, ("mauve",), 1)
    assert added.catalogue.record.sources[max(added.catalogue.record.sources)].item == name
    assert relative_to(pictures / "c.handful", pictures / "batch") == "batch"


def test_missing_numbers_are_filled_with_the_mean_of_their_column(vectors):
    folder = vectors[0]
    columns = ["label", *(f"e{k}" for k in range(load_catalogue(folder / "c.handful").dim))]
    whole = [["a", *range(1, len(columns))], ["a", *range(3, len(columns) + 2)], ["b", *range(5, len(columns) + 4)]]
    gap = [row[:] for row in whole]
    gap[1][2] = ""  # the mean of 2 and 6 is 4, as it was
    one, two = (labels_table(folder / f"{k}.csv", rows, columns) for k, rows in enumerate((whole, gap)))
    with pytest.warns(SkippedRowsWarning, match="must have a number in column 'e1'"):
        build_catalogue(two, folder / "x.handful")
    made = [build_catalogue(path, folder / "x.handful", missing="mean").examples.points for path in (one, two)]
    np.testing.assert_array_equal(*made)
    assert add_to_catalogue(folder / "c.handful", two, missing="mean").n_added == 3
    with pytest.raises(OptionError, match="missing must be 'mean', got 'zero'"):
        build_catalogue(two, folder / "x.handful", missing="zero")
    (folder / "texts.csv").write_text("text,label\nhello,a\n")
    with pytest.raises(OptionError, match=r"has no vectors.*leave missing out"):
        build_catalogue(folder / "texts.csv", folder / "x.handful", missing="mean")


def test_measurements_are_refused_before_a_catalogue_is_written(tmp_path):
    (tmp_path / "m.csv").write_text("height,width,label\n1,2,a\n5,6,b\n")
    with pytest.raises(BankError, match=r"measurements in the columns height, width, .* the table itself"):
        build_catalogue(tmp_path / "m.csv", tmp_path / "m.handful")
