"""A person at the page of a real server, with the keyboard alone: answers, reload, second tab, undo, kill, resume."""

import csv
import json

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.items import bring
from handful.review.batch_review import GENERATION
from tests.items.photographs import ENCODER, photographs, register
from tests.review.person import Person
from tests.worlds import Clouds

KNOWN, PRESENT, EACH, DIM = 40, 7, 20, 24
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture
def folder(tmp_path):
    """Forty classes; a batch of seven of them and one that the catalogue does not have."""
    place, rng = tmp_path, np.random.default_rng(3)
    clouds = Clouds(KNOWN + 1, DIM, rng)
    names = np.array([f"kind_{k:02}" for k in range(KNOWN + 1)])
    catalogue = clouds.examples(1, 0.8, KNOWN)
    np.savez(place / "catalogue.npz", features=catalogue, labels=names[:KNOWN])
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    batch = clouds.around(truth, 0.8)
    items = [f"<i>{row}</i>" for row in range(len(truth))]
    np.savez(place / "today.npz", features=batch, id=items)
    (place / "truth.json").write_text(json.dumps(dict(zip(items, names[truth].tolist(), strict=True))))
    return place


WORDS = ("catalogue.npz", "today.npz", "--out", "labels.html")


def labels_of(folder):
    with (folder / "labels.csv").open(encoding="utf-8") as stream:
        return {row["item"]: row for row in csv.DictReader(stream)}


KNOWN_CLASSES = [f"kind_{k:02}" for k in range(KNOWN)]


@pytest.fixture
def at_page(browser, start_review):
    """Start a review in a folder, and open its page for a person, on which nothing may go wrong."""
    people = []

    def opens(folder, *words, truth=None, known=(), **options):
        server = start_review(folder, *words)
        people.append(Person(browser, server.address, truth or {}, known, **options))
        people[-1].server = server
        return people[-1]

    yield opens
    for person in people:
        person.context.close()
    assert [person.wrong for person in people] == [[]] * len(people)


@pytest.fixture
def at_forty(at_page, folder):
    """Open the page of the batch of `folder`."""

    def opens(*others, **options):
        truth = json.loads((folder / "truth.json").read_text())
        return at_page(folder, *WORDS, *others, truth=truth, known=KNOWN_CLASSES, **options)

    return opens


def test_answers_reload_second_tab_undo_kill_resume_finish(folder, at_forty, start_review):
    person, notes = at_forty("--out", "labels.csv"), []
    server = person.server
    while person.n_decisions < 5:
        person.answers(person.shown())
        notes.append(person.text("#note") if person.page.locator("#note").is_visible() else "")
    assert any("other label" in note for note in notes)
    assert "seen with 5 answers" in person.text("#progress-said")

    # Reload: the same question.
    shown = person.shown()
    person.page.reload()
    person.page.wait_for_selector("html[data-ready]")
    assert person.shown() == shown

    # A second tab answers; the first is told so, and its own answer does not count.
    first = person.page
    person.open(server.address)
    person.decides("p")
    first.keyboard.press("p")
    first.wait_for_selector("text=your last answer was not counted")
    assert "seen with 6 answers" in first.locator("#progress-said").inner_text()
    person.page = first

    # Undo takes back one answer after another, and comes back to what was asked.
    shown = person.shown()
    person.decides("p")
    person.decides("u")
    assert person.shown() == shown

    # Killed in the middle: the page says so, and goes on by itself once the same command runs again.
    person.page.evaluate("window.isTheSame = true")
    server.kill()
    person.page.keyboard.press("p")
    person.page.wait_for_selector("text=The server does not answer")
    address = server.address
    server = start_review(folder, *WORDS, "--out", "labels.csv")
    assert server.address == address
    person.page.wait_for_selector("text=The server is there again")
    assert person.shown() == shown
    person.answers(shown)
    assert person.page.evaluate("window.isTheSame")  # without a reload

    person.finishes()
    assert "labels.csv" in person.text("#asked")
    assert server.process.wait(timeout=60) == 0
    rows = labels_of(folder)
    said = {item: row for item, row in rows.items() if row["person"] not in ("", "passed")}
    assert len(said) >= 5
    assert all(row["person"] == row["label"] == person.truth[item] for item, row in said.items())


