"""What the page works with: every item once, whatever its name holds, and no more pictures than a browser bears."""

import json

import numpy as np
import pytest

from handful.classification import Shown, classify, page_data
from handful.classification.labelled import class_names, predictions
from handful.classification.page_data import embedded
from handful.classification.page_data import page_data as data_of
from handful.estimators import Proposal
from handful.extraction.items import list_items
from tests import answers_at_hand
from tests.classification.test_page import NAMES, TABLE, THREE, classified, of_sites, rejecting, unknown
from tests.items_at_hand import image_folder
from tests.worlds import Clouds

HOSTILE = ("</script><script>alert(1)</script>", "<!--", "\"'&", "🦊 שלום", "line\u2028end")


def test_no_text_ends_the_script_and_all_come_back():
    text = embedded({"names": HOSTILE})
    assert not set("<>&\u2028\u2029") & set(text)
    assert tuple(json.loads(text)["names"]) == HOSTILE


def test_every_item_once_with_its_answer():
    data = data_of(classified(TABLE, ("a", "b", "c", "d" * 1000)), "Tuesday")
    assert data["names"] == [f"item {row}" for row in range(4)]
    assert data["texts"][:3] == ["a", "b", "c"]
    assert len(data["texts"][3]) == 601
    assert [NAMES[k] for k in data["label"]] == ["ant & co", "ant & co", "<b>bee</b>", "<b>bee</b>"]
    assert data["certainty"] == [0.9, 0.999, 0.55, 0.75]
    assert data["doubtful"] == [0, 0, 1, 0]
    assert data["rejected"] == data["proposal"] == [0, 0, 0, 0]
    assert (data["left_out"], data["pictures"], data["groups"]) == (0, None, None)
    assert [k for k, *_ in data["present"]] == [0, 1, 2]
    assert embedded(data)


def test_the_least_certain_and_the_unknown_of_a_large_batch(monkeypatch):
    monkeypatch.setattr(page_data, "MOST_ON_PAGE", 2)
    found = classified(TABLE, about=unknown([False, True, False, False], [1]))
    data = data_of(found, "t")
    assert data["names"] == ["item 1", "item 2"]
    assert data["left_out"] == 2
    assert data["proposals"][0]["items"] == [0]
    assert data["proposal"] == [1, 0]


def test_pictures_of_the_least_certain_and_smaller_if_there_are_many(tmp_path, monkeypatch):
    source = list_items(image_folder(tmp_path / "images", 1, 4), labelled=False).source
    monkeypatch.setattr(page_data, "MOST_PICTURES", 2)
    data = data_of(classified(TABLE, source), "t")
    assert [picture is not None for picture in data["pictures"]] == [False, False, True, True]
    assert data["texts"] is None


def test_examples_of_classes_that_occur_come_first(monkeypatch):
    shown = Shown(("a dog", "an ant", "a <bee>"), ("1", "2", "3"), np.array(["dog", "ant & co", "<b>bee</b>"]), {2: 2})
    data = data_of(classified(TABLE, tuple("abcd"), shown=shown), "t")
    assert data["examples"] == [[1, "a <bee>", "3"], [0, "an ant", "2"], [3, "a dog", "1"]]
    assert data["nearest"] == {2: 0}


def test_proposals_of_groups_name_their_group_and_their_items():
    proposal = Proposal(np.array([1, 0]), 0.93, "<b>bee</b>", 1.0)
    found = of_sites(THREE, **rejecting([False, False, True, True, True, False, False], ((proposal,), (), ())))
    data = data_of(found, "t")
    assert data["groups"] == ["<marsh>", "quay", "wood"]
    assert data["group"] == [2, 2, 0, 0, 0, 1, 1]
    assert data["proposals"][0]["name"] == "<marsh>: new group 1"
    assert data["proposals"][0]["items"] == [3, 2]
    assert data["proposal"] == [0, 0, 1, 1, 0, 0, 0]
    assert data["rejected"] == [0, 0, 1, 1, 1, 0, 0]
    assert len(data["present_by_group"]) == 3
    assert data["present"][0][2] is None


