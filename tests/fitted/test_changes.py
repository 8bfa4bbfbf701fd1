"""Changes of a catalogue in a file: what is added, removed, renamed and merged, and what is refused."""

import numpy as np
import pytest

from handful.errors import BankError, LabelError, OptionError
from handful.fitted import (
    Catalogue,
    Record,
    Source,
    add_examples,
    load_catalogue,
    merge,
    remove,
    rename,
    save_catalogue,
)
from handful.fitted.changes import relative_to
from handful.machine.lock import only_changer


def clouds(n_classes=20, shots=4, dim=16, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(n_classes, dim))
    codes = np.arange(n_classes).repeat(shots)
    names = np.array([f"class {k:02d}" for k in range(n_classes)])
    return (centres[codes] + noise * rng.normal(size=(len(codes), dim))).astype(np.float32), names[codes]


def kept(path, **options):
    """A catalogue of clouds in a file, with a record."""
    X, y = clouds(**options)
    sources = {row: Source(f"{row}.jpg", "photos", f"content {row}", date="2026-11-17") for row in range(len(y))}
    previews = {row: b"JPEG %d" % row for row in range(0, len(y), 2)}
    columns = {"genus": {row: label[:7] for row, label in enumerate(y.tolist())}}
    record = Record("network, weights 12", "image", None, sources, previews, columns)
    save_catalogue(Catalogue.of(X, y).with_record(record), path)
    return load_catalogue(path)


def test_a_record_comes_back(tmp_path):
    made = kept(tmp_path / "c.handful").record
    assert made.encoder == "network, weights 12"
    assert made.kind == "image"
    assert made.sources[3] == Source("3.jpg", "photos", "content 3", date="2026-11-17")
    assert made.previews[4] == b"JPEG 4"
    assert made.columns["genus"][5] == "class 0"
    assert len(made.sources) == 80
    assert len(made.previews) == 40


def test_texts_come_back_as_texts(tmp_path):
    X, y = clouds(2, 2)
    save_catalogue(Catalogue.of(X, y).with_record(Record(kind="text", previews={1: "wäre", 3: ""})), tmp_path / "c")
    assert load_catalogue(tmp_path / "c").record.previews == {1: "wäre", 3: ""}


def test_what_is_added_is_there_with_its_source(tmp_path):
    file = tmp_path / "c.handful"
    before = kept(file)
    X, _ = clouds(shots=1, seed=1)
    source = Source("a.jpg", "monday", "new content", "Ada", "2026-11-18", "monday's review")
    added = add_examples(file, X[:1], ["class 00"], [source], previews={0: b"new"}, encoder="network, weights 12")
    after = load_catalogue(file)
    assert (added.n_added, added.n_known, added.new_classes) == (1, 0, ())
    assert after.n_examples == before.n_examples + 1
    assert after.record.sources[80] == source
    assert after.record.previews[80] == b"new"
    assert after.record.sources[3] == before.record.sources[3]
    assert after.content_hash == added.catalogue.content_hash


def test_an_example_is_added_once_and_with_one_label(tmp_path):
    file = tmp_path / "c.handful"
    kept(file)
    written = file.read_bytes()
    X, _ = clouds(shots=1)
    again = add_examples(file, X[:1], ["class 00"], [Source("0.jpg", "photos", "content 0")])
    assert (again.n_added, again.n_known) == (0, 1)
    with pytest.raises(LabelError, match=r"0.jpg is in the catalogue as 'class 00', and would be added as 'class 01'"):
        add_examples(file, X[:1], ["class 01"], [Source("0.jpg", "photos", "content 0")])
    assert file.read_bytes() == written


@pytest.mark.parametrize(
    ("features", "label", "encoder", "said"),
    [
        (np.ones((1, 3)), "class 00", "", "have 16 numbers, the new ones 3"),
        (np.ones((1, 16)), "class 00", "other, weights 34", "made by network, weights 12, the new examples by other"),
        (np.ones((1, 16)), " ", "", "give it a class"),
    ],
)
def test_what_does_not_fit_is_not_added(tmp_path, features, label, encoder, said):
    kept(tmp_path / "c.handful")
    with pytest.raises((BankError, LabelError), match=said):
        add_examples(tmp_path / "c.handful", features, [label], [Source()], encoder=encoder)


def test_an_update_says_the_same_as_a_fit(tmp_path):
    file = tmp_path / "c.handful"
    before = kept(file, n_classes=40, shots=5)
    X, y = clouds(40, 1, seed=3)
    batch, _ = clouds(40, 20, seed=4)
    new = np.concatenate([X[:6], X[:2] * 0 + np.eye(16, dtype=np.float32)[:2]])
    labels = [*y[:6].tolist(), "new class", "new class"]
    after = add_examples(file, new, labels, [Source() for _ in labels]).catalogue
    whole = before.with_examples(new, np.array(labels))
    assert after.head.n_fitted == before.head.n_fitted == 200
    assert whole.head.n_fitted == 208
    assert after.classes.tolist() == whole.classes.tolist()
    assert after.classes[0] == "class 00"
    points = whole.points(batch)
    own, other = (one.head.scores(points).argmax(1) for one in (after, whole))
    assert (own == other).mean() > 0.99
    np.testing.assert_allclose(after.head.means, whole.head.means, atol=0.02)
    assert len(after.head.left_out.rows) == 206  # those of a class that the head did not know are not judged
    places, known = np.isin(after.classes, labels), np.isin(before.classes, labels)
    np.testing.assert_array_equal(after.head.weights[~places], before.head.weights[~known])


