"""A name of a class or a type means one thing: no two classes of the package share one, nor a class and an alias."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def is_alias(node):
    """Whether a statement names a type, as in `Rows = list[Row]`; a TypeVar stands for any type, and is none."""
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    name = node.targets[0].id
    return name[0].isupper() and not name.isupper() and not isinstance(node.value, ast.Call)


def shared(code_by_file):
    """Return names of classes that are the name of another class or of an alias, with the files of both."""
    classes, aliases = defaultdict(list), defaultdict(list)
    for path, code in code_by_file.items():
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
        for node in tree.body:
            if is_alias(node):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                aliases[target.id].append(path)
    both = {name: paths + aliases[name] for name, paths in classes.items()}
    return {name: paths for name, paths in both.items() if len(paths) > 1}


def test_equal_names_are_found():
    code = {
        "a.py": "class Row: pass\nclass Item: pass\nclass Step: pass",
        "b.py": "class Table:\n    class Row: pass",
        "c.py": "Item = dict[str, int]\nSTEP = 3\nStep = TypeVar('Step')",
        "d.py": "Table: TypeAlias = list[int]",
    }
    assert shared(code) == {"Row": ["a.py", "b.py"], "Item": ["a.py", "c.py"], "Table": ["b.py", "d.py"]}


def test_no_two_classes_share_a_name():
    files = sorted(SOURCE.rglob("*.py"))
    assert not shared({str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in files})
