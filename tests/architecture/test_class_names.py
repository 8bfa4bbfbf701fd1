"""A name of a class means one thing: no two classes of the package share one."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def shared(trees):
    """Names of classes that occur more than once in syntax trees by file, with these files."""
    found = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_equal_names_are_found():
    trees = {"a.py": "class Row: pass\nclass Item: pass", "b.py": "class Table:\n    class Row: pass"}
    assert shared({path: ast.parse(code) for path, code in trees.items()}) == {"Row": ["a.py", "b.py"]}


def test_no_two_classes_share_a_name():
    files = sorted(SOURCE.rglob("*.py"))
    trees = {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    assert not shared(trees), "rename one of each, so that a name says which is meant"
