"""A person at the page of a real server, with the keyboard alone: answers, reload, second tab, undo, kill, resume."""

import csv
import json

import numpy as np
import pytest

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


def at_page(browser, server, folder, **options):
    truth = json.loads((folder / "truth.json").read_text())
    return Person(browser, server.address, truth, KNOWN_CLASSES, **options)


def test_answers_reload_second_tab_undo_kill_resume_finish(folder, browser, start_review):
    server = start_review(folder, *WORDS, "--out", "labels.csv")
    person, notes = at_page(browser, server, folder), []
    while person.n_decisions < 5:
        person.answers(person.shown())
        notes.append(person.text("#note") if person.page.locator("#note").is_visible() else "")
    assert any("other label" in note for note in notes)
    assert "seen in 5 decisions" in person.text("#progress-said")

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
    assert "seen in 6 decisions" in first.locator("#progress-said").inner_text()
    person.page = first

    # Undo takes back one answer after another, and comes back to what was asked.
    shown = person.shown()
    person.decides("p")
    person.decides("u")
    assert person.shown() == shown

    # Killed in the middle: the page says so, and the same command goes on.
    server.kill()
    person.page.keyboard.press("p")
    person.page.wait_for_selector("text=The server does not answer")
    server = start_review(folder, *WORDS, "--out", "labels.csv")
    person.open(server.address)
    assert person.shown() == shown

    person.finishes()
    assert "labels.csv" in person.text("#note")
    assert server.process.wait(timeout=60) == 0
    rows = labels_of(folder)
    said = {item: row for item, row in rows.items() if row["person"] not in ("", "passed")}
    assert len(said) >= 5
    assert all(row["person"] == row["label"] == person.truth[item] for item, row in said.items())
    assert person.wrong == []


def test_a_phone_answers_and_accepts_a_group(folder, browser, start_review):
    server = start_review(folder, *WORDS, "--out", "phone.csv")
    person = at_page(browser, server, folder, viewport={"width": 420, "height": 800}, has_touch=True)
    page = person.page
    number = page.evaluate("document.documentElement.dataset.number")
    page.locator("#asked button", has_text="None of these").tap()
    person.settled(number)
    page.tap("#filters-toggle")
    page.locator("#class-list .choice").first.tap()
    count = int(page.locator("#accept").inner_text().split()[2])
    page.tap("#accept")
    assert f"Confirm the label of {count} items?" in person.text("#sure-said")
    number = page.evaluate("document.documentElement.dataset.number")
    page.tap("#sure-yes")
    person.settled(number)
    assert f"{count + 1} of 160 items seen" in person.text("#progress-said")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    number = page.evaluate("document.documentElement.dataset.number")
    page.tap("#undo")
    person.settled(number)
    assert "1 of 160 items seen" in person.text("#progress-said")
    assert person.wrong == []


def test_a_catalogue_that_goes_away_while_the_page_is_open_is_a_sentence_on_the_page(folder, browser, start_review):
    server = start_review(folder, *WORDS, "--out", "labels.csv")
    person = at_page(browser, server, folder)
    person.decides("p")
    shown = person.shown()
    (folder / "catalogue.handful").rename(folder / "elsewhere.handful")
    person.page.keyboard.press("p")
    person.page.wait_for_selector("text=was moved or deleted while it was open")
    assert person.shown() == shown
    (folder / "elsewhere.handful").rename(folder / "catalogue.handful")
    person.decides("p")
    assert "seen in 2 decisions" in person.text("#progress-said")
    assert person.wrong == []


# How many items of a class are on the map, and the edges of a box around them.
BOX = """(label) => {
  const key = [...document.querySelectorAll('.key')].find((key) => key.textContent.startsWith(label));
  const name = key.querySelector('path').dataset.class;
  const paths = [...document.querySelectorAll('#map .points path')].filter((path) => path.dataset.class === name);
  const points = paths.map((path) => path.getBoundingClientRect());
  const all = (side) => points.map((box) => box[side]);
  const edges = (low, high) => [Math.min(...all(low)), Math.max(...all(high))];
  return { count: points.length, x: edges('left', 'right'), y: edges('top', 'bottom') };
}"""


def draw_around(page, label, *, touch=False):
    """Draw a line around the items of a class; return how many they are."""
    page.locator("#map").scroll_into_view_if_needed()
    box = page.evaluate(BOX, label)
    (left, right), (top, bottom) = ((low - 3, high + 3) for low, high in (box["x"], box["y"]))
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top + 4)]
    if touch:
        session = page.context.new_cdp_session(page)
        send = lambda kind, points: session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})  # noqa: E731
        send("touchStart", [{"x": left, "y": top}])
        for x, y in corners[1:]:
            send("touchMove", [{"x": x, "y": y}])
        send("touchEnd", [])
    else:
        page.mouse.move(*corners[0])
        page.mouse.down()
        for corner in corners[1:]:
            page.mouse.move(*corner, steps=4)
        page.mouse.up()
    return box["count"]


def test_items_chosen_on_the_map_get_one_decision(folder, browser, start_review):
    server = start_review(folder, *WORDS, "--out", "map.csv")
    person = at_page(browser, server, folder, viewport={"width": 1280, "height": 900})
    page = person.page
    assert page.locator("#map .points path").count() == 160
    label = page.locator(".key bdi").first.inner_text()
    count = draw_around(page, label)
    chosen = int(person.text("#about h2").split()[0])
    assert chosen >= count > 5
    assert page.locator("#map .picked").count() == chosen
    before = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("g")
    page.keyboard.type("a new kind")
    page.keyboard.press("Enter")
    person.settled(before)
    assert f"{chosen} of 160 items seen" in person.text("#progress-said")
    assert "a new kind" in person.text("#map-key")
    places = [path.get_attribute("transform") for path in page.locator("#map .points path").all()[:5]]
    before = page.evaluate("document.documentElement.dataset.number")
    page.keyboard.press("u")
    person.settled(before)
    assert "0 of 160 items seen" in person.text("#progress-said")
    drawn = {path.get_attribute("transform") for path in page.locator("#map .points path").all()}
    assert set(places) <= drawn  # items stay where they are
    assert page.locator("#map i, #map-key i").count() == 0
    assert person.wrong == []