def test_what_a_person_gave_before_is_kept():
    found = answers_at_hand.classified(TABLE, ("a", "b", "c", "new"), given={2: 3}, n_named=1)
    data = data_of(found, "t")
    assert data["given"] == [[2, "new"]]
    assert data["n_known"] == 3


# -- questions and explanations --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("look"), np.random.default_rng(3)
    clouds = Clouds(12, 16, rng)
    names = np.array([f"class {k}" for k in range(12)])
    features = clouds.examples(4, 0.8)
    np.savez(folder / "c.npz", features=features, labels=names.repeat(4))
    batch = clouds.around(np.repeat([0, 1, 2], 20), 0.8)
    np.savez(folder / "b.npz", features=batch, site=np.array(["x", "y"])[np.arange(60) % 2])
    return folder


@pytest.mark.parametrize("group_by", [None, "site"])
def test_the_page_has_questions_and_explanations(files, group_by):
    found = classify(files / "c.npz", files / "b.npz", group_by=group_by)
    data = data_of(found, "t")
    assert len(set(data["first"])) == 10
    assert sorted(data["why"]) == list(range(60))
    for item, (alone, rival, chance, *_, n_items) in ((i, said[:8]) for i, said in data["why"].items()):
        assert 0 <= alone < 12
        assert -1 <= rival < 12
        assert 0 <= chance <= 1
        assert n_items == (60 if group_by is None else 30)
        assert rival != data["label"][item]
    assert all(name.startswith("class ") for said in data["why"].values() for _, name, _ in said[8:])


def test_items_that_a_person_labelled_are_not_asked_about(files):
    before = data_of(classify(files / "c.npz", files / "b.npz"), "t")["first"]
    after = classify(files / "c.npz", files / "b.npz", given={before[0]: "class 0"})
    assert before[0] not in data_of(after, "t")["first"]
    assert predictions(after)["label"][before[0]] == "class 0"


# -- the map -----------------------------------------------------------------------------------------------------------


def of_vectors(tmp_path, **options):
    clouds = Clouds(8, 12)
    truth = np.arange(3).repeat(10)
    labels = np.arange(8).repeat(5)
    examples = clouds.around(labels, 0.3)
    np.savez(tmp_path / "catalogue.npz", features=examples, labels=np.array([f"kind {k}" for k in labels]))
    batch = clouds.around(truth, 0.3)
    np.savez(tmp_path / "batch.npz", features=batch, site=np.array(["marsh", "wood"])[np.arange(30) % 2])
    return classify(tmp_path / "catalogue.npz", tmp_path / "batch.npz", **options)


def test_the_map_of_the_page_is_that_of_the_answer(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = of_vectors(tmp_path)
    drawn = data_of(found, "t")["map"]
    at = np.concatenate([dots.get_offsets() for dots in found.plot_map().collections if dots.get_sizes()[0] == 28])
    pyplot.close("all")
    assert np.array(drawn["items"]).shape == (30, 2)
    wide = np.ptp(at, axis=0).max()
    np.testing.assert_allclose(np.sort(drawn["items"], axis=0), np.sort(at / wide, axis=0), atol=1e-4)
    assert {class_names(found)[k] for k in drawn["codes"]} == {"kind 0", "kind 1", "kind 2"}
    assert len(drawn["examples"]) == len(drawn["codes"]) == 15


def test_groups_share_one_map_and_answers_without_vectors_have_none(tmp_path, monkeypatch):
    monkeypatch.setattr(page_data, "MOST_ON_PAGE", 12)
    monkeypatch.setattr(page_data, "MOST_ON_MAP", 5)
    drawn = data_of(of_vectors(tmp_path, group_by="site"), "t")["map"]
    assert len(drawn["items"]) == 12
    assert len(drawn["examples"]) == len(drawn["codes"]) <= 5
    assert data_of(classified(TABLE), "t")["map"] is None
