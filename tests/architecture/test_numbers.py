"""Numbers of the engine: each with a name of its own, and all in the table of `studies/sensitivity.py`."""

import ast
import importlib
import sys
from numbers import Number
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "src" / "handful" / "engine"
sys.path[:0] = [str(ROOT / "studies")]


def assigned(tree):
    """Names that a module assigns outside of functions and classes, also in pairs and behind conditions."""
    for node in ast.walk(ast.Module([one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def is_number(value):
    """Whether a value is a number or made of numbers."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) > 0 and all(is_number(one) for one in value)
    return isinstance(value, np.ndarray | Number) and not isinstance(value, bool)


def numbers():
    """All module-level numbers, as `module.NAME`."""
    found = []
    for path in sorted(ENGINE.glob("*.py")):
        module = importlib.import_module(f"handful.engine.{path.stem}")
        names = dict.fromkeys(assigned(ast.parse(path.read_text(encoding="utf-8"))))
        found += [f"{path.stem}.{name}" for name in names if is_number(getattr(module, name, None))]
    return found


def test_each_number_is_in_the_table():
    study, found = importlib.import_module("sensitivity"), numbers()
    assert sorted(found) == sorted(study.NUMBERS), "studies/sensitivity.py lists other numbers than the engine has"
    names = [number.partition(".")[2] for number in found]
    assert len(set(names)) == len(names), "two numbers have one name, and would be changed together"


def test_every_number_says_what_it_means_and_where_it_comes_from():
    study = importlib.import_module("sensitivity")
    for number, (meaning, origin, kind) in study.NUMBERS.items():
        assert meaning, number
        assert origin.partition(":")[0] in {"tuned", "measured", "convention", "work", "rounding", "code"}, number
        assert set(kind.split()) <= {"fit", "chance", "unused"}, number


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_number_is_changed_in_all_modules_and_put_back(factor):
    study = importlib.import_module("sensitivity")
    for number in study.NUMBERS:
        module, name = number.split(".")
        home = importlib.import_module(f"handful.engine.{module}")
        usual = getattr(home, name)
        others = [one for one in study.MODULES if getattr(one, name, None) is not None]
        with study.changed(number, factor):
            for one in others:
                assert getattr(one, name) is not usual, (number, one.__name__)
        assert all(getattr(one, name) is usual for one in others)


def test_the_prior_of_unknown_items_is_computed_again():
    study, unknown = importlib.import_module("sensitivity"), importlib.import_module("handful.engine.unknown")
    before = unknown._grid().log_prior
    with study.changed("unknown.OTHER_SHIFT", 2.0):
        assert not np.allclose(unknown._grid().log_prior[np.isfinite(before)], before[np.isfinite(before)])
    np.testing.assert_array_equal(unknown._grid().log_prior, before)
