"""A person reviews a batch on its page, in a real browser, and the corrections come back through the command line."""

import csv
import json
import shutil
from collections import Counter

import numpy as np
import pytest

from handful.cli.main import main

api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")

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
    here = centres + 0.2 * rng.normal(size=centres.shape)
    batch = here[truth] + 0.7 * rng.normal(size=(len(truth), 24))
    order = rng.permutation(len(truth))
    site = np.array(["marsh", "wood </script>"])[np.arange(len(truth)) % 2]
    np.savez(place / "today.npz", features=batch[order], id=[f"<i>{row}</i>" for row in order], site=site)
    (place / "truth.json").write_text(json.dumps(names[truth[order]].tolist()))
    return place


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


def classify(folder, *options: str) -> list[dict[str, str]]:
    paths = ["--catalogue", "catalogue.npz", "--batch", "today.npz", "--out", "labels.csv", "--report", "labels.html"]
    paths = [str(folder / word) if "." in word else word for word in paths]
    assert main(["classify", *paths, *options]) == 0
    with (folder / "labels.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def opened(browser, folder, **options):
    """The page, with a list of what went wrong on it."""
    context = browser.new_context(accept_downloads=True, **options)
    context.set_default_timeout(20_000)  # a busy machine takes its time
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


def chosen(page) -> int:
    """Row of the item in the panel."""
    return int(page.locator("#list [aria-selected=true]").get_attribute("id").removeprefix("item-"))


def saved(page, folder) -> dict:
    with page.expect_download() as waiting:
        page.keyboard.press("s")
    waiting.value.save_as(folder / "today.corrections.json")
    assert waiting.value.suggested_filename == "today.corrections.json"
    return json.loads((folder / "today.corrections.json").read_text(encoding="utf-8"))


def accuracy(table, truth, rows) -> float:
    return float(np.mean([table[row]["label"] == truth[row] for row in rows]))


def filter_by(page, text: str) -> None:
    page.locator(".choice", has_text=text).first.click()


def correct(page, label: str) -> None:
    """Type the beginning of the name, and take the first suggestion that is the class."""
    page.keyboard.press("c")
    page.keyboard.type(label)
    page.keyboard.press("Enter")


def test_a_review_by_keyboard_and_back_through_the_command_line(folder, browser):
    truth = json.loads((folder / "truth.json").read_text())
    before = classify(folder)
    page, wrong = opened(browser, folder)
    assert "Look at these first" in page.locator("#views").inner_text()

    # What is right is confirmed, and three labels are corrected, starting with the items to look at first.
    corrected, known = [], set(np.load(folder / "catalogue.npz")["labels"].tolist())
    page.keyboard.press("ArrowDown")
    while len(corrected) < 3:
        row = chosen(page)
        if truth[row] == before[row]["label"] and before[row]["rejected"] == "False":
            page.keyboard.press("Enter")
        elif truth[row] in known and row not in corrected:
            correct(page, truth[row])
            corrected.append(row)
        else:
            page.keyboard.press("ArrowDown")
        if chosen(page) == row:  # the end of this filter
            filter_by(page, "In doubt")
            page.keyboard.press("ArrowDown")

    # One new group becomes a class with a name.
    filter_by(page, "New group 1")
    page.keyboard.press("g")
    page.keyboard.type('new "class" </script> שלום')
    page.keyboard.press("Enter")
    named = [int(element.get_attribute("id").removeprefix("item-")) for element in page.locator("#list > li").all()]
    assert page.locator("#list .done").count() == len(named)

    # One step too many, and back.
    count = page.locator("#counter").inner_text()
    page.keyboard.press("ArrowDown")
    correct(page, "kind_30")
    assert page.locator("#counter").inner_text() != count
    page.keyboard.press("u")
    assert page.locator("#counter").inner_text() == count

    file = saved(page, folder)
    assert wrong == []
    assert sorted(one["row"] for one in file["corrections"]) == sorted(corrected)
    (new,) = file["new_classes"]
    assert new["label"] == 'new "class" </script> שלום'
    assert sorted(one["row"] for one in new["items"]) == sorted(named)
    confirmed = [one["row"] for one in file["confirmed"]]
    assert f"{len(confirmed)} confirmed, 3 corrected, {len(named)} new" in count

    after = classify(folder, "--corrections", str(folder / "today.corrections.json"))
    assert all(after[row]["label"] == truth[row] for row in (*corrected, *confirmed))
    assert all(after[row]["label"] == new["label"] for row in named)
    # Those that nobody looked at are labelled better, too; the new class counts under the name it was given.
    kinds, counts = np.unique([truth[row] for row in named], return_counts=True)
    called = [new["label"] if kind == kinds[counts.argmax()] else kind for kind in truth]
    others = sorted(set(range(len(truth))) - {*corrected, *confirmed, *named})
    assert accuracy(after, called, others) > accuracy(before, called, others)

    # The next page begins where this one ended, and what it saves holds all of it.
    page, wrong = opened(browser, folder)
    assert f"{len(confirmed) + 3} confirmed, {len(named)} new" in page.locator("#counter").inner_text()
    assert saved(page, folder)["new_classes"] == file["new_classes"]
    assert wrong == []


def sidebar(page, place: str) -> dict[str, int]:
    """Filters of one kind, with the numbers beside them."""
    spans = [choice.locator("> span").all_inner_texts() for choice in page.locator(f"{place} .choice").all()]
    return {name: int(count.replace(",", "")) for name, count in spans}


@pytest.mark.parametrize("group_by", [[], ["--group-by", "site"]])
def test_page_terminal_and_file_count_alike(folder, browser, capsys, group_by):
    table = classify(folder, *group_by)
    printed = capsys.readouterr().out
    unknown = [row for row in table if row["rejected"] == "True"]
    labels = Counter(row["label"] for row in table if row["rejected"] == "False")
    assert 0 < len(unknown) < len(table)
    assert f"{len(unknown)} items look like none of your {KNOWN} classes" in printed
    if not group_by:
        lines = printed.split("class\n")[1].split("\n\n")[0].splitlines()
        told = {line.split()[-1]: int(line.split()[0]) for line in lines if "kind_" in line}
        assert told == {label: labels[label] for label in told}
        assert int(next(line for line in lines if line.endswith("none of these")).split()[0]) == len(unknown)
        assert sum(int(line.split()[0]) for line in lines) == len(table)
    page, wrong = opened(browser, folder)
    assert sidebar(page, "#views")["None of these"] == len(unknown)
    assert sidebar(page, "#class-list") == labels
    if not group_by:
        top = page.locator("body > p", has_text="look like none").inner_text()
        assert top.startswith(f"{len(unknown)} items look like none of your {KNOWN} classes")
    assert wrong == []


def test_an_unknown_item_is_none_of_these_and_enter_confirms_no_class(folder, browser):
    before = classify(folder)
    page, wrong = opened(browser, folder)
    filter_by(page, "None of these")
    page.keyboard.press("ArrowDown")
    unknown = chosen(page)
    assert before[unknown]["rejected"] == "True"
    # First none of these, then the least bad class: in the list and in the panel.
    for place in (f"#item-{unknown}", "#panel"):
        text = page.locator(place).inner_text()
        assert 0 <= text.index("None of these") < text.index(f"most like {before[unknown]['label']}")
    assert page.locator("#panel b").first.inner_text() == "None of these"
    page.keyboard.press("Enter")
    second = chosen(page)
    page.keyboard.press("r")  # what is shown second: the least bad class
    # One key says none of these of an item that has a class.
    filter_by(page, "All items")
    known = next(row for row, told in enumerate(before) if told["rejected"] == "False")
    page.fill("#search", f"<i>{before[known]['id'][3:-4]}</i>")
    page.locator("#search").blur()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    assert page.locator("#counter").inner_text() == "3 of 240 looked at: 1 corrected, 2 none of these"
    page.keyboard.press("?")
    assert "none of these" in page.locator("#keys tr", has=page.locator("kbd", has_text="x")).inner_text()
    page.keyboard.press("Escape")
    file = saved(page, folder)
    assert file["confirmed"] == file["new_classes"] == []
    assert [one["row"] for one in file["none_of_these"]] == sorted([unknown, known])
    assert [(one["row"], one["label"]) for one in file["corrections"]] == [(second, before[second]["label"])]

    after = classify(folder, "--corrections", str(folder / "today.corrections.json"))
    assert [after[row]["rejected"] for row in (unknown, known, second)] == ["True", "True", "False"]
    page, other = opened(browser, folder)
    assert "2 none of these" in page.locator("#counter").inner_text()
    assert saved(page, folder)["none_of_these"] == file["none_of_these"]
    assert wrong == other == []


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
    assert "1 of 240 looked at" in page.locator("#counter").inner_text()
    page.tap("#close")
    page.tap("#filters-toggle")
    filter_by(page, "All items")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wrong == []
