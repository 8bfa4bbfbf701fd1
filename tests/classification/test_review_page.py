"""The page of a review at a made-up server, in a real browser: questions, sheets, exceptions, groups without a name."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handful.classification.page_frame import review_frame
from handful.classification.page_program import REVIEW, page_program, page_style
from handful.review.guard import HEADERS
from handful.session import similar_names

AXE = Path(__file__).parents[2] / "tools" / "page" / "node_modules" / "axe-core" / "axe.min.js"
ADDRESS = "http://127.0.0.1:9/"  # nothing listens there
CLASSES = ["fox", "dog", "owl", "recipe", "meal_suggestion"]
N_ITEMS = 60


def asks(items, label, choices=("fox", "dog", "owl"), **others):
    ask = {"items": list(items), "label": label, "labels": [label] * len(items), "choices": list(choices)}
    return ask | {"corrects": 3, "marked": False, "asks_name": False, "oddest": False, "waiting": [], **others}


def asks_name(items, choices=()):
    return asks(items, None, choices, asks_name=True)


@dataclass
class MadeUp:
    """A server with a list of what it asks; it keeps what it was told."""

    asked: list[Any]
    pictures: bool = True
    first_seen: str = "html[data-ready]"
    told: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0
    wanted: dict[str, Any] = field(default_factory=dict)
    labels: list[int] = field(default_factory=lambda: [0] * N_ITEMS)
    changed_names: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def ask(self) -> dict[str, Any] | None:
        """What was marked is asked about first, one after the other; then what is in the list."""
        n_others = 0
        marked: dict[int, str | None] = {}
        for one in self.told:
            if not marked.keys() & set(one["items"]):
                n_others += 1
            label = one["label"] if one["said"] != "accept" else self.asked[n_others - 1]["label"]
            marked |= dict.fromkeys(one["wrong"], label)
            for item in one["items"]:
                marked.pop(item, None)
        if not marked:
            return self.asked[n_others] if n_others < len(self.asked) else None
        item, *waiting = marked
        choices = [label for label in ("fox", "dog", "owl") if label != marked[item]]
        return asks([item], choices[0], choices, marked=True, waiting=waiting)

    def state(self) -> dict[str, Any]:
        n_steps = len(self.told)
        ask = self.ask
        rejected = [
            int(ask is not None and ask["label"] is None and not ask["asks_name"] and item in ask["items"])
            for item in range(N_ITEMS)
        ]
        decisions = {item: [item, one["said"], one["label"], "fox"] for one in self.told for item in one["items"]}
        seen = len(decisions)
        return {
            "title": "today",
            "names": [f"{item:02}.jpg" for item in range(N_ITEMS)],
            "texts": None if self.pictures else [f"sentence <i>{item}</i> of the batch" for item in range(N_ITEMS)],
            "pictures": [f"{item:032x}" for item in range(N_ITEMS)] if self.pictures else None,
            "left_out": 0,
            "groups": None,
            "group": None,
            "classes": CLASSES,
            "called": CLASSES,
            "n_known": len(CLASSES),
            "label": self.labels,
            "certainty": [0.9] * N_ITEMS,
            "second": [1] * N_ITEMS,
            "second_certainty": [0.08] * N_ITEMS,
            "unknown": [0.9 if one else 0.02 for one in rejected],
            "rejected": rejected,
            "doubtful": [0] * N_ITEMS,
            "coarse": None,
            "coarse_certainty": None,
            "given": [],
            "first": [],
            "why": {},
            "nearest": {},
            "examples": [[code, f"{100 + code:032x}", name] for code, name in enumerate(CLASSES)],
            "present": [[0, 50, 0.99], [1, 10, 0.9]],
            "proposals": [],
            "proposal": [0] * N_ITEMS,
            "number": self.number,
            "n_steps": n_steps,
            "decisions": list(decisions.values()),
            "changed": [],
            "undid": False,
            "back": -1,
            "explains": False,
            "notices": ["2 photographs are new."],
            "words": ["photograph", "photographs"] if self.pictures else ["sentence", "sentences"],
            "ask": ask,
            "progress": {
                "said": f"{seen} of {N_ITEMS} photographs seen.",
                "right": [0.9, 0.8, 0.97],
                "answers_left": len(self.asked) - n_steps,
                "may_stop": False,
                "seen": seen,
                "n_items": N_ITEMS,
                "decisions": n_steps,
                "done": ask is None,
            },
            "out": "labels.csv",
            "catalogue": "today.handful",
            "offers": ["folder", "keywords"],
        }

    @property
    def offered(self) -> list[str]:
        """Names that are offered; none beside a catalogue."""
        return []

    def answer(self, route) -> None:
        """Answer a request of the page."""
        path = route.request.url.removeprefix(ADDRESS)
        if path == "":
            head = "<link rel='stylesheet' href='review.css'>"
            program = "<script type='module' src='review.js'></script>"
            page = review_frame("today", head, program)
            route.fulfill(body=page, content_type="text/html", headers=HEADERS)
        elif path == "review.js":
            route.fulfill(body=page_program(REVIEW), content_type="text/javascript", headers=HEADERS)
        elif path == "review.css":
            route.fulfill(body=page_style(REVIEW), content_type="text/css", headers=HEADERS)
        elif path.startswith(("media/", "full/")):
            route.fulfill(body=picture(path), content_type="image/jpeg", headers=HEADERS)
        elif path in ("state", "number", "decide", "merge", "undo"):
            self.take(path, route.request)
            route.fulfill(body=json.dumps(self.state()), content_type="application/json", headers=HEADERS)
        elif path == "similar":
            found = similar_names(json.loads(route.request.post_data)["name"], [*CLASSES, *self.offered])
            route.fulfill(body=json.dumps({"similar": found}), content_type="application/json", headers=HEADERS)
        elif path == "history":
            said = [
                {"event": str(at), "time": "2026-11-20T10:00:00+00:00", "person": "Ada", "kind": "named", **one}
                for at, one in enumerate(self.told)
            ]
            shown = [{**one, "into": None} for one in said]
            route.fulfill(body=json.dumps({"history": shown}), content_type="application/json", headers=HEADERS)
        elif path == "finish":
            self.wanted = json.loads(route.request.post_data)
            found = {"written": ["labels.csv"], "next_batch": "handful review <b>x</b>.handful"}
            route.fulfill(body=json.dumps(found), content_type="application/json", headers=HEADERS)
        else:
            route.fulfill(status=204)

    def take(self, path: str, request) -> None:
        self.number += path in ("decide", "undo")
        if path == "decide":
            self.told.append(json.loads(request.post_data))
        elif path == "merge":
            self.changed_names.append((path, json.loads(request.post_data)))
        elif path == "undo":
            self.told.pop()

    def said(self) -> list[tuple[list[int], str, str | None]]:
        return [(one["items"], one["said"], one["label"]) for one in self.told]


@dataclass
class FromNothing(MadeUp):
    """The same without a catalogue."""

    @property
    def offered(self) -> list[str]:
        return list(dict.fromkeys(one["label"] for one in self.told if one["label"] is not None))

    @property
    def ask(self) -> dict[str, Any] | None:
        """What was marked has no name either."""
        ask = super().ask
        return ask | {"asks_name": True, "label": None, "labels": [None]} if ask is not None and ask["marked"] else ask

    def state(self) -> dict[str, Any]:
        found = super().state()
        codes = [-1] * N_ITEMS
        for one in self.told:
            for item in one["items"]:
                codes[item] = self.offered.index(one["label"]) if one["label"] else -1
        said = {item for one in self.told for item in one["items"]}
        return found | {
            "classes": self.offered,
            "called": self.offered,
            "n_known": 0,
            "label": codes,
            "second": [-1] * N_ITEMS,
            "rejected": [int(code < 0) for code in codes],
            "examples": [],
            "present": [[code, 5, 1.0] for code in range(len(self.offered))],
            "from_nothing": True,
            "not_named": [item for item in range(N_ITEMS) if item not in said],
            "offered": self.offered,
            "notices": [],
        }


def picture(path: str) -> bytes:
    image = pytest.importorskip("PIL.Image")
    size = (900, 600) if path.startswith("full/") else (320, 213)
    shade = int(path[-2:], 16) * 37 % 256
    stream = io.BytesIO()
    image.new("RGB", size, (shade, 90, 255 - shade)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def opened(browser):
    """Open the page of a made-up server."""
    contexts, wrong = [], []

    def opens(made_up, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.route("**/*", made_up.answer)
        page.goto(ADDRESS)
        page.wait_for_selector(made_up.first_seen)
        return page

    yield opens
    for context in contexts:
        context.close()
    assert wrong == []


def press(page, *keys):
    """Press keys, and wait until the page has the answer."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_selector("html:not([data-busy])")