def test_a_phone_answers_and_accepts_a_group(at_forty):
    person = at_forty("--out", "phone.csv", viewport={"width": 420, "height": 800}, has_touch=True)
    page = person.page
    number = page.evaluate("document.documentElement.dataset.number")
    page.locator("#asked button", has_text="None of these").tap()
    person.settled(number)
    page.tap("#menu-toggle")
    page.tap("#to-all")
    page.tap("#filters-toggle")
    page.locator("#class-list .choice").first.tap()
    count = int(page.locator("#accept").inner_text().split()[2])
    page.tap("#accept")
    assert f"Confirm the label of {count} rows?" in person.text("#sure-said")
    number = page.evaluate("document.documentElement.dataset.number")
    page.tap("#sure-yes")
    person.settled(number)
    assert f"{count + 1} of 160 rows seen" in person.text("#progress-said")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    number = page.evaluate("document.documentElement.dataset.number")
    page.tap("#undo")
    person.settled(number)
    assert "1 of 160 rows seen" in person.text("#progress-said")


def test_a_catalogue_that_goes_away_while_the_page_is_open_is_a_sentence_on_the_page(folder, at_forty):
    person = at_forty("--out", "labels.csv")
    person.decides("p")
    shown = person.shown()
    (folder / "catalogue.handful").rename(folder / "elsewhere.handful")
    person.page.keyboard.press("p")
    person.page.wait_for_selector("text=was moved or deleted while it was open")
    assert person.shown() == shown
    (folder / "elsewhere.handful").rename(folder / "catalogue.handful")
    person.decides("p")
    assert "seen with 2 answers" in person.text("#progress-said")


def test_rows_chosen_in_the_list_get_one_answer(at_forty):
    person = at_forty("--out", "chosen.csv")
    page = person.page
    page.click("#to-all")
    page.locator("#class-list .choice").first.click()
    for key in ("ArrowDown", " ", "ArrowDown", " ", "ArrowDown", " "):
        page.keyboard.press(key)
    assert person.text("#about h2") == "3 rows chosen"
    before = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("g")
    page.keyboard.type("a new kind")
    page.keyboard.press("Enter")
    person.settled(before)
    assert "3 of 160 rows seen" in person.text("#progress-said")
    assert "a new kind" in person.text("#class-list")
    before = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("u")
    person.settled(before)
    assert "0 of 160 rows seen" in person.text("#progress-said")
    assert page.locator("#list i").count() == 0  # no markup from names


