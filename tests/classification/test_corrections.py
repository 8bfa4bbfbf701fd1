"""Corrections as a file: items are found again in a batch that changed, and what is not found is listed."""

import csv
import json

import numpy as np
import pytest

from handful.classification import classify, read_corrections
from handful.classification.labelled import class_names, predictions, present_codes
from handful.classification.page_data import page_data
from handful.cli.main import main
from handful.errors import FileFormatError, LabelError, OptionError
from handful.reading import GivenLabel
from tests.worlds import Clouds

ITEM = {"row": 1, "item": "b", "content": "b1"}


def written(tmp_path, **content):
    kinds = {kind: [] for kind in ("corrections", "new_classes", "confirmed", "none_of_these")}
    whole = {"handful_corrections": 3, **kinds} | content
    place = tmp_path / "c.json"
    place.write_text(json.dumps(whole), encoding="utf-8")
    return place


def test_all_kinds_are_read(tmp_path):
    place = written(
        tmp_path,
        corrections=[{"row": 1, "item": "b", "content": "b1", "label": "cat"}],
        new_classes=[
            {
                "label": "שלום </script>",
                "items": [{"row": 0, "item": "a", "content": "a1"}, {"row": 5, "item": "f", "content": "f1"}],
            }
        ],
        confirmed=[{"row": 2, "item": "c", "content": "c1", "label": "dog"}],
        none_of_these=[{"row": 3, "item": "d", "content": "d1"}],
    )
    assert read_corrections(place) == (
        GivenLabel(1, "b", "b1", "cat", False),
        GivenLabel(2, "c", "c1", "dog", False),
        GivenLabel(3, "d", "d1", None, None),
        GivenLabel(0, "a", "a1", "שלום </script>", True),
        GivenLabel(5, "f", "f1", "שלום </script>", True),
    )


@pytest.mark.parametrize(
    "content",
    [
        {"corrections": [ITEM]},
        {"corrections": [{"row": 1, "item": "b", "label": "cat"}]},
        {"corrections": [{**ITEM, "label": ""}]},
        {"corrections": [{**ITEM, "row": "1", "label": "cat"}]},
        {"corrections": [{**ITEM, "row": -1, "label": "cat"}]},
        {"corrections": {"row": 1}},
        {"new_classes": [{"label": "cat"}]},
        {"confirmed": None},
        {"none_of_these": [{"row": 1}]},
    ],
)
def test_anything_else_is_refused_in_a_sentence(tmp_path, content):
    with pytest.raises(FileFormatError, match="not a file of corrections"):
        read_corrections(written(tmp_path, **content))


def test_a_file_of_a_later_version_says_so(tmp_path):
    with pytest.raises(FileFormatError, match="corrections in format 4, and this handful reads 3; update handful"):
        read_corrections(written(tmp_path, handful_corrections=4))


def test_files_that_are_not_json_or_not_there(tmp_path):
    (tmp_path / "x.json").write_text("[" * 100_000)
    for path, said in ((tmp_path / "x.json", "nested"), (tmp_path / "none.json", "does not exist")):
        with pytest.raises(FileFormatError, match=said):
            read_corrections(path)
    with pytest.raises(FileFormatError, match="regular file"):
        read_corrections(tmp_path)


def test_an_item_has_one_label(tmp_path):
    twice = [{**ITEM, "label": "cat"}, {**ITEM, "label": "dog"}]
    with pytest.raises(FileFormatError, match="'cat' and 'dog'"):
        read_corrections(written(tmp_path, corrections=twice))
    same = [{**ITEM, "label": "cat"}] * 2
    assert len(read_corrections(written(tmp_path, confirmed=same))) == 1


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("corrections"), np.random.default_rng(3)
    clouds = Clouds(12, 16, rng)
    names = np.array([f"class {k}" for k in range(12)])
    np.savez(
        folder / "c.npz",
        features=clouds.examples(4, 0.6, 11),
        labels=names[:11].repeat(4),
    )
    truth = np.repeat([0, 1, 2, 11], 15)
    features = clouds.around(truth, 0.6)
    np.savez(
        folder / "b.npz",
        features=features,
        id=[f"i{i}" for i in range(60)],
        site=np.array(["x", "y"])[np.arange(60) % 2],
    )
    np.savez(folder / "other.npz", features=features + 0.1, id=[f"i{i}" for i in range(60)])
    return folder, names[truth]


