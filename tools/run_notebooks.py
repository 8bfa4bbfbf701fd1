"""Run the notebooks and keep what their cells print: python tools/run_notebooks.py.

Cells are run in plain Python, in a new process and a new folder for each notebook: no kernel and no package of Jupyter
is needed. The folder has a copy of `data`, and nothing can be downloaded. Lines that begin with % are for Jupyter and
are left out, and `display` shows nothing. A cell's output is what it prints, and the value of its last line.
`tests/test_notebooks.py` runs them again and compares.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "learn" / "notebooks"
# Nothing listens there, so a download fails.
OFFLINE = {**os.environ, "https_proxy": "http://127.0.0.1:9", "no_proxy": ""}


def run(notebook: dict[str, Any]) -> list[str]:
    """Run all cells of code, and return the output of each."""
    names: dict[str, Any] = {"__name__": "__main__", "display": lambda *_: None}
    outputs = []
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        lines = "".join(cell["source"]).split("\n")
        tree = ast.parse("\n".join("" if line.startswith("%") else line for line in lines))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body[-1].value
            tree.body.pop()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, f"cell {number}", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last), f"cell {number}", "eval"), names)
            if value is not None:
                print(repr(value))
        outputs.append(printed.getvalue())
    return outputs


def outputs_of(path: Path) -> list[str]:
    """Run a notebook in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER / "data", Path(folder) / "data")
        command = [sys.executable, "-W", "error::UserWarning", __file__, "--one", str(path)]
        found = subprocess.run(command, cwd=folder, env=OFFLINE, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{path.name} failed:\n{found.stderr}")
    return list(json.loads(found.stdout))


def kept(notebook: dict[str, Any]) -> list[str]:
    """Return the outputs that a notebook has."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return ["".join(line for output in cell["outputs"] for line in output["text"]) for cell in cells]


def with_outputs(notebook: dict[str, Any], outputs: list[str]) -> str:
    """Return the text of the notebook with these outputs."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, text in zip(cells, outputs, strict=True):
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [stream] if text else []
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Run all notebooks, or print the outputs of one."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(run(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))))
        return
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(with_outputs(notebook, outputs_of(path)), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