def test_keys_one_to_nine_take_the_likeliest_classes_and_enter_the_first(opened):
    made_up = MadeUp([asks([3], "fox"), asks([4], "fox"), asks([5], None, ["fox", "dog"]), asks([6], "fox")])
    page = opened(made_up)
    assert page.evaluate("scrollY") == 0
    assert page.locator("#asked .choose .of bdi").all_inner_texts() == ["fox", "dog", "owl"]
    press(page, "3", "Enter", "Enter", "x")
    assert made_up.said() == [([3], "class", "owl"), ([4], "class", "fox"), ([5], "none", None), ([6], "none", None)]
    assert "All seen" in page.locator("#progress-left").inner_text()
    press(page, "u", "u", "u", "9", "p")
    assert made_up.said()[1:] == [([4], "skip", None)]


def test_a_new_class_another_class_and_a_bad_item(opened):
    made_up = MadeUp([asks([3], "fox"), asks([4], "fox"), asks([5], "fox")])
    page = opened(made_up)
    for key, words in (("n", "lynx"), ("c", "recipe")):
        page.keyboard.press(key)
        page.keyboard.type(words)
        press(page, "Enter")
    press(page, "b")
    assert made_up.said() == [([3], "new", "lynx"), ([4], "class", "recipe"), ([5], "bad", None)]