def of(found, *labels) -> tuple[GivenLabel, ...]:
    """Corrections of the items in these rows: row, name, label, and whether that is new."""
    places = {row: place for place, row in enumerate(found.about.batch.rows)}
    content = found.about.batch.content
    return tuple(GivenLabel(row, item, content(places[row]), *rest) for row, item, *rest in labels)


@pytest.mark.parametrize("group_by", [None, "site"])
def test_a_batch_is_labelled_again_with_fixed_labels_and_new_classes(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    said = [(i, f"i{i}", "class 11", True) for i in range(45, 49)] + [(0, "i0", "class 5", False)]
    after = classify(*arguments, group_by=group_by, given=of(before, *said))
    labels = predictions(after)["label"]
    assert labels[0] == "class 5"
    assert labels[45:49] == ["class 11"] * 4
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8
    assert (after.about.n_named, after.about.n_examples) == (1, 49)
    assert class_names(after) == (*class_names(before), "class 11")
    assert after.about.given == {**dict.fromkeys(range(45, 49), 11), 0: class_names(before).index("class 5")}
    # The page shows what was said before.
    data = page_data(after, "t")
    assert sorted(data["given"]) == sorted([row, label] for row, _, label, _ in said)
    assert data["classes"][data["n_known"] :] == ["class 11"]


@pytest.mark.parametrize("group_by", [None, "site"])
def test_none_of_these_is_taken_back_and_counts_for_no_class(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    known, stranger = 0, 50
    assert before.rejected[[known, stranger]].tolist() == [False, True]
    said = [(known, f"i{known}", None, None), (stranger, f"i{stranger}", "class 3", False)]
    after = classify(*arguments, group_by=group_by, given=of(before, *said))
    table = predictions(after)
    assert (table["rejected"][known], table["unknown"][known]) == (True, 1.0)
    assert (table["rejected"][stranger], table["unknown"][stranger], table["label"][stranger]) == (False, 0, "class 3")
    assert (after.about.n_examples, after.about.n_named) == (45, 0)
    assert after.about.given == {known: None, stranger: class_names(before).index("class 3")}
    assert sorted(page_data(after, "t")["given"]) == [[known, None], [stranger, "class 3"]]
    label = before.codes[:, 0][known]
    counts = [found.expected_counts.reshape(-1, 11).sum(0)[label] for found in (before, after)]
    assert counts[1] < counts[0] - 0.9


def test_a_class_whose_only_item_is_none_of_these_is_not_present(files):
    folder, _truth = files
    with np.load(folder / "b.npz") as batch:
        rows = [*range(15, 45), 0]
        np.savez(folder / "one.npz", features=batch["features"][rows], id=batch["id"][rows])
    before = classify(folder / "c.npz", folder / "one.npz")
    label = before.codes[:, 0][30]
    assert label in present_codes(before)
    after = classify(folder / "c.npz", folder / "one.npz", given=of(before, (30, "i0", None, None)))
    assert label not in present_codes(after)


def test_none_of_these_can_be_said_where_unknown_items_cannot_be_judged(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]], id=["a", "b", "c"])
    before = classify(tmp_path / "c.npz", tmp_path / "b.npz")
    assert predictions(before)["rejected"] == [None] * 3
    after = classify(tmp_path / "c.npz", tmp_path / "b.npz", given=of(before, (1, "b", None, None)))
    assert predictions(after)["rejected"] == [True, True, False]  # the first item is equal to the second
    data = page_data(after, "t")
    assert data["rejected"] == [1, 1, 0]
    assert data["unknown"][1] == pytest.approx(1)
    assert data["unknown"][2] < 0.5


def test_a_streamed_batch_takes_them_too(files, monkeypatch):
    folder, _truth = files
    monkeypatch.setattr("handful.classification.task.MOST_DENSE_BYTES", 0)
    before = classify(folder / "c.npz", folder / "b.npz")
    assert before.about.streamed
    said = [(i, f"i{i}", "class 11", True) for i in range(45, 49)] + [(0, "i0", "class 5", False)]
    said.append((1, "i1", None, None))
    after = classify(folder / "c.npz", folder / "b.npz", given=of(before, *said))
    assert after.rejected[[0, 1, *range(45, 49)]].tolist() == [False, True] + [False] * 4
    labels = predictions(after)["label"]
    assert (labels[0], labels[45:49]) == ("class 5", ["class 11"] * 4)
    assert after.certainty[0] == 1
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8


