"""A person looks at the report of a batch, in a real browser: it shows everything, and nothing on it can be changed."""

import csv
import json

import numpy as np
import pytest

from handful.classification import classify as classify_files
from handful.classification.page import write_page
from handful.cli.main import main
from tests.classification.test_review_page import faults
from tests.fields.tool_files import DEER, MOOSE
from tests.worlds import Clouds

SHOTS, EACH, KNOWN, PRESENT, GONE = 4, 24, 40, 8, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty classes; a batch where eight of them look a little different, and two that the catalogue does not have."""
    place, rng = tmp_path_factory.mktemp("review"), np.random.default_rng(0)
    clouds = Clouds(KNOWN + GONE, 24, rng)
    names = np.array([f"kind_{k:02}" for k in range(KNOWN + GONE)])
    examples = np.arange(KNOWN).repeat(SHOTS)
    truth = np.repeat([*range(PRESENT), *range(KNOWN, KNOWN + GONE)], EACH)
    vectors = clouds.around(examples, 0.7)
    np.savez(place / "catalogue.npz", features=vectors, labels=names[examples])
    here = clouds.examples(1, 0.8)
    batch = here[truth] + 0.7 * rng.normal(size=(len(truth), 24))
    order = rng.permutation(len(truth))
    site = np.array(["marsh", "wood </script>"])[np.arange(len(truth)) % 2]
    np.savez(place / "today.npz", features=batch[order], id=[f"<i>{row}</i>" for row in order], site=site)
    (place / "truth.json").write_text(json.dumps(names[truth[order]].tolist()))
    return place


def classify(folder, *options: str) -> list[dict[str, str]]:
    paths = ["catalogue.npz", "today.npz", "--out", "labels.csv", "--out", "labels.html"]
    paths = [str(folder / word) if "." in word else word for word in paths]
    assert main(["classify", *paths, *options]) == 0
    with (folder / "labels.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def opened(browser, folder, **options):
    """The page, with a list of what went wrong on it."""
    context = browser.new_context(**options)
    context.set_default_timeout(180_000)  # a busy machine takes its time
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: wrong.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    page.goto((folder / "labels.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    return page, wrong


def filter_by(page, text: str) -> None:
    page.locator(".choice", has_text=text).first.click()


def sidebar(page, place: str) -> dict[str, int]:
    """Filters of one kind, with the numbers beside them."""
    spans = [choice.locator("> span").all_inner_texts() for choice in page.locator(f"{place} .choice").all()]
    return {name: int(count.replace(",", "")) for name, count in spans}


def test_the_number_beside_a_filter_is_what_it_shows_and_chosen_filters_can_be_cleared(folder, browser):
    classify(folder, "--group-by", "site")
    page, wrong = opened(browser, folder)
    classes = sidebar(page, "#class-list")
    page.select_option("#group", label="marsh")
    page.locator("#class-list .choice").nth(1).click()
    for name, count in sidebar(page, "#views").items():
        filter_by(page, name)
        assert page.locator("#matches").inner_text() == f"{count} item{'' if count == 1 else 's'}"
    filter_by(page, "Doubtful")
    label = page.locator("#class-list [aria-pressed=true] > span").first.inner_text()
    chips = page.locator("#chips .chip")
    assert [text.strip("×\n") for text in chips.all_inner_texts()] == ["Doubtful", label, "marsh", "Clear all"]
    chips.filter(has_text=label).click()
    assert label not in chips.all_inner_texts()
    assert page.locator("#class-list [aria-pressed=true]").count() == 0
    chips.filter(has_text="Clear all").click()
    assert page.locator("#matches").inner_text() == "240 items"
    assert (chips.count(), page.input_value("#group")) == (0, "")
    assert sidebar(page, "#class-list") == classes
    assert wrong == []


def test_filters_names_and_reasons(folder, browser):
    before = classify(folder, "--group-by", "site")
    page, wrong = opened(browser, folder)
    filter_by(page, "Everything")
    assert page.locator("#matches").inner_text() == "240 items"
    page.select_option("#group", label="wood </script>")
    assert page.locator("#matches").inner_text() == "120 items"
    page.locator("#class-list .choice").first.click()
    label = page.locator("#about h2").inner_text()
    expected = [row for row in before if row["site"] == "wood </script>" and row["label"] == label]
    assert page.locator("#matches").inner_text() == f"{len(expected)} items"
    assert page.locator("#list i").count() == 0  # no markup from names
    page.keyboard.press("ArrowDown")
    assert "Why this label?" in page.locator("#panel").inner_text()
    assert wrong == []


def test_a_search_finds_any_item_opens_it_and_goes_back(folder, browser):
    classify(folder)
    page, wrong = opened(browser, folder)
    page.locator("#class-list .choice").last.click()
    listed = page.locator("#matches").inner_text()
    page.keyboard.press("/")
    page.keyboard.type("<i>7</i>")  # whatever its class is
    assert page.locator("#list > li").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("#panel blockquote").inner_text() == "<i>7</i>"
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    assert (page.input_value("#search"), page.locator("#matches").inner_text()) == ("", listed)
    page.fill("#search", "nothing has this name")
    assert page.locator("#nothing").is_visible()
    assert wrong == []


def test_a_report_shows_and_says_which_command_answers(folder, browser, monkeypatch):
    monkeypatch.chdir(folder)
    before = classify(folder)
    page, wrong = opened(browser, folder)
    assert page.locator("header code").inner_text() == "handful review catalogue.npz today.npz"
    page.locator("#list .card").first.click()
    assert page.locator("#panel button:not(#close)").count() == 0
    for key in ("Enter", "1", "x", "b", "p", "u", "s", "a", "g"):
        page.keyboard.press(key)
    assert page.locator("dialog[open], .done").count() == 0
    row = next(row for row in before if row["item"] == page.locator("#panel blockquote").inner_text())
    assert page.locator("#panel .head b").inner_text() in (row["label"], "None of these")
    assert wrong == []


def test_what_was_given_is_marked(folder, browser):
    found = classify_files(folder / "catalogue.npz", folder / "today.npz", given={0: "kind_30", 1: "kind_30"})
    write_page(found, folder / "labels.html", title="today")
    page, wrong = opened(browser, folder)
    filter_by(page, "Answered")
    assert page.locator("#list .done").all_inner_texts() == ["✓ given", "✓ given"]
    assert set(page.locator("#list .head b").all_inner_texts()) == {"kind_30"}
    assert wrong == []


def test_a_phone_shows_all_of_it(folder, browser):
    classify(folder)
    page, wrong = opened(browser, folder, viewport={"width": 360, "height": 700}, has_touch=True)
    page.tap("#list .card >> nth=0")
    assert page.locator("#panel .head b").is_visible()
    page.tap("#close")
    page.tap("#filters-toggle")
    filter_by(page, "Everything")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wrong == []


def test_common_names_on_the_page(tmp_path, browser):
    found = [{"classes": [DEER, MOOSE], "scores": [0.7, 0.2]}, {"classes": [MOOSE, DEER], "scores": [0.8, 0.1]}]
    images = [{"filepath": f"wood/{i}.jpg", "classifications": found[i % 2]} for i in range(20)]
    (tmp_path / "p.json").write_text(json.dumps({"predictions": images}))
    words = [tmp_path / "p.json", "--out", tmp_path / "p.csv", "--out", tmp_path / "labels.html"]
    assert main(["rescore", *map(str, words)]) == 0
    page, wrong = opened(browser, tmp_path)
    assert sidebar(page, "#class-list") == {"moose": 10, "white-tailed deer": 10}
    assert DEER not in page.locator("body").inner_text()
    assert page.locator("header code").count() == 0  # scores alone cannot be reviewed
    assert wrong == []


def colours(page) -> dict[str, str]:
    """The mark of each class, as its colour and shape."""
    marks = page.locator("#class-list path").all()
    return {one.get_attribute("data-class"): one.get_attribute("style") + one.get_attribute("d") for one in marks}


@pytest.mark.parametrize(("step", "least"), [(-1, 1.0), (-3, 0.5)])
def test_the_name_of_a_class_chooses_its_colour(folder, tmp_path, browser, step, least):
    """The same classes in another order look the same; among fewer of them, all but those that made way."""
    classify(folder)
    first, wrong = opened(browser, folder)
    with np.load(folder / "today.npz") as batch:
        np.savez(tmp_path / "today.npz", features=batch["features"][::step], id=batch["id"][::step])
    with np.load(folder / "catalogue.npz") as catalogue:
        np.savez(tmp_path / "catalogue.npz", **{name: catalogue[name][::-1] for name in catalogue})
    classify(tmp_path)
    second, wrong_too = opened(browser, tmp_path)
    one, other = colours(first), colours(second)
    both = one.keys() & other.keys()
    assert len(both) >= 5
    assert sum(one[label] == other[label] for label in both) >= least * len(both)
    assert wrong == wrong_too == []


def test_the_map_of_many_items_chooses_one_or_several(tmp_path, browser):
    rng, n_items = np.random.default_rng(1), 3_200
    clouds = Clouds(6, 8, rng)
    truth = rng.integers(0, 3, n_items)
    names = np.array(["</svg><i>", "<img src=x>", "kind &amp; co", "b", "c", "d"])
    examples = np.arange(6).repeat(8)
    vectors = clouds.around(examples, 0.3)
    np.savez(tmp_path / "catalogue.npz", features=vectors, labels=names[examples])
    batch = clouds.around(truth, 0.3)
    np.savez(tmp_path / "today.npz", features=batch, id=[f"<i>{row}</i>" for row in range(n_items)])
    classify(tmp_path)
    page, wrong = opened(browser, tmp_path)
    assert page.locator("#map .points path").count() == 3_000
    assert "3,000 of 3,200 items are drawn" in page.locator("#map-part").inner_text()
    assert page.locator("#map i, #map img, #map-key i, #map-key img").count() == 0
    assert set(page.locator(".key bdi").all_inner_texts()) >= set(names[:3])

    point = page.locator("#map .points path").last  # the least certain lies on top
    box, item = point.bounding_box(), point.get_attribute("data-item")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#panel blockquote").inner_text() == f"<i>{item}</i>"
    assert page.locator(f"#item-{item}.chosen").evaluate("(card) => card.getBoundingClientRect().top < innerHeight")

    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    right, bottom = box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    for corner in ((right, box["y"] + 2), (right, bottom), (box["x"] + 2, bottom)):
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    assert page.locator("#about h2").inner_text() == "3,000 items chosen"
    page.locator("#about button", has_text="Clear").click()
    assert page.locator("#matches").inner_text() == "3,200 items"
    assert wrong == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_axe_finds_nothing(folder, browser, width, scheme):
    classify(folder, "--group-by", "site")
    page, wrong = opened(browser, folder, viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = faults(page)
    page.keyboard.press("ArrowDown")
    assert found + faults(page) == []
    assert wrong == []
