"""The rooms of two houses: each stands in a layer, documents show the layers as they are, names are not given twice."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import handful
from handful import fewshot

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "handful"
sys.path[:0] = [str(ROOT / "tools")]


def rooms(house: Path) -> set[str]:
    """Packages and modules right below a house."""
    packages = {path.parent.name for path in house.glob("*/__init__.py")} - {"fewshot"}
    names = packages | {path.stem for path in house.glob("*.py")} - {"__init__", "__main__"}
    return {".".join([*house.relative_to(SOURCE.parent).parts, name]) for name in names}


def homonyms(sources: dict[str, str]) -> dict[str, list[str]]:
    """Names of top-level classes that several files define, with these files."""
    places = defaultdict(list)
    for name, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return {name: files for name, files in places.items() if len(files) > 1}


def test_every_room_stands_in_one_layer():
    product, paper = importlib.import_module("draw_architecture").houses().values()
    assert sorted(module for layer in product for module in layer) == sorted(rooms(SOURCE))
    assert sorted(module for layer in paper for module in layer) == sorted(rooms(SOURCE / "fewshot"))


def test_no_room_of_the_product_needs_the_papers_house():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (forbidden,) = [c for c in contracts if c.get("forbidden_modules") == ["handful.fewshot"]]
    assert sorted(forbidden["source_modules"]) == sorted(rooms(SOURCE))


def test_the_product_has_few_names():
    assert len(handful.__all__) <= 12
    assert not set(handful.__all__) & set(fewshot.__all__)


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_documents_show_the_layers_as_they_are(document):
    layers = importlib.import_module("layers")
    text = (ROOT / document).read_text(encoding="utf-8")
    assert text == layers.with_layers(text, document), f"{document} is behind: python tools/layers.py"


def test_a_table_changed_by_hand_is_found_out():
    layers = importlib.import_module("layers")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    changed = re.sub(r"\| `cli/` \| [^|]*\|", "| `cli/` | something else |", text)
    assert changed != text
    assert layers.with_layers(changed, "CONTRIBUTING.md") == text


def test_no_two_classes_share_a_name():
    sources = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert homonyms(sources) == {}


def test_classes_that_share_a_name_are_found():
    assert homonyms({"a": "class One: ...\nclass Two: ...", "b": "class Two: ..."}) == {"Two": ["a", "b"]}


def test_the_two_front_doors_open_from_the_top_when_they_are_asked_for():
    program = (
        "import sys, handful\n"
        "assert 'sklearn' not in sys.modules and 'handful.estimators' not in sys.modules\n"
        "assert {'BatchClassifier', 'classify'} <= set(dir(handful))\n"
        "from handful import BatchClassifier, classify\n"
        "from handful.classification import classify as same\n"
        "assert classify is same and BatchClassifier.__module__.startswith('handful.estimators')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="module 'handful' has no attribute 'nothing'"):
        _ = handful.nothing


@pytest.mark.parametrize(
    ("call", "place"),
    [(r"\bos\.fsync\(", "machine/whole_file.py"), (r"\bray\.(?:init|shutdown)\(", "machine/ray_cluster.py")],
)
def test_the_disk_and_the_cluster_are_reached_in_one_place(call, place):
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if re.search(call, path.read_text())}
    assert found == {place}