def test_labels_are_classes_or_new(files):
    folder, _ = files
    found = classify(folder / "c.npz", folder / "b.npz")
    with pytest.raises(
        LabelError, match=r"item 'i0' was given the label 'Class 3', .* 11 classes \(did you mean 'class 3'"
    ):
        classify(folder / "c.npz", folder / "b.npz", given=of(found, (0, "i0", "Class 3", False)))
    with pytest.raises(LabelError, match="did you mean 'class 3'"):
        classify(folder / "c.npz", folder / "b.npz", given={0: "Class 3"})
    chosen = of(found, (0, "i0", "Class 3", None))  # in another tool, from a list
    for known in ({"given": {0: "Class 3"}, "new_classes": ["Class 3"]}, {"given": chosen}):
        again = classify(folder / "c.npz", folder / "b.npz", **known)
        assert (predictions(again)["label"][0], again.about.n_named) == ("Class 3", 1)
    # The catalogue has got examples of a class that was new on the page.
    again = classify(folder / "c.npz", folder / "b.npz", given=of(found, (0, "i0", "class 3", True)))
    assert (predictions(again)["label"][0], again.about.n_named) == ("class 3", 0)
    with pytest.raises(LabelError, match="row 0 was given the label ' '; give a class, or None"):
        classify(folder / "c.npz", folder / "b.npz", given={0: " "})
    with pytest.raises(OptionError, match="no label is given; leave it out"):
        classify(folder / "c.npz", folder / "b.npz", new_classes=["Class 3"])


def changed(folder, name, rows, features=None, **columns):
    """The batch with some of its rows."""
    with np.load(folder / "b.npz") as batch:
        vectors = batch["features"][rows] if features is None else features
        np.savez(folder / name, features=vectors, **{key: np.asarray(values) for key, values in columns.items()})
    return folder / name


def test_items_are_found_again_where_others_have_come_and_gone(files):
    folder, _ = files
    found = classify(folder / "c.npz", folder / "b.npz")
    said = of(found, (0, "i0", "class 5", False), (7, "i7", "class 11", True), (9, "i9", None, None))
    rows = [59, 9, *range(1, 8)]
    place = changed(folder, "less.npz", rows, id=[f"i{row}" for row in rows])
    again = classify(folder / "c.npz", place, given=said)
    table = predictions(again)
    assert (table["label"][8], table["rejected"][1]) == ("class 11", True)
    assert again.about.given == {8: 11, 1: None}
    assert [str(one) for one in again.about.not_applied] == ["i0: it is not in the batch"]


def test_a_name_alone_is_not_enough(files):
    """The next card of a camera has names like the last one; and some items have changed."""
    folder, _ = files
    found = classify(folder / "c.npz", folder / "b.npz")
    said = of(found, (0, "i0", "class 5", False), (1, "i1", "class 6", False))
    with pytest.raises(
        LabelError, match=r"for another batch: none of the 2 items is in this one, .* i0: it has changed"
    ):
        classify(folder / "c.npz", folder / "other.npz", given=said)
    with np.load(folder / "b.npz") as batch:
        features = batch["features"].copy()
    features[0] *= 1.1
    place = changed(folder, "touched.npz", slice(None), features, id=[f"i{i}" for i in range(60)])
    again = classify(folder / "c.npz", place, given=said)
    assert again.about.given == {1: class_names(again).index("class 6")}
    assert [str(one) for one in again.about.not_applied] == ["i0: it has changed since"]


def test_items_without_names_are_found_by_their_content(files):
    folder, _ = files
    first = changed(folder, "rows.npz", slice(None))
    said = of(classify(folder / "c.npz", first), (10, "row 10", "class 5", False), (0, "row 0", "class 6", False))
    again = classify(folder / "c.npz", changed(folder, "later.npz", slice(1, None)), given=said)
    assert predictions(again)["label"][9] == "class 5"
    assert again.about.given == {9: class_names(again).index("class 5")}
    # Another item is called "row 0" now.
    assert [str(one) for one in again.about.not_applied] == ["row 0: it has changed since"]