def test_many_new_examples_are_fitted_from_the_start(tmp_path):
    kept(tmp_path / "c.handful")
    X, y = clouds(shots=2, seed=1)
    added = add_examples(tmp_path / "c.handful", X, y.tolist(), [Source() for _ in y])
    assert added.catalogue.head.n_fitted == 120


def test_a_class_with_another_name_is_the_same_class(tmp_path):
    file = tmp_path / "c.handful"
    before = kept(file)
    after = rename(file, "class 00", "zebra")
    order = [*range(1, 20), 0]
    assert after.classes.tolist() == [*before.classes.tolist()[1:], "zebra"]
    np.testing.assert_array_equal(after.head.weights, before.head.weights[order])
    assert after.report().suspects == before.report().suspects
    batch, _ = clouds(seed=2)
    points = before.points(batch)
    names = before.classes[before.head.scores(points).argmax(1)]
    named = after.classes[after.head.scores(points).argmax(1)]
    assert (np.where(names == "class 00", "zebra", names) == named).all()
    assert load_catalogue(file).content_hash == after.content_hash
    with pytest.raises(LabelError, match="merge the two"):
        rename(file, "zebra", "class 01")
    with pytest.raises(LabelError, match="did you mean 'class 01'"):
        rename(file, "Class 01", "x")


def test_merged_classes_are_those_of_a_new_fit(tmp_path):
    file = tmp_path / "c.handful"
    before = kept(file)
    X, y = clouds()
    after = merge(file, ["class 03", "class 04"], "class 03")
    again = Catalogue.of(X, np.where(y == "class 04", "class 03", y))
    assert after.classes.tolist() == again.classes.tolist()
    np.testing.assert_allclose(after.means + after.origin, again.means + again.origin, atol=1e-6)
    np.testing.assert_allclose(after.head.weights, again.head.weights, atol=1e-4)
    assert after.shots[3] == 8
    assert after.record.sources == before.record.sources


def test_what_is_removed_is_gone_with_its_record(tmp_path):
    file = tmp_path / "c.handful"
    kept(file)
    X, y = clouds()
    after = remove(file, ["class 19"], [0, 4, 5, 6, 7])
    stay = (y != "class 19") & ~np.isin(np.arange(80), [0, 4, 5, 6, 7])
    again = Catalogue.of(X[stay], y[stay])
    assert after.classes.tolist() == again.classes.tolist()  # class 01 had the examples 4 to 7
    np.testing.assert_allclose(after.means + after.origin, again.means + again.origin, atol=1e-6)
    there = load_catalogue(file)
    assert sorted(there.record.sources) == np.flatnonzero(stay).tolist()
    assert set(there.record.previews) <= set(there.record.sources)
    with pytest.raises(LabelError, match="no example 0"):
        remove(file, positions=[0])


def test_labels_that_are_numbers_are_found_by_their_names(tmp_path):
    X, _ = clouds()
    save_catalogue(Catalogue.of(X, np.arange(20).repeat(4)), tmp_path / "c")
    assert remove(tmp_path / "c", ["3"]).n_classes == 19
    assert add_examples(tmp_path / "c", X[:1], ["5"], [Source()]).n_added == 1
    with pytest.raises(LabelError):
        add_examples(tmp_path / "c", X[:1], ["ant"], [Source()])


def test_two_processes_do_not_change_it_at_once(tmp_path):
    file = tmp_path / "c.handful"
    kept(file)
    with only_changer(file, OptionError), pytest.raises(OptionError, match="another process is writing"):
        rename(file, "class 00", "zebra")
    rename(file, "class 00", "zebra")


def test_sources_are_relative_to_the_catalogue(tmp_path):
    assert relative_to(tmp_path / "a" / "c.handful", tmp_path / "photos" / "x") == "../photos/x"


def test_a_change_through_a_link_goes_to_the_file_and_the_link_stays(tmp_path):
    (tmp_path / "shared").mkdir()
    file, link = tmp_path / "shared" / "c.handful", tmp_path / "c.handful"
    kept(file)
    link.symlink_to(file)
    rename(link, "class 00", "zebra")
    assert link.is_symlink()
    assert "zebra" in load_catalogue(file).classes.tolist()
    with only_changer(file, OptionError), pytest.raises(OptionError, match="another process is writing"):
        rename(link, "zebra", "horse")
    assert relative_to(link, tmp_path / "shared" / "photos") == "photos"


def test_a_catalogue_saved_through_a_link_leaves_the_link(tmp_path):
    X, y = clouds(2, 2)
    (tmp_path / "new.handful").symlink_to(tmp_path / "elsewhere.handful")
    save_catalogue(Catalogue.of(X, y), tmp_path / "new.handful")
    assert (tmp_path / "new.handful").is_symlink()
    assert load_catalogue(tmp_path / "elsewhere.handful").n_classes == 2
