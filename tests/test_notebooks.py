"""Notebooks run as they are, print what they show, and lead where they say."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beyond
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools")]
run_notebooks = importlib.import_module("run_notebooks")
NOTEBOOKS = sorted(run_notebooks.FOLDER.glob("*.ipynb"))


def test_there_are_seven():
    names = ["cells", "first_batch", "photographs", "shelf", "spectra", "voices", "your_own_table"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert run_notebooks.outputs_of(path) == run_notebooks.kept(notebook), "python tools/run_notebooks.py"
    assert path.read_text(encoding="utf-8") == run_notebooks.with_outputs(notebook, run_notebooks.kept(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere(path):
    text = "".join(line for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for line in cell["source"])
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("https://")]
    assert any(link.endswith(".md") for link in links)
    assert all((path.parent / link).is_file() for link in links), links


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_first_cell_installs_handful_from_the_repository(path):
    first = next(cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code")
    (command,) = first["source"]
    place = re.fullmatch(r"%pip install --quiet '?([./]+)(?:\[\w+\]')?", command)
    assert (path.parent / place[1] / "pyproject.toml").is_file()


def test_cells_print_and_a_failure_is_told(tmp_path):
    def notebook(*sources):
        cells = [{"cell_type": "code", "source": [source], "outputs": []} for source in sources]
        return {"cells": [{"cell_type": "markdown", "source": ["no code"]}, *cells]}

    assert run_notebooks.run(notebook("%pip install x", "x = 2\nprint(x)\nx + 1", "x", "display(x)")) == [
        "",
        "2\n3\n",
        "2\n",
        "",
    ]
    (tmp_path / "bad.ipynb").write_text(json.dumps(notebook("1 / 0")))
    with pytest.raises(RuntimeError, match=r"bad\.ipynb failed:\n(.|\n)*ZeroDivisionError"):
        run_notebooks.outputs_of(tmp_path / "bad.ipynb")
    download = "from urllib.request import urlopen\nurlopen('https://example.org')"
    (tmp_path / "far.ipynb").write_text(json.dumps(notebook(download)))
    with pytest.raises(RuntimeError, match=r"far\.ipynb failed:\n(.|\n)*refused"):
        run_notebooks.outputs_of(tmp_path / "far.ipynb")
