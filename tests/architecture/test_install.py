"""What the page about installing says is what was measured, of every extra there is."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool():
    found = importlib.util.spec_from_file_location("extras_cost", ROOT / "tools" / "extras_cost.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_figures(tool):
    figures = json.loads(tool.FIGURES.read_text(encoding="utf-8"))
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page.split(tool.BEGIN)[1].split(tool.END)[0].strip() == tool.table(figures).strip()


def test_every_extra_is_described_and_the_light_ones_are_light(tool):
    assert set(tool.FOR) == {tool.CORE, *tool.extras()}
    costs = json.loads(tool.FIGURES.read_text(encoding="utf-8"))["costs"]
    assert costs["images"]["megabytes"] < 65
    for extra in ("images", "text"):
        assert not {"torch", "torchvision", "timm", "pyarrow"} & set(costs[extra]["packages"])


def test_another_torch_is_said(tool):
    cost = {"megabytes": 4000.4, "seconds": 99.6, "packages": ["timm", "torch"]}
    light = {"megabytes": 0.3, "seconds": 1.2, "packages": ["x"]}
    table = tool.table({"torch": "torch", "cores": 2, "costs": {"timm": cost, "handful": light}})
    assert table.splitlines()[2:4] == [
        "| `handful` | less than 1 MB | 1 s | Python, with vectors you have |",
        "| `handful[timm]` | 4,000 MB and **another torch** | 100 s | other image models, downloaded |",
    ]


def test_classifiers_claim_the_systems_that_the_page_calls_tested_and_no_others(tool):
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", tool.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    tested = {(system, python) for system, python, said in rows if said == "every change is tested"}
    assert tested == {("Linux", "3.11")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = [tuple(line.split(" :: ")) for line in project["classifiers"]]
    systems = {parts[-1] for parts in claimed if parts[0] == "Operating System"}
    pythons = {parts[-1] for parts in claimed if parts[0] == "Programming Language"}
    assert (systems, pythons) == ({"Linux"}, {"3.11"})