def test_a_sheet_is_accepted_with_one_key(opened):
    made_up = MadeUp([asks(range(24), "fox"), asks([30], "dog", ["dog"])])
    page = opened(made_up)
    assert page.locator("#asked .tile").count() == 24
    assert "Are these 24 all fox?" in page.locator("#asked h2").inner_text()
    assert page.locator("#progress-left").inner_text() == "About 2 answers left"
    press(page, "Enter")
    assert made_up.said() == [(list(range(24)), "class", "fox")]
    assert page.locator("#progress-left").inner_text() == "About 1 answer left"


def test_keys_and_clicks_mark_exceptions_which_are_answered_one_after_the_other(opened):
    made_up = MadeUp([asks(range(24), "fox"), *[asks([30], "fox")] * 5])
    page = opened(made_up)
    keys = page.locator("#asked .tile kbd").all_inner_texts()
    assert len(set(keys)) == 24
    assert not set(keys) & set("123456789cnpsuxz+-")
    press(page, keys[2], keys[23], keys[7], keys[7])
    page.locator("#asked .tile").nth(9).click()
    press(page, "ArrowRight", " ")  # after the click the arrows go on from that tile
    assert page.locator("#accept-sheet").inner_text().startswith("The other 20: fox")
    press(page, "Enter")
    rest = [item for item in range(24) if item not in (2, 9, 10, 23)]
    assert made_up.said() == [(rest, "class", "fox")]
    assert "3 more follow" in page.locator("#asked .reason").inner_text()
    assert page.locator("#asked .choose .of bdi").all_inner_texts()[:2] == ["dog", "owl"]  # it is no fox
    assert page.locator("#asked .choose.main").count() == 0  # none of them is likely
    press(page, "Enter", "Escape", "1", "2", "p")
    assert made_up.said()[1:] == [([2], "class", "dog"), ([9], "class", "owl"), ([10], "skip", None)]
    press(page, "u")  # the exception that was left open is asked again
    assert "1 more follows" in page.locator("#asked .reason").inner_text()
    press(page, "x", "1")
    assert made_up.said()[3:] == [([10], "none", None), ([23], "class", "dog")]
    assert page.locator("#asked .large img").get_attribute("alt") == "30.jpg"  # what the server asks


def test_several_exceptions_get_one_class(opened):
    made_up = MadeUp([asks(range(12), "fox"), *[asks([30], "fox")] * 2])
    page = opened(made_up)
    press(page, "a", "b", "d", "Enter", "g")
    page.keyboard.type("owl")
    press(page, "Enter")
    assert made_up.said() == [(list(range(3, 12)), "class", "fox"), ([0, 1, 2], "class", "owl")]