def test_copies_are_told_apart_by_name_and_row_or_not_at_all(files):
    folder, _ = files
    rows = [0, 0, 0, *range(1, 20)]
    place = changed(folder, "copies.npz", rows, id=["x", "y", "y", *(f"i{row}" for row in rows[3:])])
    found = classify(folder / "c.npz", place)
    said = of(found, (0, "x", "class 5", False), (1, "y", "class 6", False), (2, "y", "class 7", False))
    labels = predictions(classify(folder / "c.npz", place, given=said))["label"]
    assert labels[:3] == ["class 5", "class 6", "class 7"]
    both = (*said, *of(found, (5, "i3", "class 8", False)))
    place = changed(folder, "moved.npz", [5, *rows], id=["new", "x", "y", "y", *(f"i{row}" for row in rows[3:])])
    again = classify(folder / "c.npz", place, given=both)
    assert predictions(again)["label"][1] == "class 5"
    # Rows have moved by one: the row that says which copy it was is another copy now, or none.
    assert [(one.name, one.row) for one in again.about.not_applied] == [("y", 1)]
    place = changed(folder, "one.npz", rows[2:], id=["y", *(f"i{row}" for row in rows[3:])])
    again = classify(folder / "c.npz", place, given=both)
    assert again.about.given == {3: class_names(again).index("class 8")}
    assert {one.reason for one in again.about.not_applied} == {
        "it was given more than one label, 'class 5' and 'class 6'"
    }


def test_a_photograph_that_is_gone_or_renamed(tmp_path, capsys):
    from tests.items_at_hand import image_bytes, image_folder

    pytest.importorskip("torch")
    image_folder(tmp_path / "c", n_classes=3, each=4)
    (tmp_path / "b").mkdir()
    for i in range(6):
        (tmp_path / "b" / f"{i}.png").write_bytes(image_bytes(900 + i))
    (tmp_path / "b" / "broken.png").write_bytes(b"no picture")
    words = ["classify", tmp_path / "c", tmp_path / "b", "--out", tmp_path / "o.csv"]
    found = classify(tmp_path / "c", tmp_path / "b")
    assert [one.name for one in found.about.batch.skipped] == ["broken.png"]
    content = {name: found.about.batch.content(place) for place, name in enumerate(found.about.batch.names)}
    said = [{"row": i, "item": f"{i}.png", "content": content[f"{i}.png"], "label": f"class{i % 3}"} for i in (1, 3, 4)]
    given = written(tmp_path, corrections=said)
    (tmp_path / "b" / "broken.png").unlink()
    (tmp_path / "b" / "3.png").unlink()
    (tmp_path / "b" / "1.png").rename(tmp_path / "b" / "renamed.png")
    assert main([*map(str, [*words, "--given", given, "--out", tmp_path / "page.html"])]) == 0
    error = capsys.readouterr().err
    assert "warning: 1 correction could not be applied:\n  3.png: it is not in the batch\n" in error
    assert "1 correction could not be applied</summary><ul><li>3.png: it is not in the batch" in (
        tmp_path / "page.html"
    ).read_text(encoding="utf-8")
    with (tmp_path / "o.csv").open() as stream:
        labels = {row["item"]: row["label"] for row in csv.DictReader(stream)}
    assert (labels["renamed.png"], labels["4.png"]) == ("class1", "class1")


def exported(tmp_path, *choices, row=1):
    """An export of Label Studio with one task for each choice."""
    tasks = [
        {
            "data": {"row": row, "item": "b", "handful_content": "b1"},
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [choice]}}]}],
        }
        for choice in choices
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    return tmp_path / "export.json"


def test_two_tasks_of_label_studio_that_contradict_each_other_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="gives item 'b' more than one label, 'cat' and 'dog'; keep one"):
        read_corrections(exported(tmp_path, "cat", "dog"))
    assert read_corrections(exported(tmp_path, "cat", "cat")) == (GivenLabel(1, "b", "b1", "cat", None),)


def test_two_annotations_of_one_task_that_contradict_each_other_are_refused(tmp_path):
    place = exported(tmp_path, "cat")
    (task,) = json.loads(place.read_text())
    second = {"result": [{"type": "choices", "value": {"choices": ["dog"]}}]}
    place.write_text(json.dumps([{**task, "annotations": [*task["annotations"], second]}]))
    with pytest.raises(FileFormatError, match="more than one label, 'cat' and 'dog'"):
        read_corrections(place)


def test_a_row_before_the_first_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="expected the number of a row, got -1"):
        read_corrections(exported(tmp_path, "cat", row=-1))
