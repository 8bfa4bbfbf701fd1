"""Corrections as a file: taken back for the same batch, refused with a sentence for any other."""

import json
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import Corrections, GivenLabel, classify, read_corrections
from handful.classification.page_data import page_data
from handful.errors import FileFormatError, LabelError

ITEM = {"row": 1, "item": "b"}


def written(tmp_path, **content):
    kinds = {kind: [] for kind in ("corrections", "new_classes", "confirmed", "none_of_these")}
    whole = {"handful_corrections": 2, "batch": "12ab", **kinds} | content
    place = tmp_path / "c.json"
    place.write_text(json.dumps(whole), encoding="utf-8")
    return place


def test_all_kinds_are_read(tmp_path):
    place = written(
        tmp_path,
        corrections=[{"row": 1, "item": "b", "label": "cat"}],
        new_classes=[{"label": "שלום </script>", "items": [{"row": 0, "item": "a"}, {"row": 5, "item": "f"}]}],
        confirmed=[{"row": 2, "item": "c", "label": "dog"}],
        none_of_these=[{"row": 3, "item": "d"}],
    )
    assert read_corrections(place) == Corrections(
        "12ab",
        (
            GivenLabel(1, "b", "cat", False),
            GivenLabel(2, "c", "dog", False),
            GivenLabel(3, "d", None, None),
            GivenLabel(0, "a", "שלום </script>", True),
            GivenLabel(5, "f", "שלום </script>", True),
        ),
    )


