"""Run the notebooks and keep what their cells show: python tools/run_notebooks.py [NAME ...].

Cells are run in plain Python, in a new process and a new folder for each notebook: no kernel and no package of Jupyter
is needed. The folder has a copy of `data`, and nothing can be downloaded. Lines that begin with % are for Jupyter and
are left out, and `display` shows nothing. A cell's output is what it prints, and the value of its last line: axes are a
picture, and what has an HTML form is a table. `tests/test_notebooks.py` runs them again and compares; of pictures only
that they are there, because their bytes depend on fonts and on the version of matplotlib.
"""

from __future__ import annotations

import ast
import base64
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

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "learn" / "notebooks"
# Nothing listens there, so a download fails.
OFFLINE = {**os.environ, "https_proxy": "http://127.0.0.1:9", "no_proxy": "", "MPLBACKEND": "agg"}
# The output of a cell: what it prints, and the forms of its value by media type.
PRINTED, PICTURE, TABLE, PLAIN = "stdout", "image/png", "text/html", "text/plain"
Output = dict[str, str]


def run(notebook: dict[str, Any]) -> list[Output]:
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
            forms = forms_of(value)
            if value is not None and not forms:
                print(repr(value))
        outputs.append({**({PRINTED: text} if (text := printed.getvalue()) else {}), **forms})
    return outputs


def forms_of(value: Any) -> Output:
    """Return the picture of axes, or the table of what has an HTML form; nothing for other values."""
    if isinstance(value, np.ndarray) and value.dtype == object:  # several axes of one figure
        value = value.flat[0]
    if hasattr(getattr(value, "figure", None), "savefig"):
        file = io.BytesIO()
        value.figure.savefig(file, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        return {PICTURE: base64.b64encode(file.getvalue()).decode()}
    return {TABLE: value._repr_html_(), PLAIN: repr(value)} if hasattr(value, "_repr_html_") else {}


def outputs_of(path: Path) -> list[Output]:
    """Run a notebook in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER / "data", Path(folder) / "data")
        command = [sys.executable, "-W", "error::UserWarning", __file__, "--one", str(path)]
        found = subprocess.run(command, cwd=folder, env=OFFLINE, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{path.name} failed:\n{found.stderr}")
    return list(json.loads(found.stdout))


def kept(notebook: dict[str, Any]) -> list[Output]:
    """Return the outputs that a notebook has."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    found = []
    for cell in cells:
        parts = [one.get("data") or {PRINTED: one["text"]} for one in cell["outputs"]]
        found.append({kind: "".join(lines) for part in parts for kind, lines in part.items()})
    return found


def compared(outputs: list[Output]) -> list[Output]:
    """Return the outputs without the bytes of pictures, and without the plain form of tables, which has more digits."""
    return [{kind: "" if kind in (PICTURE, PLAIN) else text for kind, text in one.items()} for one in outputs]


def with_outputs(notebook: dict[str, Any], outputs: list[Output]) -> str:
    """Return the text of the notebook with these outputs."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, output in zip(cells, outputs, strict=True):
        lines = {kind: text.splitlines(keepends=True) for kind, text in output.items()}
        printed = lines.pop(PRINTED, None)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed}] if printed else []
        if lines:
            data = {kind: output[kind] if kind == PICTURE else text for kind, text in lines.items()}
            cell["outputs"].append({"data": data, "metadata": {}, "output_type": "display_data"})
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Run all notebooks or those that are named, or print the outputs of one."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(run(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))))
        return
    named = [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]]
    for path in named or sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(with_outputs(notebook, outputs_of(path)), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