def test_a_sheet_of_exceptions_only_is_no_answer(opened):
    made_up = MadeUp([asks([0, 1], "fox"), asks([30], "fox")])
    page = opened(made_up)
    press(page, "a", "b", "Enter")
    assert made_up.said() == [([], "accept", None)]
    press(page, "1")
    assert made_up.said()[1:] == [([0], "class", "dog")]


def test_a_sheet_between_two_classes(opened):
    made_up = MadeUp([asks(range(12), "recipe", ["recipe", "meal_suggestion"]), asks([30], "fox")], pictures=False)
    made_up.labels = [3] * N_ITEMS
    page = opened(made_up)
    assert page.locator("#asked h2").inner_text() == "Are these 12 all recipe, or are some meal_suggestion?"
    assert page.locator("#asked .tile i").count() == 0  # no markup from texts
    press(page, "a", "Enter")
    assert made_up.said() == [(list(range(1, 12)), "class", "recipe")]
    press(page, "u", "2")
    assert made_up.said() == [(list(range(12)), "class", "meal_suggestion")]


def test_a_group_without_a_name_is_taken_or_named(opened):
    made_up = MadeUp([asks(range(7), None, ["owl"]), asks([30], "fox")])
    page = opened(made_up)
    assert "none of your classes" in page.locator("#asked h2").inner_text()
    press(page, "a", "Enter")
    assert made_up.said() == [(list(range(1, 7)), "none", None)]
    press(page, "u", "n")
    page.keyboard.type("lynx")
    press(page, "Enter")
    assert made_up.said() == [(list(range(7)), "new", "lynx")]


def test_a_picture_at_full_size(opened):
    page = opened(MadeUp([asks([3], "fox"), asks(range(12), "fox")]))
    page.keyboard.press("z")
    assert page.locator("#picture img").evaluate("(img) => img.decode().then(() => img.naturalWidth)") == 900
    page.keyboard.press("z")
    assert not page.locator("#picture").is_visible()
    page.locator("#asked .large").click()
    assert page.locator("#picture").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector("#picture", state="hidden")
    press(page, "Enter")  # the button of the picture does not keep it
    page.locator("#asked .zoom").nth(4).click()
    assert page.locator("#picture-name").inner_text() == "04.jpg"
    assert page.locator("#asked .tile[aria-pressed=true]").count() == 0


def test_a_phone_sees_a_sheet_marks_and_enlarges_by_touch(opened):
    made_up = MadeUp([asks(range(24), "fox"), asks([30], "fox"), asks([31], "fox")])
    page = opened(made_up, viewport={"width": 420, "height": 800}, has_touch=True)
    page.locator("#asked .zoom").nth(4).tap()
    assert page.locator("#picture-name").inner_text() == "04.jpg"
    page.locator("#picture").tap()
    page.locator("#asked .tile").nth(1).tap()
    page.locator("#accept-sheet").tap()
    page.wait_for_selector("#asked.one")
    assert made_up.said() == [([0, *range(2, 24)], "class", "fox")]
    page.locator("#asked .large").tap()
    assert page.locator("#picture-name").inner_text() == "01.jpg"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_a_notice_lies_over_no_tile_however_long_it_is(opened, width, height):
    made_up = Warned([asks(range(24), "fox")])
    page = opened(made_up, viewport={"width": width, "height": height}, has_touch=True)
    note = page.locator("#note").bounding_box()
    first = page.locator(".tile").first.bounding_box()
    assert note["y"] + note["height"] <= first["y"]
    page.locator("#note button", has_text="More").tap()
    assert "DSC_9.NEF" in page.locator("#told").inner_text()
    page.locator("#told button").tap()
    for place in range(24):
        page.locator(".tile").nth(place).tap()
    assert page.locator(".tile[aria-pressed=true]").count() == 24
    assert page.locator("#note").is_hidden()
    assert "24 marked" in page.locator("#marks").inner_text()


@dataclass
class Warned(MadeUp):
    """Many files were left out."""

    def state(self) -> dict[str, Any]:
        left_out = "; ".join(f"DSC_{n}.NEF: a raw photograph is not read" for n in range(10))
        return super().state() | {"notices": [f"10 of 70 files are left out: {left_out}."]}


