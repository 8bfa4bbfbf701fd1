"""Numbers of the engine: each is a field of `Settings` with a meaning, or a named limit that no answer depends on."""

import ast
import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from handful.engine.settings import DEFAULT, Settings

ENGINE = Path(__file__).resolve().parents[2] / "src" / "handful" / "engine"
# Halves and doubles, first and last, axes.
PLAIN = (0, 1, 2, 0.5)
# Where numbers have names.
NAMED = ("settings", "limits")


def numbers(tree):
    """Lines and values of all numbers in a syntax tree but plain ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in PLAIN:
            yield node.lineno, node.value


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = 0.3 * y", [(1, 0.3)]),
        ("def f(x, n=2**23): pass", [(1, 23)]),
        ("x = y[:, None].sum(-1) / 2 + 0.5", []),
        ("x = y[3]", [(1, 3)]),
        ("x = True", []),
    ],
)
def test_numbers_are_found(code, found):
    assert list(numbers(ast.parse(code))) == found


def test_every_number_of_the_engine_has_a_name():
    found = [
        f"{path.name}:{line}: {value}"
        for path in sorted(ENGINE.glob("*.py"))
        if path.stem not in NAMED
        for line, value in numbers(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "make each a field of Settings, or a limit if no answer depends on it"


def test_every_setting_says_what_it_means_its_unit_and_where_it_comes_from():
    for field in fields(Settings):
        assert field.metadata["meaning"], field.name
        assert field.metadata["unit"], field.name
        assert field.metadata["origin"].partition(":")[0] in {"tuned", "measured", "convention", "work"}, field.name


def test_every_setting_and_limit_is_used():
    source = "\n".join(path.read_text(encoding="utf-8") for path in ENGINE.parent.rglob("*.py"))
    unused = [field.name for field in fields(Settings) if f".{field.name}" not in source]
    limits = ast.parse((ENGINE / "limits.py").read_text(encoding="utf-8"))
    names = [node.targets[0].id for node in limits.body if isinstance(node, ast.Assign)]
    unused += [name for name in names if source.count(name) < 3]  # set, imported and used
    assert not unused


def test_settings_are_whole_numbers_chances_and_lists_of_what_they_say():
    for field in fields(Settings):
        value = getattr(DEFAULT, field.name)
        if field.metadata["unit"] == "chance":
            assert 0 < value < 1, field.name
        if isinstance(value, tuple):
            assert all(isinstance(one, float) for one in value), field.name


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_study_of_sensitivity_changes_every_setting_and_no_other(factor):
    study = importlib.import_module("sensitivity")
    for field in fields(Settings):
        settings = study.changed(field.name, factor)
        different = [one.name for one in fields(Settings) if getattr(settings, one.name) != getattr(DEFAULT, one.name)]
        assert different in ([field.name], []), field.name
        assert different or getattr(DEFAULT, field.name) == 1, field.name
