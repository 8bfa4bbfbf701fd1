"""A review of data in memory: numbers as classes, texts and images, and the answer that comes back."""

import json
import re
import threading
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
import pytest

from handful.errors import LabelError, OptionError
from handful.estimators import BatchClassifier
from handful.review import memory
from handful.review.memory import PageLabeller
from handful.review.serve import Address
from handful.review.server import Wanted
from handful.session import BatchSaid, Session
from tests.review.reviews import under_review
from tests.worlds import Clouds

DIM, KNOWN = 12, 10


@pytest.fixture(scope="module")
def fitted():
    clouds = Clouds(KNOWN, DIM)
    truth = np.repeat([2, 5, 7], 8)
    classifier = BatchClassifier().fit(clouds.examples(1, 0.6), np.arange(KNOWN))
    return classifier, clouds.around(truth, 0.6), truth


def test_labels_are_those_of_infer_with_the_same_given(fitted):
    classifier, batch, _ = fitted
    for given in ({}, {3: "2", 4: None}, {3: "2", 9: "77"}):
        found = PageLabeller(classifier, batch)(BatchSaid(given))
        numbers = {item: None if name is None else int(name) for item, name in given.items()}
        wanted = classifier.infer(batch, **({"given": numbers, "new_classes": [77]} if given else {}))
        labels = [None if label is None else str(label) for label in wanted.labels.tolist()]
        assert found.labels.tolist() == labels
        np.testing.assert_allclose(found.certainty, wanted.certainty, atol=1e-6)
        assert found.classes[:KNOWN].tolist() == list(map(str, range(KNOWN)))


def test_new_classes_must_be_of_the_kind_of_the_others(fitted):
    with pytest.raises(LabelError, match="the classes are numbers, and 'kraken' is none"):
        PageLabeller(*fitted[:2])(BatchSaid({0: "kraken"}))


@pytest.mark.parametrize(
    ("classes", "name", "said"),
    [
        (list("abcdefghij"), "nan", "says that a label is missing"),
        (list("abcdefghij"), "\u200b", "says that a label is missing"),
        (np.arange(10) > 4, "lynx", "no third one"),
        (np.arange(10) > 4, "nan", "says that a label is missing"),
        (np.arange(10), "+3", "is the class '3'"),
        (np.arange(10), "03", "is the class '3'"),
        (np.arange(10), "٣", "is the class '3'"),
        (np.arange(10), "077", "write '77'"),
        (np.arange(10), "7_7", "write '77'"),
        (np.arange(10), "9" * 30, "is none; give the new class one"),
        (np.arange(10, dtype=np.uint8), "-3", "is none; give the new class one"),
        (np.arange(10.0), "inf", "the classes are whole numbers"),
        (np.arange(10.0), "7.5", "the classes are whole numbers"),
        (np.arange(10.0), "1e0", "is the class '1.0'"),
        (np.arange(10.0), "77", "write '77.0'"),
        (np.arange("2026-01-01", "2026-01-11", dtype="M8[D]"), "soon", "the classes are dates"),
    ],
)
def test_a_label_that_fit_could_not_take_is_refused_when_it_is_typed(tmp_path, fitted, classes, name, said):
    _, batch, _ = fitted
    rng = np.random.default_rng(1)
    label = PageLabeller(BatchClassifier().fit(rng.normal(size=(10, DIM)), classes), batch)
    with under_review(tmp_path, label) as review:
        with pytest.raises(LabelError, match=said):
            review.decide(review.number, [1], "new", name)
        assert review.n_steps == 0


@pytest.mark.parametrize(
    ("classes", "name"),
    [
        (list("abcdefghij"), "lynx"),
        (np.arange(10), "77"),
        (np.arange(10, dtype=np.uint8), "77"),
        (np.arange(10.0), "77.0"),
        (np.arange("2026-01-01", "2026-01-11", dtype="M8[D]"), "2027-01-01"),
    ],
)
def test_a_label_that_was_taken_comes_back_from_fit(tmp_path, fitted, classes, name):
    _, batch, _ = fitted
    classifier = BatchClassifier().fit(np.random.default_rng(1).normal(size=(10, DIM)), classes)
    label = PageLabeller(classifier, batch)
    with under_review(tmp_path, label) as review:
        review.decide(review.number, [1], "new", name)
        given = {1: label.labels.label(review.session.said.given[1])}
    assert str(given[1]) == name
    assert classifier.infer(batch, given=given, new_classes=list(given.values())).labels[1] == given[1]