def test_from_nothing_to_a_catalogue_and_the_next_batch_with_it(tmp_path, at_page, start_review):
    rng = np.random.default_rng(0)
    clouds = Clouds(4, DIM, rng, apart=2)
    truth = {}
    for name in ("one", "two"):
        codes = rng.permutation(np.repeat(np.arange(4), 8))
        items = [f"<b>{name} {row}</b>" for row in range(len(codes))]
        np.savez(tmp_path / f"{name}.npz", features=clouds.around(codes), id=items)
        truth |= dict(zip(items, np.array(["ant", "bee", "cat", "<i>dog"])[codes].tolist(), strict=True))
    person = at_page(tmp_path, "one.npz", truth=truth)
    while person.n_decisions < 3:
        person.answers(person.shown())

    # Killed in the middle: the same command goes on, at the same group; undo and a second window as with a catalogue.
    shown = person.shown()
    person.server.kill()
    server = start_review(tmp_path, "one.npz")
    person.open(server.address)
    assert person.shown() == shown
    first = person.page
    person.open(server.address)
    person.answers(person.shown())
    first.keyboard.press("Escape")
    first.keyboard.press("p")
    first.wait_for_selector("text=your last answer was not counted")
    person.page = first
    person.page.keyboard.press("Escape")
    person.decides("u")
    assert person.shown() == shown
    person.n_decisions = 3
    assert person.sees(20)
    person.finishes()
    assert server.process.wait(timeout=60) == 0
    assert "handful review one.handful next_batch" in server.process.stdout.read()
    with (tmp_path / "one.labels.csv").open(encoding="utf-8") as stream:
        assert all(row["label"] == truth[row["item"]] for row in csv.DictReader(stream))

    again = at_page(tmp_path, "one.handful", "two.npz", truth=truth, known=sorted(set(truth.values())))
    assert again.sees(8)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_class_gets_another_name_and_merging_asks_first(viewport, tmp_path, at_page):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(3), 8))
    items = [f"item {row}" for row in range(len(codes))]
    np.savez(tmp_path / "one.npz", features=Clouds(3, DIM, rng, apart=2).around(codes), id=items)
    truth = dict(zip(items, np.array(["kangaro", "owl", "mouse"])[codes].tolist(), strict=True))
    person = at_page(tmp_path, "one.npz", truth=truth, viewport=viewport)
    page = person.page
    while person.n_decisions < 3:
        person.answers(person.shown())

    def number():
        return page.evaluate("document.documentElement.dataset.number")

    def classes():
        return sorted(page.locator("#class-list .choice bdi").all_inner_texts())

    def chooses(label):
        page.keyboard.press("Escape")
        if page.locator("#menu-toggle").is_visible():
            page.click("#menu-toggle")
        page.click("#to-all")
        if page.locator("#filters-toggle").is_visible():
            page.click("#filters-toggle")
        page.locator("#class-list .choice", has_text=label).click()

    def does(*keys):
        before = number()
        for key in keys:
            page.keyboard.press(key)
        person.settled(before)

    # The field has the old name: as it is, Enter does nothing. Three presses correct it, and nobody asks back.
    chooses("kangaro")
    page.keyboard.press("r")
    page.keyboard.press("Enter")
    assert page.locator("#ask[open]").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector("#ask", state="hidden")
    does("r", "o", "Enter")
    assert page.locator("#sure[open]").count() == 0
    assert classes() == ["kangaroo", "mouse", "owl"]
    assert "changed" not in person.text("#note")

    # Case is a name of its own.
    page.keyboard.press("r")
    page.fill("#words", "Kangaroo")
    does("Enter")
    assert classes() == ["Kangaroo", "mouse", "owl"]

    # A name like that of a third class is asked about. To make two classes one takes more than Enter, and one undo.
    chooses("owl")
    page.keyboard.press("r")
    page.fill("#words", "mousse")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Did you mean “mouse”?")
    before = number()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Are “owl” and “mouse” one class?")
    page.keyboard.press("Enter")
    assert (number(), page.locator("dialog[open]").count()) == (before, 0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#merge")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#options [aria-selected=true]").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=Are “owl” and “{chosen}” one class?")
    page.click("#sure-yes")
    person.settled(before)
    assert classes() == ["Kangaroo", "mouse"]
    does("u")
    assert classes() == ["Kangaroo", "mouse", "owl"]

    chooses("owl")
    page.click("#remove")
    page.wait_for_selector("#sure[open]")
    before = number()
    page.keyboard.press("Enter")
    assert number() == before
    page.click("#remove")
    page.click("#sure-yes")
    person.settled(before)
    assert classes() == ["Kangaroo", "mouse"]


def test_a_class_of_the_catalogue_gets_another_name(at_forty):
    person = at_forty("--out", "names.csv")
    page = person.page
    page.click("#to-all")
    label = page.locator("#class-list .choice bdi").first.inner_text()
    page.locator("#class-list .choice").first.click()
    before = page.evaluate("document.documentElement.dataset.number")
    for key in ("r", "x", "Enter"):
        page.keyboard.press(key)
    person.settled(before)
    assert page.locator("#about h2").inner_text() == f"{label}x"
    assert label not in page.locator("#class-list .choice bdi").all_inner_texts()
    before = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("u")
    person.settled(before)
    assert label in page.locator("#class-list .choice bdi").all_inner_texts()


def test_an_answer_given_thirty_answers_ago_is_changed_in_three_clicks(at_forty):
    person = at_forty("--out", "history.csv")
    page = person.page
    page.click("#to-all")
    page.keyboard.press("ArrowDown")
    first = page.locator("#panel blockquote").inner_text()
    for _ in range(31):
        person.decides("1")
    before = page.evaluate("document.documentElement.dataset.number")
    page.click("#to-history")
    page.locator("#history .answer").nth(30).click()
    label = page.locator("#about .chip").first.inner_text()
    page.locator("#about .chip").first.click()
    person.settled(before)
    assert page.locator("#list .words").all_inner_texts() == [first]
    assert page.locator("#list .head b").all_inner_texts() == [label]
    page.click("#to-history")
    assert page.locator("#history .answer").count() == 32  # what followed stays
    before = page.evaluate("document.documentElement.dataset.number")
    page.locator("#history .back").first.click()
    person.settled(before)
    page.wait_for_function("document.querySelectorAll('#history .answer').length === 31")


# The share of the window that tiles have, and where the first begins.
SHARE = """() => {
  const place = document.querySelector('.tiles').getBoundingClientRect();
  const boxes = [...document.querySelectorAll('.tile')].map((tile) => tile.getBoundingClientRect());
  const high = (box) => Math.max(0, Math.min(box.bottom, place.bottom, innerHeight) - Math.max(box.top, place.top));
  const area = boxes.map((box) => box.width * high(box)).reduce((one, other) => one + other, 0);
  return [boxes.length, area / innerWidth / innerHeight, Math.min(...boxes.map((box) => box.top))];
}"""
WINDOWS = [DESKTOP, PHONE, {"width": 2560, "height": 1440}]
# Pixels above the first picture, and the least share of the window that tiles have.
MOST_ABOVE, LEAST_SHARE = 200, 0.6


def of_kind(kind, folder):
    """Write a batch of 60, of which a sheet shows many; return its name."""
    codes = np.repeat([0, 1], 30)
    if kind == "photographs":
        register()
        with CatalogueFile.open(folder / "photos.handful") as file:
            bring(file, "photos", photographs(folder / "photos", 60), encoder=ENCODER)
        return "photos"
    points = Clouds(2, DIM, np.random.default_rng(0), apart=3).around(codes)
    if kind == "sentences":
        np.savez(folder / "calls.npz", features=points, text=[f"where is my bag number {row}" for row in range(60)])
        return "calls.npz"
    lengths = 10.0 * codes[:, None] + np.random.default_rng(0).normal(size=(60, 4))
    rows = [f"{row}," + ",".join(f"{value:.2f}" for value in lengths[row]) for row in range(60)]
    (folder / "flowers.csv").write_text("\n".join(["plant,length,width,height,depth", *rows]) + "\n")
    return "flowers.csv"


@pytest.mark.parametrize("kind", ["photographs", "sentences", "rows"])
def test_the_page_is_the_pictures(kind, tmp_path, at_page):
    person = at_page(tmp_path, of_kind(kind, tmp_path))
    for window in WINDOWS:
        person.page.set_viewport_size(window)
        person.page.reload()
        person.page.wait_for_selector("html[data-ready]")
        number, share, top = person.page.evaluate(SHARE)
        assert number > 8
        assert share >= LEAST_SHARE, window
        assert top <= MOST_ABOVE, window
        assert person.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        field = person.page.locator("#name-field").bounding_box()
        assert field["y"] > window["height"] / 2  # a thumb reaches it
        before = person.page.locator(".tile").first.bounding_box()["height"]
        person.page.keyboard.press("Escape")
        person.page.keyboard.press("+")
        assert person.page.locator(".tile").first.bounding_box()["height"] > before
        assert kind in person.text("#to-all")


def test_photographs_dropped_into_the_folder_appear_while_the_page_is_open(tmp_path, at_page):
    pytest.importorskip("onnxruntime", reason="the encoder of photographs needs it")
    folder = photographs(tmp_path / "photos", 60)
    person = at_page(tmp_path, "photos")  # the server embeds them, and what comes
    page = person.page
    page.keyboard.type("fox")
    before = page.evaluate("document.documentElement.dataset.number")
    with page.expect_response(has_grown, timeout=60_000):
        photographs(folder, 30, first=60)
    assert page.input_value("#name-field") == "fox"  # what a person does stays
    shown = person.shown()["items"]
    page.keyboard.press("Enter")  # the answer counts, about the same photographs
    person.settled(before)
    assert f"{len(shown)} of 90 photographs seen" in person.text("#progress-said")
    page.keyboard.press("Escape")
    page.click("#to-all")
    assert person.text("#matches") == "90 photographs"


def has_grown(response):
    """Whether the server says that items came since the page was opened."""
    return response.url.endswith("/number") and response.json()["number"] >= GENERATION


# Two fingers on the middle of the page, this far apart, and how far they go, in steps.
NEAR, FAR = 60, 300


def pinch(page, begin, end):
    """Move two fingers apart, or together."""
    tools = page.context.new_cdp_session(page)
    size = page.viewport_size

    def touches(apart):
        return [{"x": size["width"] / 2 + side * apart / 2, "y": 300, "id": side + 1} for side in (-1, 1)]

    tools.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touches(begin)})
    for apart in np.linspace(begin, end, 12).tolist():
        tools.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": touches(apart)})
    tools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_two_fingers_make_tiles_larger_and_smaller(tmp_path, at_page):
    name = of_kind("photographs", tmp_path)
    person = at_page(tmp_path, name, viewport=PHONE, has_touch=True, is_mobile=True)
    page = person.page

    def width(place):
        return page.locator(place).first.bounding_box()["width"]

    before = width(".tile")
    pinch(page, NEAR, FAR)
    assert width(".tile") > before
    assert page.locator(".tile[aria-pressed=true]").count() == 0  # no tile was touched
    for _ in range(3):
        pinch(page, FAR, NEAR)
    assert width(".tile") < before
    page.tap("#menu-toggle")
    page.tap("#to-all")
    before = width("#list > li")
    pinch(page, NEAR, FAR)
    assert width("#list > li") > before
    assert page.evaluate("visualViewport.scale") == 1  # the page itself keeps its size
