"""The page about the model and the code: every formula has a number, and a function that computes it."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "understand" / "model.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Which function computes what")[2]
TAG = r"\d+b?"
TAGS = re.findall(rf"\\tag\{{({TAG})\}}", PAGE)


def test_formulas_are_numbered_in_order_and_all_in_the_table():
    in_order = sorted(TAGS, key=lambda tag: (int(tag.rstrip("b")), tag))
    assert in_order == TAGS
    assert [tag for tag in TAGS if tag.isdecimal()] == [str(number) for number in range(1, int(TAGS[-1]) + 1)]
    rows = [row.split("|")[1] for row in TABLE.splitlines() if row.startswith("| (")]
    assert {tag for row in rows for tag in re.findall(rf"\(({TAG})\)", row)} == set(TAGS)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(handful\.[\w.]+)`", TABLE))))
def test_the_function_that_computes_a_formula_exists_and_says_what_it_does(name):
    module, _, rest = re.fullmatch(r"(handful\.\w+\.\w+)(\.)(.+)", name).groups()
    found = importlib.import_module(module)
    for part in rest.split("."):
        found = getattr(found, part)
    assert found.__doc__ or found.func.__doc__


def test_other_mentions_of_formulas_are_numbers_that_exist():
    script = (ROOT / "examples" / "by_hand.py").read_text(encoding="utf-8")
    mentioned = {tag for line in script.splitlines() for tag in re.findall(rf"[\"#].*?\(({TAG})\)", line)}
    assert mentioned
    assert mentioned <= set(TAGS)


def test_a_batch_by_hand_agrees(capsys):
    runpy.run_path(str(ROOT / "examples" / "by_hand.py"))
    difference = capsys.readouterr().out.rpartition(" ")[2]
    assert float(difference) < 1e-6