@pytest.mark.parametrize(
    "content",
    [
        {"handful_corrections": 1},
        {"batch": 7},
        {"corrections": [ITEM]},
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
    assert len(read_corrections(written(tmp_path, confirmed=same)).labels) == 1


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("corrections"), np.random.default_rng(3)
    centres = rng.normal(size=(12, 16))
    names = np.array([f"class {k}" for k in range(12)])
    np.savez(
        folder / "c.npz",
        features=centres[:11].repeat(4, axis=0) + 0.6 * rng.normal(size=(44, 16)),
        labels=names[:11].repeat(4),
    )
    truth = np.repeat([0, 1, 2, 11], 15)
    features = centres[truth] + 0.6 * rng.normal(size=(60, 16))
    np.savez(
        folder / "b.npz",
        features=features,
        id=[f"i{i}" for i in range(60)],
        site=np.array(["x", "y"])[np.arange(60) % 2],
    )
    np.savez(folder / "other.npz", features=features[::-1], id=[f"i{i}" for i in range(60)])
    return folder, names[truth]


def of(found, *labels) -> Corrections:
    return Corrections(found.batch.fingerprint, tuple(GivenLabel(*label) for label in labels))


@pytest.mark.parametrize("group_by", [None, "site"])
def test_a_batch_is_labelled_again_with_fixed_labels_and_new_classes(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    said = [(i, f"i{i}", "class 11", True) for i in range(45, 49)] + [(0, "i0", "class 5", False)]
    after = classify(*arguments, group_by=group_by, given=of(before, *said))
    labels = after.predictions()["label"]
    assert labels[0] == "class 5"
    assert labels[45:49] == ["class 11"] * 4
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8
    assert (after.n_named, after.n_examples) == (1, 49)
    assert after.class_names == (*before.class_names, "class 11")
    assert after.given == {**dict.fromkeys(range(45, 49), 11), 0: before.class_names.index("class 5")}
    # The next page begins with what was said before, so that the file it saves holds all of it.
    data = page_data(after, "t")
    assert sorted(data["given"]) == sorted([row, label] for row, _, label, _ in said)
    assert data["classes"][data["n_known"] :] == ["class 11"]


@pytest.mark.parametrize("group_by", [None, "site"])
def test_none_of_these_is_taken_back_and_counts_for_no_class(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    known, stranger = 0, 50
    assert before.answer.rejected[[known, stranger]].tolist() == [False, True]
    said = [(known, f"i{known}", None, None), (stranger, f"i{stranger}", "class 3", False)]
    after = classify(*arguments, group_by=group_by, given=of(before, *said))
    table = after.predictions()
    assert (table["rejected"][known], table["unknown"][known]) == (True, 1.0)
    assert (table["rejected"][stranger], table["unknown"][stranger], table["label"][stranger]) == (False, 0, "class 3")
    assert (after.n_examples, after.n_named) == (45, 0)
    assert after.given == {known: None, stranger: before.class_names.index("class 3")}
    assert sorted(page_data(after, "t")["given"]) == [[known, None], [stranger, "class 3"]]
    label = before.answer.codes[:, 0][known]
    counts = [found.answer.expected_counts.reshape(-1, 11).sum(0)[label] for found in (before, after)]
    assert counts[1] < counts[0] - 0.9


def test_a_class_whose_only_item_is_none_of_these_is_not_present(files):
    folder, _truth = files
    with np.load(folder / "b.npz") as batch:
        rows = [*range(15, 45), 0]
        np.savez(folder / "one.npz", features=batch["features"][rows], id=batch["id"][rows])
    before = classify(folder / "c.npz", folder / "one.npz")
    label = before.answer.codes[:, 0][30]
    assert label in before.present()
    after = classify(folder / "c.npz", folder / "one.npz", given=of(before, (30, "i0", None, None)))
    assert label not in after.present()


def test_none_of_these_can_be_said_where_unknown_items_cannot_be_judged(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]], id=["a", "b", "c"])
    before = classify(tmp_path / "c.npz", tmp_path / "b.npz")
    assert before.predictions()["rejected"] == [None] * 3
    after = classify(tmp_path / "c.npz", tmp_path / "b.npz", given=of(before, (1, "b", None, None)))
    assert after.predictions()["rejected"] == [False, True, False]
    data = page_data(after, "t")
    assert (data["rejected"], data["unknown"]) == ([0, 1, 0], [0, 1, 0])


def test_a_streamed_batch_takes_them_too(files, monkeypatch):
    folder, _truth = files
    monkeypatch.setattr("handful.classification.label.MOST_DENSE_BYTES", 0)
    before = classify(folder / "c.npz", folder / "b.npz")
    assert before.streamed
    said = [(i, f"i{i}", "class 11", True) for i in range(45, 49)] + [(0, "i0", "class 5", False)]
    said.append((1, "i1", None, None))
    after = classify(folder / "c.npz", folder / "b.npz", given=of(before, *said))
    assert after.answer.rejected[[0, 1, *range(45, 49)]].tolist() == [False, True] + [False] * 4
    labels = after.predictions()["label"]
    assert (labels[0], labels[45:49]) == ("class 5", ["class 11"] * 4)
    assert after.answer.chances[:, 0][0] == 1
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ((0, "i0", "nothing", False), "which the catalogue does not have"),
        ((0, "i0", "class 3", True), "but the catalogue has it"),
        ((0, "i1", "class 3", False), "'i1' in row 0, but it is not there"),
        ((99, "i1", "class 3", False), "row 99"),
    ],
)
def test_what_does_not_fit_is_refused(files, label, said):
    folder, _ = files
    found = classify(folder / "c.npz", folder / "b.npz")
    with pytest.raises(LabelError, match=said):
        of(found, label).of_batch(found.batch, found.class_names)


def test_another_batch_is_refused(files):
    folder, _ = files
    found = classify(folder / "c.npz", folder / "b.npz")
    with pytest.raises(LabelError, match="for another batch"):
        classify(folder / "c.npz", folder / "other.npz", given=of(found, (0, "i0", "class 3", False)))
    with pytest.raises(LabelError, match="for another batch"):
        of(found).of_batch(replace(found.batch, fingerprint="34cd"), found.class_names)


def exported(tmp_path, *choices, row=1):
    """An export of Label Studio with one task for each choice."""
    tasks = [
        {
            "data": {"row": row, "item": "b", "handful_batch": "12ab"},
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [choice]}}]}],
        }
        for choice in choices
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    return tmp_path / "export.json"


def test_two_tasks_of_label_studio_that_contradict_each_other_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="gives item 'b' more than one label, 'cat' and 'dog'; keep one"):
        read_corrections(exported(tmp_path, "cat", "dog"))
    assert read_corrections(exported(tmp_path, "cat", "cat")).labels == (GivenLabel(1, "b", "cat", None),)


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