def test_the_map_by_keyboard_and_by_touch(folder, browser, start_review):
    server = start_review(folder, *WORDS, "--out", "map_keys.csv")
    person = at_page(browser, server, folder, viewport={"width": 420, "height": 850}, has_touch=True)
    page = person.page
    page.keyboard.press("m")
    page.keyboard.press("ArrowRight")
    assert page.locator("#map .ring").count() == 1
    for key in (" ", "+", "+", "+", "-"):
        page.keyboard.press(key)
    assert page.locator("#map .picked").count() == 3
    assert person.text("#map-said") == "3 items chosen."
    page.keyboard.press("Escape")
    assert page.locator("#map .picked").count() == 0
    if page.locator("#close").is_visible():
        page.tap("#close")
    page.tap("#map-draw")
    count = draw_around(page, page.locator(".key bdi").first.inner_text(), touch=True)
    chosen = int(person.text("#about h2").split()[0])
    assert chosen >= count
    before = page.evaluate("document.documentElement.dataset.number")
    page.click("#no-class")  # a tap so soon after a line is lost now and then
    person.settled(before)
    assert f"{chosen} of 160 items seen" in person.text("#progress-said")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert person.wrong == []


def test_from_nothing_to_a_catalogue_and_the_next_batch_with_it(tmp_path, browser, start_review):
    rng = np.random.default_rng(0)
    clouds = Clouds(4, DIM, rng, apart=2)
    truth = {}
    for name in ("one", "two"):
        codes = rng.permutation(np.repeat(np.arange(4), 8))
        items = [f"<b>{name} {row}</b>" for row in range(len(codes))]
        np.savez(tmp_path / f"{name}.npz", features=clouds.around(codes), id=items)
        truth |= dict(zip(items, np.array(["ant", "bee", "cat", "<i>dog"])[codes].tolist(), strict=True))
    server = start_review(tmp_path, "one.npz")
    person = Person(browser, server.address, truth, [])
    while person.n_decisions < 3:
        person.answers(person.shown())

    # Killed in the middle: the same command goes on, at the same group; undo and a second window as with a catalogue.
    shown = person.shown()
    server.kill()
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

    server = start_review(tmp_path, "one.handful", "two.npz")
    again = Person(browser, server.address, truth, sorted(set(truth.values())))
    assert again.sees(8)
    assert person.wrong == again.wrong == []


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_class_gets_another_name_and_merging_asks_first(viewport, tmp_path, browser, start_review):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(3), 8))
    items = [f"item {row}" for row in range(len(codes))]
    np.savez(tmp_path / "one.npz", features=Clouds(3, DIM, rng, apart=2).around(codes), id=items)
    truth = dict(zip(items, np.array(["kangaro", "owl", "mouse"])[codes].tolist(), strict=True))
    server = start_review(tmp_path, "one.npz")
    person = Person(browser, server.address, truth, [], viewport=viewport)
    page = person.page
    while person.n_decisions < 3:
        person.answers(person.shown())

    def classes():
        return sorted(page.locator("#class-list .choice bdi").all_inner_texts())

    def begins(label):
        page.keyboard.press("Escape")
        if page.locator("#filters-toggle").is_visible():
            page.click("#filters-toggle")
        page.locator("#class-list .choice", has_text=label).click()
        page.keyboard.press("r")
        page.wait_for_selector("#ask[open]")
        return page.evaluate("document.documentElement.dataset.number")

    def offered():
        return page.locator("#options li").all_inner_texts()

    # Nothing is typed: Enter does nothing. The name that is corrected is not offered, whatever is typed.
    number = begins("kangaro")
    assert sorted(offered()) == ["mouse", "owl"]
    page.keyboard.press("Enter")
    page.keyboard.type("kangaro")
    assert offered() == []
    page.keyboard.press("Enter")
    assert page.locator("#ask[open]").count() == 1
    assert page.evaluate("document.documentElement.dataset.number") == number

    # Another spelling is not asked about: the name that is corrected was not meant.
    page.keyboard.type("o")
    page.keyboard.press("Enter")
    person.settled(number)
    assert page.locator("#sure[open]").count() == 0
    assert classes() == ["kangaroo", "mouse", "owl"]

    # Case is a name of its own.
    number = begins("kangaroo")
    page.keyboard.type("Kangaroo")
    page.keyboard.press("Enter")
    person.settled(number)
    assert classes() == ["Kangaroo", "mouse", "owl"]

    # A name like that of a third class is asked about, and to make two classes one is, too: here by the arrow keys.
    number = begins("owl")
    page.keyboard.type("mousse")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure[open]")
    assert "Did you mean “mouse”?" in person.text("#sure-said")
    page.click("#sure-yes")
    page.wait_for_selector("text=Make “owl” and “mouse” one class, “mouse”?")
    page.click("#sure-no")
    assert page.evaluate("document.documentElement.dataset.number") == number
    begins("owl")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#options [aria-selected=true]").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=Make “owl” and “{chosen}” one class, “{chosen}”?")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#sure-yes")
    person.settled(number)
    assert classes() == sorted({"Kangaroo", "mouse"})
    assert person.wrong == []