def test_a_search_looks_in_all_items_opens_one_and_goes_back_to_the_question(opened):
    made_up = MadeUp([asks([3], "fox"), asks([4], "fox")])
    page = opened(made_up)
    press(page, "/")
    page.keyboard.type("47")
    assert page.locator("#list > li").count() == 1
    assert not page.locator("#asked").is_visible()
    press(page, "Enter")
    assert "47.jpg" in page.locator("#panel").inner_text()
    press(page, "2")
    assert made_up.said() == [([47], "class", "dog")]
    press(page, "/", "Escape")
    assert (page.input_value("#search"), page.locator("#asked").is_visible()) == ("", True)


def test_one_class_for_several_offers_what_most_of_them_are(opened):
    made_up = MadeUp([asks([3], "recipe")])
    made_up.labels = [3] * N_ITEMS
    page = opened(made_up)
    page.click("#to-all")
    press(page, "ArrowRight", " ", "ArrowRight", " ")
    page.locator("#list > li").nth(4).hover()
    page.locator("#list .pick").nth(4).click()
    assert page.locator("#about h2").inner_text() == "3 photographs chosen"
    page.click("#one-class")
    assert page.locator("#options li").first.inner_text() == "recipe"


def test_notes_of_the_server_are_read_once(opened):
    page = opened(MadeUp([asks([3], "fox"), asks([4], "fox")]))
    assert "2 photographs are new." in page.locator("#note").inner_text()
    press(page, "Enter")
    assert not page.locator("#note").is_visible()


def test_the_end_says_so_and_finishes(opened):
    made_up = MadeUp([asks(range(N_ITEMS), "fox")])
    page = opened(made_up)
    press(page, "Enter")
    assert page.locator("#asked h2").inner_text() == "You have seen all 60 photographs, with 1 answer."
    assert page.locator("#progress-left").inner_text() == "All seen"
    page.keyboard.press("s")
    assert "labels.csv" in page.locator("#sure-said").inner_text()
    page.locator("#sure-more label", has_text="Keywords").click()
    page.click("#sure-yes")
    page.wait_for_selector("html[data-finished]")
    assert made_up.wanted == {"number": 1, "keywords": True}
    said = page.locator("#asked .ends").inner_text()
    assert "Written: labels.csv." in said
    assert "Your answers are in today.handful." in said
    assert "For the next batch, run:\nhandful review <b>x</b>.handful" in said
    assert page.locator("#progress-left").inner_text() == "Finished"
    assert "Finish" not in page.locator("#progress-said").inner_text()
    assert not any(page.locator(f"#{part}").is_visible() for part in ("undo", "finish"))
    # The kinds that were found have pictures, and lead to what has them.
    assert page.locator("#asked .kinds li").all_inner_texts() == ["fox 60"]
    page.locator("#asked .kinds button").click()
    assert page.locator("#matches").inner_text() == "60 photographs"


@dataclass
class InMemory(MadeUp):
    """A session that a program has opened."""

    def state(self) -> dict[str, Any]:
        return super().state() | {"out": "", "from_nothing": True, "catalogue": "", "offered": []}


def test_the_end_of_a_session_of_a_program_names_no_file(opened):
    page = opened(InMemory([asks(range(N_ITEMS), "fox")]))
    press(page, "Enter")
    page.keyboard.press("s")
    wanted = "Give your program the labels of 60 photographs? 60 of 60 photographs seen."
    assert page.locator("#sure-said").inner_text() == wanted
    press(page, "Enter")
    page.wait_for_selector("html[data-finished]")
    assert "Your program has the labels. You can close this page." in page.locator("#asked .ends").inner_text()


# -- without a catalogue -----------------------------------------------------------------------------------------------


def test_a_name_is_typed_once_and_then_offered(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name([20], ["red fox"]), asks_name([21], ["red fox"])])
    page = opened(made_up)
    assert page.locator("#asked h2").inner_text() == "What are these 9?"
    assert page.evaluate("document.activeElement.id") == "name-field"
    page.keyboard.type("red fox")
    press(page, "Enter")
    assert page.locator("#asked h2").inner_text() == "What is this?"
    press(page, "1")  # the field is empty, so a digit takes the name
    page.keyboard.type("re")
    assert page.locator("#name-options li").all_inner_texts() == ["red fox", "New class re"]
    press(page, "Enter")
    assert made_up.said() == [(list(range(9)), "new", "red fox"), ([20], "new", "red fox"), ([21], "new", "red fox")]


