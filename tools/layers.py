"""Write the tables of layers into docs/project/architecture.md: python tools/layers.py.

The text between its two markers is made here from the contracts of import-linter in pyproject.toml and the first line
of each module's docstring. A test renders it again and compares.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "project" / "architecture.md"
BEGIN, END = "<!-- layers: python tools/layers.py -->\n", "<!-- end of layers -->\n"


def packages(pyproject: Path = ROOT / "pyproject.toml") -> dict[str, list[list[str]]]:
    """Return the modules of each layer of each package, the highest first."""
    contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return {
        contract["name"].partition(":")[0]: [
            [name.strip().strip("()") for name in layer.split("|")] for layer in contract["layers"]
        ]
        for contract in contracts
        if contract["type"] == "layers"
    }


def purpose(module: str) -> str:
    """Return the first line of a module's docstring."""
    path = ROOT / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n")[0].rstrip(".")


def table() -> str:
    """Return a table for each package: one row per module, the highest layer first."""
    return "\n".join(_package(name, layers) for name, layers in packages().items())


def _package(name: str, layers: list[list[str]]) -> str:
    lines = [f"**{name}**", "", "| layer | module | what lives there |", "|---|---|---|"]
    for number, modules in enumerate(layers, start=1):
        for place, module in enumerate(modules):
            said = purpose(module).replace("|", "\\|")
            lines.append(f"| {number if place == 0 else ''} | `{file_of(module)}` | {said} |")
    return "\n".join(lines) + "\n"


def file_of(module: str) -> str:
    """Return the folder or file of a module, as seen from the package."""
    package, _, inside = module.replace(".", "/").partition("/")
    return f"{inside}/" if (ROOT / "src" / package / inside).is_dir() else f"{inside}.py"


def with_layers(text: str) -> str:
    """Return the text of the document with the tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"{DOCUMENT} must have the lines {BEGIN.strip()!r} and {END.strip()!r}, one after the other")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_layers(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
