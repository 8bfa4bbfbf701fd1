"""A person reviews a batch on its page, in a real browser, and the corrections come back through the command line."""

import csv
import json
import shutil

import numpy as np
import pytest

from handful.cli.main import main
from tests.exchange.tool_files import DEER, MOOSE

SHOTS, EACH, KNOWN, PRESENT, GONE = 4, 24, 40, 8, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty classes; a batch where eight of them look a little different, and two that the catalogue does not have."""
    place, rng = tmp_path_factory.mktemp("review"), np.random.default_rng(0)
    centres = rng.normal(size=(KNOWN + GONE, 24))
    names = np.array([f"kind_{k:02}" for k in range(KNOWN + GONE)])
    examples = np.arange(KNOWN).repeat(SHOTS)
    truth = np.repeat([*range(PRESENT), *range(KNOWN, KNOWN + GONE)], EACH)
    vectors = centres[examples] + 0.7 * rng.normal(size=(len(examples), 24))
    np.savez(place / "catalogue.npz", features=vectors, labels=names[examples])
    here = centres + 0.8 * rng.normal(size=centres.shape)
    batch = here[truth] + 0.7 * rng.normal(size=(len(truth), 24))
    order = rng.permutation(len(truth))
    site = np.array(["marsh", "wood </script>"])[np.arange(len(truth)) % 2]
    np.savez(place / "today.npz", features=batch[order], id=[f"<i>{row}</i>" for row in order], site=site)
    (place / "truth.json").write_text(json.dumps(names[truth[order]].tolist()))
    return place


def classify(folder, *options: str) -> list[dict[str, str]]:
    paths = ["--catalogue", "catalogue.npz", "--batch", "today.npz", "--out", "labels.csv", "--report", "labels.html"]
    paths = [str(folder / word) if "." in word else word for word in paths]
    assert main(["classify", *paths, *options]) == 0
    with (folder / "labels.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def opened(browser, folder, **options):
    """The page, with a list of what went wrong on it."""
    context = browser.new_context(accept_downloads=True, **options)
    context.set_default_timeout(180_000)  # a busy machine takes its time
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: wrong.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None,
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
    page.fill("#search", "1")
    for name, count in sidebar(page, "#views").items():
        filter_by(page, name)
        assert page.locator("#matches").inner_text() == f"{count} item{'' if count == 1 else 's'}"
    filter_by(page, "In doubt")
    label = page.locator("#class-list [aria-pressed=true] > span").first.inner_text()
    chips = page.locator("#chips .chip")
    assert [text.strip("×\n") for text in chips.all_inner_texts()] == ["In doubt", label, "marsh", "“1”", "Clear all"]
    chips.filter(has_text=label).click()
    assert label not in chips.all_inner_texts()
    assert page.locator("#class-list [aria-pressed=true]").count() == 0
    chips.filter(has_text="Clear all").click()
    assert page.locator("#matches").inner_text() == "240 items"
    assert (chips.count(), page.input_value("#search"), page.input_value("#group")) == (0, "", "")
    assert sidebar(page, "#class-list") == classes
    assert wrong == []


def test_filters_names_and_storage(folder, browser):
    before = classify(folder, "--group-by", "site")
    page, wrong = opened(browser, folder)
    filter_by(page, "All items")
    assert page.locator("#matches").inner_text() == "240 items"
    page.select_option("#group", label="wood </script>")
    assert page.locator("#matches").inner_text() == "120 items"
    page.locator("#class-list .choice").first.click()
    label = page.locator("#about h2").inner_text()
    expected = [row for row in before if row["site"] == "wood </script>" and row["label"] == label]
    assert page.locator("#matches").inner_text() == f"{len(expected)} items"
    page.fill("#search", "<i>")
    assert page.locator("#matches").inner_text() == f"{len(expected)} items"
    assert page.locator("#list i").count() == len(page.locator("#list .meter").all())  # no markup from names
    page.fill("#search", "nothing has this name")
    assert page.locator("#matches").inner_text() == "0 items"
    page.fill("#search", "")
    page.locator("#search").blur()
    page.keyboard.press("ArrowDown")
    assert "Why this label?" in page.locator("#panel").inner_text()
    page.keyboard.press("Enter")
    assert "1 confirmed" in page.locator("#counter").inner_text()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert "1 confirmed" in page.locator("#counter").inner_text()
    assert wrong == []


def test_a_phone_shows_all_of_it(folder, browser):
    classify(folder)
    page, wrong = opened(browser, folder, viewport={"width": 360, "height": 700}, has_touch=True)
    page.tap("#list > li")
    page.locator("#panel button", has_text="Confirm").tap()
    assert "1 of 240 reviewed" in page.locator("#counter").inner_text()
    page.tap("#close")
    page.tap("#filters-toggle")
    filter_by(page, "All items")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wrong == []


def test_common_names_on_the_page_and_the_taxonomy_in_the_corrections(tmp_path, browser):
    found = [{"classes": [DEER, MOOSE], "scores": [0.7, 0.2]}, {"classes": [MOOSE, DEER], "scores": [0.8, 0.1]}]
    images = [{"filepath": f"wood/{i}.jpg", "classifications": found[i % 2]} for i in range(20)]
    (tmp_path / "p.json").write_text(json.dumps({"predictions": images}))
    words = ["--scores", tmp_path / "p.json", "--out", tmp_path / "p.csv", "--report", tmp_path / "labels.html"]
    assert main(["classify", *map(str, words)]) == 0
    page, wrong = opened(browser, tmp_path)
    assert sidebar(page, "#class-list") == {"moose": 10, "white-tailed deer": 10}
    page.locator("#list > li", has_text="wood/0.jpg").click()
    page.keyboard.press("c")
    page.fill("#words", "alces")  # its scientific name
    page.keyboard.press("Enter")
    assert sidebar(page, "#class-list") == {"moose": 11, "white-tailed deer": 9}
    assert DEER not in page.locator("body").inner_text()
    with page.expect_download() as download:
        page.keyboard.press("s")
    said = download.value.path()
    (corrected,) = json.loads(said.read_text())["corrections"]
    assert {name: corrected[name] for name in ("row", "item", "label")} == {
        "row": 0,
        "item": "wood/0.jpg",
        "label": MOOSE,
    }
    assert wrong == []
    (tmp_path / "p.json").write_text(json.dumps({"predictions": images[::-1][1:]}))  # one is gone, and rows are others
    assert main(["classify", *map(str, words), "--given", str(said)]) == 0
    with (tmp_path / "p.csv").open(encoding="utf-8") as stream:
        assert {row["item"]: row["label"] for row in csv.DictReader(stream)}["wood/0.jpg"] == MOOSE


def test_a_new_class_of_the_page_comes_back_though_the_batch_has_changed(folder, browser, tmp_path, capsys):
    classify(folder)
    page, wrong = opened(browser, folder)
    filter_by(page, "All items")
    names = []
    for key, words in (("n", "kraken"), ("c", "kind_03"), ("x", None)):
        page.keyboard.press("ArrowDown")
        names.append(page.locator("#list [aria-selected=true]").inner_text().split("\n")[0])
        page.keyboard.press(key)
        if words is not None:
            page.fill("#words", words)
            page.keyboard.press("Enter")
        page.locator(f"#list > li:has-text('{names[-1]}')").first.click()
    with page.expect_download() as download:
        page.keyboard.press("s")
    assert wrong == []
    with np.load(folder / "today.npz") as batch:
        kept = [row for row, name in enumerate(batch["id"].tolist()) if name != names[2]][::-1]
        np.savez(tmp_path / "today.npz", **{name: batch[name][kept] for name in batch})
    shutil.copy(folder / "catalogue.npz", tmp_path)
    capsys.readouterr()
    rows = classify(tmp_path, "--given", str(download.value.path()))
    labels = {row["item"]: row["label"] for row in rows}
    assert [labels[name] for name in names[:2]] == ["kraken", "kind_03"]
    said = f"warning: 1 correction could not be applied:\n  {names[2]}: it is not in the batch\n"
    assert said in capsys.readouterr().err


def test_the_map_of_many_items_chooses_one_or_several(tmp_path, browser):
    rng, n_items = np.random.default_rng(1), 3_200
    centres, truth = rng.normal(size=(6, 8)), rng.integers(0, 3, n_items)
    names = np.array(["</svg><i>", "<img src=x>", "kind &amp; co", "b", "c", "d"])
    examples = np.arange(6).repeat(8)
    vectors = centres[examples] + 0.3 * rng.normal(size=(len(examples), 8))
    np.savez(tmp_path / "catalogue.npz", features=vectors, labels=names[examples])
    batch = centres[truth] + 0.3 * rng.normal(size=(n_items, 8))
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
    assert page.locator(f"#item-{item}[aria-selected=true]").evaluate(
        "(card) => card.getBoundingClientRect().top < innerHeight"
    )

    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    right, bottom = box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    for corner in ((right, box["y"] + 2), (right, bottom), (box["x"] + 2, bottom)):
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    assert page.locator("#about h2").inner_text() == "3,000 items chosen on the map"
    page.click("#one-class")
    page.fill("#words", "</svg><i>")
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        page.keyboard.press("s")
    said = json.loads(download.value.path().read_text())
    assert {one["label"] for kind in ("confirmed", "corrections") for one in said[kind]} == {"</svg><i>"}
    assert len(said["confirmed"]) + len(said["corrections"]) == 3_000
    page.keyboard.press("u")
    assert page.locator("#counter").inner_text() == "No items reviewed yet"
    assert wrong == []