def test_digits_are_typed_where_names_begin_with_them(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name([20], ["7 up"])])
    page = opened(made_up)
    for name in ("7 up", "1 down"):
        page.keyboard.type(name)
        press(page, "Enter")
    assert [label for _, _, label in made_up.said()] == ["7 up", "1 down"]


def test_exceptions_of_a_group_without_a_name_are_asked_after_it(opened):
    made_up = FromNothing([asks_name(range(9)), *[asks_name([20])] * 3])
    page = opened(made_up)
    page.keyboard.type("el")
    press(page, "Escape", "a", "b")
    assert page.input_value("#name-field") == "el"  # a mark does not take away what was typed
    assert page.locator(".naming button").inner_text().startswith("Name the other 7")
    press(page, "Enter")
    page.keyboard.type("k")
    press(page, "Enter")
    assert made_up.said() == [(list(range(2, 9)), "new", "elk")]
    assert "1 more follows" in page.locator("#asked .reason").inner_text()
    page.keyboard.type("owl")
    press(page, "Enter")
    press(page, "Escape", "x")
    assert made_up.said()[1:] == [([0], "new", "owl"), ([1], "none", None)]


def test_a_name_that_looks_like_another_is_asked_about(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name([20]), asks_name([21])])
    page = opened(made_up)
    page.keyboard.type("badger")
    press(page, "Enter")
    page.keyboard.type("badgers")
    press(page, "Enter")
    assert page.locator("#sure-said").inner_text() == "You typed “badgers”. Did you mean “badger”?"
    press(page, "Enter")
    page.keyboard.type("badgers")
    press(page, "Enter")
    page.locator("#sure-no").click()
    page.wait_for_selector("html:not([data-busy])")
    assert [label for _, _, label in made_up.said()] == ["badger", "badger", "badgers"]


def test_a_new_class_beside_a_catalogue_that_looks_like_one_of_it_is_asked_about(opened):
    made_up = MadeUp([asks([3], "fox"), asks([4], "fox")])
    page = opened(made_up)
    page.keyboard.press("n")
    page.keyboard.type("recipes")
    press(page, "Enter", "Enter")
    assert made_up.said() == [([3], "class", "recipe")]


def test_two_names_become_one(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name(range(20, 25)), asks_name([30])])
    page = opened(made_up)
    for name in ("badger", "marten"):
        page.keyboard.type(name)
        press(page, "Enter")
    page.click("#to-all")
    page.locator("#class-list .choice", has_text="badger").click()
    press(page, "r")
    page.fill("#words", "marten")
    press(page, "Enter", "Enter")  # it asks whether both are one class, and Enter alone goes back
    assert made_up.changed_names == []
    press(page, "r")
    page.fill("#words", "marten")
    page.keyboard.press("Enter")
    page.click("#sure-yes")
    page.wait_for_selector("html:not([data-busy])")
    bodies = [(path, body["label"], body.get("into")) for path, body in made_up.changed_names]
    assert bodies == [("merge", "badger", "marten")]


def test_what_is_not_named_yet_is_a_view_of_the_list(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name([20])])
    page = opened(made_up)
    page.keyboard.type("badger")
    press(page, "Enter", "Escape")
    page.click("#to-all")
    views = page.locator("#views .choice").all_inner_texts()
    assert any(view.split("\n") == ["Not named yet", "51"] for view in views)
    page.locator("#views .choice", has_text="Not named yet").click()
    assert page.locator("#matches").inner_text() == "51 photographs"
    page.locator("#list .card").first.click()
    assert "Not named yet" in page.locator("#panel").inner_text()
    press(page, "c")
    page.keyboard.type("owl")
    press(page, "Enter")
    assert made_up.said()[-1] == ([9], "new", "owl")


@dataclass
class ManyGroups(FromNothing):
    """Groups without a name that lie in the same place of the map."""

    def state(self) -> dict[str, Any]:
        groups = [range(start, start + 3) for start in range(0, 30, 3)] + [range(30, 60)]
        proposals = [{"name": f"Group {place}", "items": list(group), "group": 0} for place, group in enumerate(groups)]
        return super().state() | {"proposals": proposals}


def test_five_groups_without_a_name_are_listed_with_pictures_until_more_are_asked_for(opened):
    page = opened(ManyGroups([asks_name(range(9))]))
    page.click("#to-all")
    assert page.locator("#proposal-list .choice").count() == 5
    assert page.locator("#proposal-list .choice img").count() == 5
    assert page.locator("#more-proposals").inner_text() == "6 more"
    page.click("#more-proposals")
    assert page.locator("#proposal-list .choice").count() == 11


