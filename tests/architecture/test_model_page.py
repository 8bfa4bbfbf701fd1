"""The page about the model and the code: every formula has a number, and a function that computes it."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "understand" / "model.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Which function computes what")[2]


def numbers(text, pattern):
    return [int(number) for number in re.findall(pattern, text)]


def test_formulas_are_numbered_in_order_and_all_in_the_table():
    tags = numbers(PAGE, r"\\tag\{(\d+)\}")
    assert tags == list(range(1, len(tags) + 1))
    rows = [row.split("|")[1] for row in TABLE.splitlines() if row.startswith("| (")]
    assert sorted({number for row in rows for number in numbers(row, r"\((\d+)\)")}) == tags


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(handful\.[\w.]+)`", TABLE))))
def test_the_function_that_computes_a_formula_exists_and_says_what_it_does(name):
    module, _, rest = re.fullmatch(r"(handful\.\w+\.\w+)(\.)(.+)", name).groups()
    found = importlib.import_module(module)
    for part in rest.split("."):
        found = getattr(found, part)
    assert found.__doc__ or found.func.__doc__


def test_other_mentions_of_formulas_are_numbers_that_exist():
    tags = numbers(PAGE, r"\\tag\{(\d+)\}")
    script = (ROOT / "examples" / "by_hand.py").read_text(encoding="utf-8")
    mentioned = {number for line in script.splitlines() for number in numbers(line, r"[\"#].*?\((\d+)\)")}
    assert mentioned
    assert mentioned <= set(tags)


def test_a_batch_by_hand_agrees(capsys):
    runpy.run_path(str(ROOT / "examples" / "by_hand.py"))
    difference = capsys.readouterr().out.rpartition(" ")[2]
    assert float(difference) < 1e-6