@pytest.mark.parametrize("name", ["none of these", "bad item", "passed"])
def test_what_says_that_an_item_has_no_class_is_no_name_of_one(tmp_path, fitted, name):
    label = PageLabeller(*fitted[:2])
    with under_review(tmp_path, label) as review, pytest.raises(LabelError, match="cannot be the name of a class"):
        review.decide(review.number, [1], "new", name)


def test_labels_given_before_are_answers_of_the_review(fitted, monkeypatch):
    classifier, batch, _ = fitted
    monkeypatch.setattr(memory, "serve", lambda page, end, where: None)  # interrupted at once
    session = Session(batch, classifier, given={3: 2, 4: None, 5: 77}, new_classes=[77])
    session.answer(6, 3).skip(7).discard(8).review()
    assert session.said.given == {3: 2, 4: None, 5: 77, 6: 3}
    assert (session.said.skipped, session.said.discarded) == ({7}, {8})
    assert session.result.labels[5] == 77


def test_a_session_without_a_catalogue_is_reviewed(fitted, monkeypatch):
    _, batch, _ = fitted
    session = Session(batch, candidates=["owl"]).answer([0, 1], "fox", new=True)

    def served(page, finish, where):
        state = page.whole()
        assert state["offered"] == ["fox", "owl"]
        page.review.decide(page.review.number, [2, 3], "new", "foks")
        page.review.merge(page.review.number, "foks", "fox")
        return finish(page.review, Wanted())

    monkeypatch.setattr(memory, "serve", served)
    assert session.review() is session
    assert session.said.given == dict.fromkeys(range(4), "fox")
    assert session.result.labels[:4].tolist() == ["fox"] * 4
    with pytest.raises(LabelError, match="names on a page are texts"):
        Session(batch).answer(0, 7, new=True).review()


def test_a_session_in_groups_is_not_reviewed(fitted):
    classifier, batch, _ = fitted
    with pytest.raises(OptionError, match="make a session of each group"):
        Session(batch, classifier, groups=np.arange(len(batch)) % 2).review()


class Visitor(threading.Thread):
    """Someone who opens the address, answers three questions and finishes."""

    def __init__(self, truth):
        super().__init__(daemon=True)
        self.truth, self.address, self.said, self.shown = truth, "", {}, None

    def announce(self, address):
        self.address = address
        self.start()

    def run(self):
        browser = build_opener(HTTPCookieProcessor())
        page = browser.open(self.address)
        assert b"<script type='module' src='review.js'></script>" in page.read()

        def post(path, **body):
            headers = {"content-type": "application/json", "origin": self.address.partition("/?")[0]}
            return json.loads(browser.open(Request(page.url + path, json.dumps(body).encode(), headers)).read())

        state = json.loads(browser.open(f"{page.url}state").read())
        self.shown = (state["texts"], state["pictures"])
        if state["pictures"]:
            assert browser.open(f"{page.url}media/{state['pictures'][0]}").read()[:2] == b"\xff\xd8"
        for item in (0, 8, 16):
            self.said[item] = int(self.truth[item])
            body = {"items": [item], "said": "class", "label": str(self.truth[item])}
            state = post("decide", number=state["number"], **body)
        post("finish", number=state["number"])


@pytest.mark.parametrize("shows", ["nothing", "texts", "images"])
def test_the_answer_and_what_was_given_come_back(fitted, shows, monkeypatch):
    classifier, batch, truth = fitted
    visitor, contents = Visitor(truth), {}
    if shows == "texts":
        contents["texts"] = [f"text {item}" for item in range(len(batch))]
    elif shows == "images":
        pytest.importorskip("PIL.Image")
        contents["images"] = [np.full((9, 7, 3), item, np.uint8) for item in range(len(batch))]
    monkeypatch.setattr(memory, "Address", lambda announce: Address(opens=False, announce=visitor.announce))
    session = Session(batch, classifier).review(**contents)
    assert session.said.given == visitor.said
    again = classifier.infer(batch, given=session.said.given, new_classes=[])
    assert session.result.labels.tolist() == again.labels.tolist()
    assert [bool(one) for one in visitor.shown] == [shows == "texts", shows == "images"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", visitor.address)


def test_images_and_texts_must_fit(fitted):
    classifier, batch, _ = fitted
    with pytest.raises(OptionError, match="not both"):
        Session(batch, classifier).review(images=[], texts=[])
    with pytest.raises(OptionError, match="the batch has 24 rows"):
        Session(batch, classifier).review(texts=["one"])
