"""Labels that a person gave to items of a file: they stay, open new classes, and count as examples of theirs."""

import numpy as np
import pytest

from handful.classification import classify, write_page
from handful.classification.labelled import class_names, predictions, present_codes
from handful.classification.page_data import page_data
from handful.cli.printed import print_batch
from handful.errors import LabelError, OptionError
from tests.items_at_hand import image_bytes, image_folder
from tests.worlds import Clouds


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("given"), np.random.default_rng(3)
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
    return folder, names[truth]


@pytest.mark.parametrize("group_by", [None, "site"])
def test_a_batch_is_labelled_again_with_fixed_labels_and_new_classes(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    said = dict.fromkeys(range(45, 49), "class 11") | {0: "class 5"}
    after = classify(*arguments, group_by=group_by, given=said, new_classes=["class 11"])
    labels = predictions(after)["label"]
    assert labels[0] == "class 5"
    assert labels[45:49] == ["class 11"] * 4
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8
    assert (after.about.n_named, after.about.n_examples) == (1, 49)
    assert class_names(after) == (*class_names(before), "class 11")
    assert after.about.given == {**dict.fromkeys(range(45, 49), 11), 0: class_names(before).index("class 5")}
    # The page shows what was said before.
    data = page_data(after, "t")
    assert sorted(data["given"]) == sorted(map(list, said.items()))
    assert data["classes"][data["n_known"] :] == ["class 11"]


@pytest.mark.parametrize("group_by", [None, "site"])
def test_none_of_these_is_taken_back_and_counts_for_no_class(files, group_by):
    folder, _truth = files
    arguments = (folder / "c.npz", folder / "b.npz")
    before = classify(*arguments, group_by=group_by)
    known, stranger = 0, 50
    assert before.rejected[[known, stranger]].tolist() == [False, True]
    after = classify(*arguments, group_by=group_by, given={known: None, stranger: "class 3"})
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
    after = classify(folder / "c.npz", folder / "one.npz", given={30: None})
    assert label not in present_codes(after)


def test_none_of_these_can_be_said_where_unknown_items_cannot_be_judged(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]], id=["a", "b", "c"])
    before = classify(tmp_path / "c.npz", tmp_path / "b.npz")
    assert predictions(before)["rejected"] == [None] * 3
    after = classify(tmp_path / "c.npz", tmp_path / "b.npz", given={1: None})
    assert predictions(after)["rejected"] == [True, True, False]  # the first item is equal to the second
    data = page_data(after, "t")
    assert data["rejected"] == [1, 1, 0]
    assert data["unknown"][1] == pytest.approx(1)
    assert data["unknown"][2] < 0.5


def test_a_large_batch_takes_them_too(files, monkeypatch):
    folder, _truth = files
    monkeypatch.setattr("handful.classification.task.MOST_DENSE_BYTES", 0)
    said = dict.fromkeys(range(45, 49), "class 11") | {0: "class 5", 1: None}
    after = classify(folder / "c.npz", folder / "b.npz", given=said, new_classes=["class 11"])
    assert after.rejected[[0, 1, *range(45, 49)]].tolist() == [False, True] + [False] * 4
    labels = predictions(after)["label"]
    assert (labels[0], labels[45:49]) == ("class 5", ["class 11"] * 4)
    assert after.certainty[0] == 1
    assert np.mean(np.array(labels[49:]) == "class 11") > 0.8


def test_labels_are_classes_or_new(files):
    folder, _ = files
    arguments = (folder / "c.npz", folder / "b.npz")
    with pytest.raises(
        LabelError, match=r"item 'i0' was given the label 'Class 3', .* 11 classes \(did you mean 'class 3'"
    ):
        classify(*arguments, given={0: "Class 3"})
    again = classify(*arguments, given={0: "Class 3"}, new_classes=["Class 3"])
    assert (predictions(again)["label"][0], again.about.n_named) == ("Class 3", 1)
    assert classify(*arguments, given={0: "none of these"}).about.given == {0: None}
    with pytest.raises(LabelError, match="row 0 was given the label ' '; give a class, or None"):
        classify(*arguments, given={0: " "})
    with pytest.raises(LabelError, match="the batch has no such row"):
        classify(*arguments, given={60: "class 3"})
    with pytest.raises(LabelError, match=r"labels in a file join a catalogue: handful catalogue add"):
        classify(*arguments, given="export.json")
    with pytest.raises(OptionError, match="no label is given; leave it out"):
        classify(*arguments, new_classes=["Class 3"])


def test_a_label_of_a_photograph_that_cannot_be_read_is_listed(tmp_path, capsys):
    pytest.importorskip("torch")
    image_folder(tmp_path / "c", n_classes=3, each=4)
    (tmp_path / "b").mkdir()
    for i in range(6):
        (tmp_path / "b" / f"{i}.png").write_bytes(image_bytes(900 + i))
    (tmp_path / "b" / "broken.png").write_bytes(b"no picture")
    found = classify(tmp_path / "c", tmp_path / "b", given={1: "class1", 6: "class2"})
    assert [str(one) for one in found.about.not_applied] == ["broken.png: it could not be read"]
    assert found.about.given == {1: 1}
    write_page(found, tmp_path / "page.html", title="b")
    said = "1 label could not be applied</summary><ul><li>broken.png: it could not be read"
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
    print_batch(found, [])
    assert "warning: 1 label could not be applied:\n  broken.png: it could not be read\n" in capsys.readouterr().err
