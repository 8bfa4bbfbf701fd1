"""A batch of a catalogue is opened: examples are the answers about other batches; without any, it is named."""

import math
import re

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.errors import LabelError, OptionError
from handful.items import bring, import_labelled
from handful.review.opening import OpenOptions, open_batch
from handful.review.server import Page
from tests.review.reviews import answer_next, say
from tests.worlds import Clouds

CLASSES, EACH, DIM = ("ant", "bee", "cat", "dog"), 9, 16


@pytest.fixture(scope="module")
def world():
    """Vectors of a batch, and their true classes; and vectors of the next one."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(len(CLASSES)), EACH))
    clouds = Clouds(len(CLASSES), DIM, rng, apart=2)
    return clouds.around(codes), [CLASSES[k] for k in codes], clouds.examples(3), clouds.around(codes)


@pytest.fixture
def file(world):
    """A catalogue in memory with a batch, of which nothing is known."""
    with CatalogueFile.open() as made:
        bring(made, "monday", world[0])
        yield made


def see_all(review, truth):
    """Answer every request rightly; return the number of decisions."""
    while answer_next(review, truth) is not None:
        pass
    return review.n_steps


def test_from_nothing_to_labels_and_the_next_batch(world, file):
    _, truth, later, next_batch = world
    review = open_batch(file, "monday", person="Ada")
    first = Page(review, "monday").whole()
    assert (first["from_nothing"], first["classes"], len(first["not_named"])) == (True, [], len(truth))
    assert first["ask"]["asks_name"]
    assert see_all(review, truth) < len(truth) / 2
    assert [one.label for one in review.decisions.values()] == truth

    bring(file, "tuesday", next_batch)
    following = open_batch(file, "tuesday", person="Ada")
    assert not following.session.from_nothing
    assert following.said_by_model() == truth
    say(following, following.session.ask().items[0], following.session.ask().label)
    assert following.session.calibration.rows
    bring(file, "later", later)
    third = open_batch(file, "later")
    assert third.said_by_model() == np.repeat(CLASSES, 3).tolist()
    assert third.session.options.first_calibration.rows == following.session.calibration.rows


def test_an_example_counts_once_however_often_it_was_met_and_answers_here_are_no_examples(world, file):
    """W9: on 0.5.0 `--given` after Finish counted the same answers twice, as examples and as answers."""
    vectors, truth, _, _ = world
    review = open_batch(file, "monday")
    for name in CLASSES:
        say(review, [item for item, label in enumerate(truth) if label == name], name)
    again = open_batch(file, "monday")
    assert again.session.from_nothing  # its own answers make no examples of it
    assert again.n_steps == len(CLASSES)
    bring(file, "copy", vectors)  # the same items, met a second time
    copy = open_batch(file, "copy")
    assert copy.session.said.given == {}
    for name in CLASSES:
        say(copy, [item for item, label in enumerate(truth) if label == name], name)
    bring(file, "tuesday", world[3])
    assert open_batch(file, "tuesday").answer.about.n_examples == len(truth)


def test_merge_correction_undo_and_a_second_start_give_the_same_state(world, file):
    truth = world[1]
    review = open_batch(file, "monday")
    page = Page(review, "monday")
    rows = {name: [item for item, label in enumerate(truth) if label == name] for name in CLASSES}
    for name in CLASSES:
        say(review, rows[name], name)
    before = page.state()

    review.merge(review.number, "ant", "bee")
    assert {one.label for one in review.decisions.values()} == {"bee", "cat", "dog"}
    assert set(review.session.result.labels[rows["ant"]]) == {"bee"}
    say(review, rows["ant"][:2], "wasp")
    assert {review.decisions[item].label for item in rows["ant"][:2]} == {"wasp"}
    assert {review.decisions[item].label for item in rows["bee"]} == {"bee"}
    after = page.state()

    assert Page(open_batch(file, "monday"), "monday").state() == after
    review.undo(review.number)
    review.undo(review.number)
    assert page.state() | {"number": 0} == before | {"number": 0}


def test_a_class_is_renamed_by_a_name_that_nobody_has_said(file):
    review = open_batch(file, "monday")
    say(review, list(review.session.ask().items), "foks")
    review.merge(review.number, "foks", "fox")
    assert review.new_classes == ["fox"]
    assert review.session.names == ["fox"]
    for label, into in (("foks", "owl"), ("fox", "fox"), ("fox", "none of these")):
        with pytest.raises((OptionError, LabelError)):
            review.merge(review.number, label, into)


def test_names_that_may_occur_are_offered_and_rule_nothing_out(file, tmp_path):
    (tmp_path / "names.txt").write_text("owl\nelk\n")
    review = open_batch(file, "monday", OpenOptions(known={"candidates": tmp_path / "names.txt"}))
    assert Page(review, "monday").state()["offered"] == ["owl", "elk"]
    say(review, list(review.session.ask().items), "fox")
    assert Page(review, "monday").state()["offered"] == ["fox", "owl", "elk"]
    assert review.session.result.classes.tolist() == ["fox"]


@pytest.mark.parametrize(
    "how", [OpenOptions(group_by=["site"]), OpenOptions(known={"expect_unknown": 0.5})], ids=["group_by", "expected"]
)
def test_what_needs_examples_is_refused_without_any(file, how):
    with pytest.raises(OptionError, match="there are no examples yet"):
        open_batch(file, "monday", how)


@pytest.mark.parametrize("rows", [np.ones((1, 4)), np.ones((5, 4)), np.eye(4)[:2], np.zeros((3, 4))])
def test_a_batch_of_one_item_of_equal_items_and_of_two(rows):
    with CatalogueFile.open() as file:
        bring(file, "few", rows)
        review = open_batch(file, "few")
        assert len(Page(review, "few").whole()["names"]) == len(rows)
        see_all(review, ["fox"] * len(rows))
        assert review.said_by_model() == ["fox"] * len(rows)


def test_a_batch_that_has_no_item_is_refused():
    with CatalogueFile.open() as file, pytest.raises(OptionError, match="has no item that can be labelled"):
        open_batch(file, "monday")


def test_measurements_are_scaled_by_their_own_spread():
    rng = np.random.default_rng(1)
    truth = np.repeat(["iris", "rose"], 20)
    table = {
        "height": np.where(truth == "iris", 20.0, 60.0) + rng.normal(size=40),
        "width": np.where(truth == "iris", 0.5, 0.2) + 0.02 * rng.normal(size=40),
    }
    with CatalogueFile.open() as file:
        bring(file, "flowers", table)
        see_all(open_batch(file, "flowers"), truth.tolist())
        bring(file, "more", {name: values[::-1] + 0.01 for name, values in table.items()})
        assert open_batch(file, "more").said_by_model() == truth.tolist()[::-1]


def test_items_have_a_map_before_and_after_names(world, file):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    review = open_batch(file, "monday")
    for name in (None, *CLASSES):
        if name is not None:
            say(review, [item for item, label in enumerate(world[1]) if label == name], name)
        ax = review.session.result.plot_map()
        drawn = sum(len(points.get_offsets()) for points in ax.collections)
        assert drawn >= len(world[1])
    found = [text.get_text().split()[-1] for text in ax.get_legend().get_texts()]
    assert sorted(found) == sorted(CLASSES)


def test_before_the_first_name_nothing_is_said_about_labels(file):
    review = open_batch(file, "monday")
    assert review.progress()["said"] == "0 of 36 rows seen. 36 rows are not named yet."
    say(review, review.session.ask().items, "ant")
    said = review.progress()["said"]
    assert " rows seen with 1 answer. About " in said
    assert "are expected to be right" in said


def test_where_one_may_stop_the_page_says_what_was_done_and_what_is_left():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(6), [40, 30, 30, 20, 2, 1]))
    told = []
    with CatalogueFile.open() as file:
        bring(file, "many", Clouds(6, 24, rng, apart=2).around(truth))
        review = open_batch(file, "many")
        while review.session.ask() is not None:
            progress = review.progress()
            told.append(progress["may_stop"])
            found = re.search(r"The (\d+) rows least like what you had seen held nothing new; (.+)", progress["said"])
            left = len(truth) - progress["seen"]
            assert (found is not None) == (told[-1] and left > 0)
            if found is not None:
                assert int(found[1]) == review.session.n_odd
                pages = "1 more page" if left <= 24 else f"{math.ceil(left / 24)} more pages"
                assert found[2] == f"{left} {'is' if left == 1 else 'are'} left, about {pages}."
                assert {kind.label for kind in review.session.kinds if kind.n_seen} == {f"name {k}" for k in range(6)}
            answer_next(review, [f"name {k}" for k in truth])
        assert set(told) == {False, True}
        assert "held nothing new" not in review.progress()["said"]  # everything has been seen


def test_an_answer_whose_class_the_candidates_lack_is_refused_and_nothing_is_lost(world, tmp_path):
    with CatalogueFile.open() as file:
        import_labelled(file, (world[2], np.repeat(CLASSES, 3)), "examples")
        bring(file, "monday", world[0])
        say(open_batch(file, "monday"), 3, "dog")
        (tmp_path / "some.txt").write_text("ant\nbee\n")
        with pytest.raises((OptionError, LabelError), match="dog"):
            open_batch(file, "monday", OpenOptions(known={"candidates": tmp_path / "some.txt"}))
        assert open_batch(file, "monday").session.said.given == {3: "dog"}
