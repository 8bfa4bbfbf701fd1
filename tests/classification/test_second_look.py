"""A second look: questions and explanations of a batch, the same whether its answer is at hand or not."""

from dataclasses import replace

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.page_data import page_data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("look"), np.random.default_rng(3)
    centres = rng.normal(size=(12, 16))
    names = np.array([f"class {k}" for k in range(12)])
    features = centres.repeat(4, axis=0) + 0.8 * rng.normal(size=(48, 16))
    np.savez(folder / "c.npz", features=features, labels=names.repeat(4))
    batch = centres[np.repeat([0, 1, 2], 20)] + 0.8 * rng.normal(size=(60, 16))
    np.savez(folder / "b.npz", features=batch, site=np.array(["x", "y"])[np.arange(60) % 2])
    return folder


def test_without_the_answer_the_batch_is_labelled_again(files):
    look = classify(files / "c.npz", files / "b.npz").look
    asked, why = look.at(np.arange(60), [4, 7], 3)
    again, same = replace(look, found=None).at(np.arange(60), [4, 7], 3)
    assert [one.item for one in asked] == [one.item for one in again]
    assert [round(one.alone_probability, 6) for one in why] == [round(one.alone_probability, 6) for one in same]
    assert [one.item for one in why] == [4, 7]


@pytest.mark.parametrize("group_by", [None, "site"])
def test_the_page_has_questions_and_explanations(files, group_by):
    found = classify(files / "c.npz", files / "b.npz", group_by=group_by)
    data = page_data(found, "t")
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
    before = classify(files / "c.npz", files / "b.npz")
    (first,) = {before.look.at(np.arange(60), [0], 1)[0][0].item}
    given = np.full(60, -1)
    given[first] = 0
    asked, _ = replace(before.look, given=given).at(np.arange(60), [0], 59)
    assert first not in {one.item for one in asked}