def test_a_phone_names_a_group_by_touch_without_its_keyboard_in_the_way(opened):
    made_up = FromNothing([asks_name(range(9)), asks_name(range(20, 25), ["badger"])])
    page = opened(made_up, viewport={"width": 420, "height": 800}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.activeElement.id") == ""
    page.locator("#name-field").tap()
    page.keyboard.type("badger")
    page.locator(".naming button").tap()
    page.wait_for_selector("text=What are these 5?")
    page.locator("#asked .choose", has_text="badger").tap()
    page.wait_for_selector("#asked.end")
    assert [label for _, _, label in made_up.said()] == ["badger", "badger"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# -- many, and for everybody -------------------------------------------------------------------------------------------

MANY = 10_000


@dataclass
class Many(MadeUp):
    """Ten thousand photographs."""

    def state(self) -> dict[str, Any]:
        found = super().state()
        each = ("names", "pictures", "label", "certainty", "second", "second_certainty", "unknown", "rejected")
        columns = {name: (found[name] * (MANY // N_ITEMS + 1))[:MANY] for name in (*each, "doubtful", "proposal")}
        columns["names"] = [f"{item:05}.jpg" for item in range(MANY)]
        return found | columns


# Scroll to a part of the list, and draw what is there.
SCROLL = """async (part) => {
  const main = document.getElementById("main");
  main.scrollTop = main.scrollHeight * part;
  await new Promise((goOn) => requestAnimationFrame(() => setTimeout(goOn)));
  return document.querySelectorAll("#list > li").length;
}"""
PARTS = 60
# Milliseconds of the processor that all tasks of the main thread may take from one part to the next: other programs
# change those of a clock, not these. So no task is longer.
LONGEST_TASK = 200


def main_thread_ms(tools):
    """Processor time of the main thread so far."""
    found = {metric["name"]: metric["value"] for metric in tools.send("Performance.getMetrics")["metrics"]}
    return 1000 * found["ThreadTime"]


def test_of_ten_thousand_only_what_is_seen_is_in_the_page(opened):
    page = opened(Many([asks(range(24), "fox")]))
    page.click("#to-all")
    assert page.locator("#matches").inner_text() == "10,000 photographs"
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")
    for part in range(PARTS + 1):
        before = main_thread_ms(tools)
        assert page.evaluate(SCROLL, part / PARTS) < 150
        assert main_thread_ms(tools) - before < LONGEST_TASK, part
    assert page.locator("#list > li").last.get_attribute("id") == f"item-{MANY - 1}"
    page.keyboard.press("/")
    page.keyboard.type("04711")
    assert page.locator("#list > li").count() == 1
    page.keyboard.press("Enter")
    assert "04711.jpg" in page.locator("#panel").inner_text()


@pytest.mark.parametrize(("width", "height"), [(640, 400), (195, 422), (320, 640)])
def test_at_two_hundred_percent_everything_can_be_reached(opened, width, height):
    made_up = MadeUp([asks(range(24), "fox"), asks([3], "fox"), asks([4], None)])
    page = opened(made_up, viewport={"width": width, "height": height})
    for _ in range(3):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        last = page.locator("#asked .dock button").last
        last.scroll_into_view_if_needed()
        assert last.is_visible()
        press(page, "p")
    assert len(made_up.said()) == 3


def test_names_from_right_to_left_and_very_long_ones_stay_in_their_place(opened):
    name = "\u05e9\u05d5\u05e2\u05dc"
    long = "a_name_that_somebody_wrote_without_any_space_" * 4
    made_up = FromNothing([asks_name(range(9)), asks_name(range(20, 25)), asks_name([30], [name, long])])
    page = opened(made_up, viewport={"width": 390, "height": 844})
    for one in (name, long):
        page.locator("#name-field").focus()
        page.keyboard.type(one)
        press(page, "Enter")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    directions = page.locator("#asked .choose .of bdi").evaluate_all(
        "(names) => names.map((name) => getComputedStyle(name).direction)"
    )
    assert directions == ["rtl", "ltr"]
    assert page.locator("#asked .choose").nth(1).bounding_box()["width"] <= 390


def look_around(page):
    """Go through what the page can show; that of a server that asks two questions and two sheets."""

    def goes(place):
        page.evaluate(f"document.getElementById('to-{place}').click()")

    yield "a notice, and a question"
    for key, shown in (("c", "ask"), ("?", "keys"), ("z", "picture")):
        page.keyboard.press(key)
        if page.locator(f"#{shown}").is_visible():
            yield shown
            page.keyboard.press("Escape")
            page.wait_for_selector(f"#{shown}", state="hidden")
    press(page, "Enter")
    yield "an item that is like no class"
    press(page, "Enter", "b")
    yield "a sheet with an exception"
    press(page, "b")
    goes("all")
    press(page, "ArrowDown")
    yield "a list and an item"
    page.keyboard.press(" ")
    yield "several that are chosen"
    press(page, "Escape")
    page.locator("#progress-left").click()
    yield "the rest of the line on top"
    page.keyboard.press("Escape")
    page.wait_for_selector("#told", state="hidden")
    goes("all")
    page.evaluate("document.querySelector('#class-list .choice').click()")
    yield "a class"
    page.keyboard.press("r")
    yield "another name for it"
    page.fill("#words", "dog")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure[open]")
    yield "two classes that may be one"
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure", state="hidden")
    goes("history")
    page.wait_for_selector("#history .answer")
    yield "the history"
    page.locator("#history .answer").last.click()
    yield "an answer"
    goes("asked")
    press(page, "Enter")
    assert page.locator("#asked .tile .label").count() == 10
    yield "a sheet of the oddest"
    press(page, "Enter")
    yield "the end"
    page.keyboard.press("s")
    page.wait_for_selector("#sure[open]")
    yield "what can be written"
    page.click("#sure-yes")
    page.wait_for_selector("html[data-finished]")
    yield "what was written"


def faults(page) -> list[str]:
    """What axe-core finds on a page."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: bash tools/page/check --install")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)")
    return [f"{one['id']}: {node['html'][:90]} {node['failureSummary']}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize(
    ("width", "scheme", "pictures"),
    [(1280, "light", True), (390, "dark", False), (1280, "dark", False), (390, "light", True)],
)
def test_axe_finds_nothing(opened, width, scheme, pictures):
    odd = asks(range(20, 30), None, (), oddest=True, labels=["fox", "dog"] * 5)
    made_up = MadeUp([asks([3], "fox"), asks([4], None), asks(range(12), "fox"), odd], pictures=pictures)
    page = opened(made_up, viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = [(shown, fault) for shown in look_around(page) for fault in faults(page)]
    assert found == []
    assert made_up.told


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_axe_finds_nothing_without_a_catalogue(opened, width, scheme):
    made_up = FromNothing([asks_name(range(9)), asks_name([20], ["badger"]), asks_name([21])])
    page = opened(made_up, viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = faults(page)
    page.locator("#name-field").focus()
    page.keyboard.type("badger")
    found += faults(page)
    press(page, "Enter")
    found += faults(page)
    page.locator("#name-field").focus()
    page.keyboard.type("badgers")
    press(page, "Enter")
    page.wait_for_selector("#sure[open]")
    found += faults(page)
    press(page, "Enter")
    page.keyboard.press("Escape")
    if width < 700:
        page.locator("#menu-toggle").click()
        found += faults(page)
    page.locator("#to-all").click()
    found += faults(page)
    if width < 700:
        page.locator("#filters-toggle").click()
    page.locator("#class-list .choice").first.click()
    assert found + faults(page) == []


@dataclass
class Coming(MadeUp):
    """A batch that is still being opened."""

    first_seen: str = ".coming"

    def state(self) -> dict[str, Any]:
        pictures = [f"{item:032x}" for item in range(40)]
        return {"opening": {"done": 40, "total": 60, "left": "9 s left", "pictures": pictures}}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_photographs_are_seen_as_they_come_and_how_long_it_takes_is_said(opened, width, scheme):
    page = opened(Coming([]), viewport={"width": width, "height": 844}, color_scheme=scheme)
    assert page.locator(".coming").count() == 40
    line = page.locator("#progress-left")
    assert line.inner_text() == "40 of 60 are read, 9 s left"
    assert line.evaluate("(line) => line.scrollWidth <= line.clientWidth")  # all of it is seen
    assert faults(page) == []
