"""Notebooks run as they are, print what they show, and lead where they say."""

import base64
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


def test_there_are_eight():
    names = ["catalogue", "cells", "first_batch", "from_nothing", "letters", "shelf", "voices", "your_own_table"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kept = run_notebooks.kept(notebook)
    assert run_notebooks.compared(run_notebooks.outputs_of(path)) == run_notebooks.compared(kept), "run_notebooks.py"
    assert path.read_text(encoding="utf-8") == run_notebooks.with_outputs(notebook, kept)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_has_pictures_and_a_table_and_shows_what_goes_wrong(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kept = run_notebooks.kept(notebook)
    pictures = [base64.b64decode(one[run_notebooks.PICTURE]) for one in kept if run_notebooks.PICTURE in one]
    tables = [one[run_notebooks.TABLE] for one in kept if run_notebooks.TABLE in one]
    assert len(pictures) >= 2
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert any("<table" in table for table in tables)
    headings = [line for cell in notebook["cells"] for line in cell["source"] if line.startswith("## ")]
    assert any(line.startswith("## What goes wrong") for line in headings)


def test_all_of_them_have_less_than_two_megabytes():
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 2e6


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
    place = re.fullmatch(r'%pip install --quiet "?([./]+)(?:\[[\w,]+\]")?(?: pandas)?', command)
    assert (path.parent / place[1] / "pyproject.toml").is_file()


def test_cells_print_and_a_failure_is_told(tmp_path):
    def notebook(*sources):
        cells = [{"cell_type": "code", "source": [source], "outputs": []} for source in sources]
        return {"cells": [{"cell_type": "markdown", "source": ["no code"]}, *cells]}

    assert run_notebooks.run(notebook("%pip install x", "x = 2\nprint(x)\nx + 1", "x", "display(x)")) == [
        {},
        {"stdout": "2\n3\n"},
        {"stdout": "2\n"},
        {},
    ]
    pytest.importorskip("matplotlib")
    drawn = "import matplotlib\nmatplotlib.use('agg')\nfrom matplotlib.figure import Figure\nFigure().subplots();"
    found = notebook(drawn, "class Table:\n    def _repr_html_(self): return '<table>'\nprint(1)\nTable()")
    picture, table = run_notebooks.run(found)
    assert list(picture) == [run_notebooks.PICTURE]
    assert (table["stdout"], table["text/html"]) == ("1\n", "<table>")
    text = json.loads(run_notebooks.with_outputs(found, [picture, table]))
    assert run_notebooks.kept(text) == [picture, table]
    (tmp_path / "bad.ipynb").write_text(json.dumps(notebook("1 / 0")))
    with pytest.raises(RuntimeError, match=r"bad\.ipynb failed:\n(.|\n)*ZeroDivisionError"):
        run_notebooks.outputs_of(tmp_path / "bad.ipynb")
    download = "from urllib.request import urlopen\nurlopen('https://example.org')"
    (tmp_path / "far.ipynb").write_text(json.dumps(notebook(download)))
    with pytest.raises(RuntimeError, match=r"far\.ipynb failed:\n(.|\n)*refused"):
        run_notebooks.outputs_of(tmp_path / "far.ipynb")
