"""Layers: each module stands in one, documents show them as they are, and imports load only what they need."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import docstring_pages
import handful
import handful_fewshot as fewshot
from handful.reading.registry import FIELDS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "handful"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "studies")]
EXTRAS = ["ray", "matplotlib", "pandas", "pyarrow", "transformers", "lightning", "typer", "fsspec", "s3fs"]


def modules(package: Path) -> list[str]:
    """Packages and modules right below a package."""
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    names = packages | {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    return sorted(".".join([*package.relative_to(SOURCE.parent).parts, name]) for name in names)


def test_every_module_stands_in_one_layer():
    product, paper = importlib.import_module("layers").packages().values()
    assert sorted(module for layer in product for module in layer) == modules(SOURCE)
    assert sorted(module for layer in paper for module in layer) == modules(SOURCE.parent / "handful_fewshot")


def test_no_module_of_the_product_needs_the_papers_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (forbidden,) = [c for c in contracts if c.get("forbidden_modules") == ["handful_fewshot"]]
    assert sorted(forbidden["source_modules"]) == modules(SOURCE)


def test_the_page_shows_the_layers_as_they_are():
    layers = importlib.import_module("layers")
    text = layers.DOCUMENT.read_text(encoding="utf-8")
    assert text == layers.with_layers(text), "behind: python tools/layers.py"
    changed = text.replace("| `cli/` | ", "| `cli/` | by hand ")
    assert changed != text
    assert layers.with_layers(changed) == text


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("handful", ["torch", "numpy", "sklearn", *EXTRAS]),
        ("handful.banks, handful.fitted, handful.reading", ["torch", "sklearn", *EXTRAS]),
        # scikit-learn itself loads pandas where it is installed.
        ("handful.classification, handful.scale", ["torch", "handful_fewshot.task", "ray", "typer"]),
    ],
)
def test_imports_are_light(modules, absent):
    program = f"import sys, {modules}; print([name for name in {absent} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("package", [handful, fewshot])
def test_every_name_of_a_package_is_found_when_asked_for(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_the_product_has_few_names():
    assert len(handful.__all__) <= 12
    assert not set(handful.__all__) & set(fewshot.__all__)


def test_every_method_has_its_page_and_its_row_in_two_tables():
    measured = (ROOT / "docs" / "measured" / "methods.md").read_text(encoding="utf-8")
    listed = (ROOT / "docs" / "understand" / "methods" / "index.md").read_text(encoding="utf-8")
    for name in fewshot.METHODS.own:
        assert f"\n| {name} (" in measured, f"the measured table leaves out {name}"
        assert f"\n| [{name}](" in listed, f"the list of methods leaves out {name}"


@pytest.mark.parametrize("name", sorted(docstring_pages.names()))
def test_the_page_of_a_method_says_what_it_assumes_and_what_each_option_is(name):
    page = docstring_pages.text(name)
    said = page.partition("## Formulas")[0]
    assert "**Assumes**" in said or "**Use it**" in said, "in the docstring of its options"
    for field in fields(fewshot.METHODS[name].options):
        assert f"- `{field.name}` = {field.default!r}" in page


def test_the_page_about_a_review_has_every_rule_and_every_number():
    assert docstring_pages.behind() == {}, "behind the docstrings: python tools/docstring_pages.py"
    page = docstring_pages.rules()
    for said in (
        "`MOST_WRONG` = 0.05",
        "`LEAST_CORRECTED` = 1.5",
        "`EVEN_COSINE` = 0.12",
        "`NATS_PER_PAIR` = NATS_PER_COSINE / 2",
    ):
        assert said in page
    assert "- `SLIPS` = 0.02: h: the share of answers that are slips" in page
    assert docstring_pages.numbers("# One.\nA_B = 1\nC_D = 2\nx = 3\nE_F = 4\n") == ["- `A_B` = 1: One.", "- `C_D` = 2"]


def test_comments_of_options_are_those_beside_above_and_inherited():
    said = docstring_pages.comments(fewshot.METHODS["alpha_tim"].options)
    assert said["temperature"] == "τ"
    assert said["marginal_weight"] == "b"
    assert said["max_iter"].startswith("the same for every task")
    assert docstring_pages.comments(fewshot.METHODS["bd_cspn"].options)["sharpness"].startswith("ε, how strongly")


def imported(path, files):
    """Modules of handful that a file imports anywhere, also for types."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module in files:
            for one in node.names:
                below = f"{node.module}.{one.name}"
                yield below if below in files else node.module


def circles(arrows):
    """Groups of modules that import one another, directly or through others."""
    reached = {}
    for start in arrows:
        found = set()
        left = list(arrows[start])
        while left:
            module = left.pop()
            if module not in found:
                found.add(module)
                left += arrows[module]
        reached[start] = found
    return sorted({tuple(sorted(m for m in arrows if m in reached[s] and s in reached[m])) for s in arrows} - {()})


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [("b", "c")]


@pytest.fixture(scope="module")
def arrows():
    """The modules that each module imports."""
    files = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {module: {*imported(path, files)} - {module} for module, path in files.items()}


def test_no_two_files_import_one_another_also_not_for_types(arrows):
    assert not circles(arrows)


def field_of(module):
    """The field that a module belongs to; None for all other modules."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["handful", "fields"] and len(parts) > 2 else None


def test_no_module_imports_a_field_but_those_of_the_field_itself(arrows):
    found = [
        (module, below)
        for module, imported in arrows.items()
        for below in imported
        if field_of(below) not in (None, field_of(module))
    ]
    assert not found


def test_every_field_registers_itself_and_names_its_page(arrows):
    folders = {field_of(module) for module in arrows} - {None}
    assert FIELDS.own == folders
    for name in folders:
        said = importlib.import_module(f"handful.fields.{name}").__doc__
        (page,) = re.findall(r"docs/do/\w+\.md", said)
        assert (ROOT / page).exists()
