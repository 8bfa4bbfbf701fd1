"""One statement says one thing: values that have nothing to do with one another are assigned one by one."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


def packed(tree):
    """Lines that assign several written values at once; exchanging values is one thing."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        for target in node.targets:
            if isinstance(target, ast.Tuple) and not exchanges(target, node.value):
                yield node.lineno


def exchanges(target, value):
    """Whether the same places stand on both sides, in another order."""
    return sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, value.elts))


@pytest.mark.parametrize(
    ("code", "found"), [("a, b = 1, 2", [1]), ("a, b = b, a", []), ("a = 1, 2", []), ("a, b = both", [])]
)
def test_packed_values_are_found(code, found):
    assert list(packed(ast.parse(code))) == found


def test_values_are_assigned_one_by_one():
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in packed(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found
