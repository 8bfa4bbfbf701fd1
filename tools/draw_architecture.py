"""Draw the layers from the contracts that import-linter checks: python tools/draw_architecture.py.

Reads `[[tool.importlinter.contracts]]` of pyproject.toml and the first line of each module's docstring, and writes
docs/drawn/architecture.svg. The site draws it again whenever it is built.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "drawn" / "architecture.svg"
WIDTH, GAP, MARGIN = 1000, 14, 12
# Height of the name in a box, and of each line of its description.
NAME, LINE, MOST_LINES = 40, 18, 4
# Height of the name of a package.
PACKAGE = 30
# Maximum number of boxes side by side; a longer layer continues in a second row of the same band.
ACROSS = 3
# Width of a letter of the smaller text, on average.
LETTER = 6.7


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


def drawing() -> str:
    """Return both packages as SVG: one band per layer, one box per module; a module may import from bands below it."""
    parts, y = [], MARGIN
    for package, layers in packages().items():
        parts.append(f'<text x="{MARGIN}" y="{y + 20}" class="package">{escape(package)}</text>')
        bands, y = _bands(layers, y + PACKAGE)
        parts += bands
    style = (
        "text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1b1f24}"
        ".package{font-size:18px;font-weight:600}.name{font-size:15px;font-weight:600}.says{font-size:12px;fill:#59636e}"
        ".band0{fill:#e8f1f8}.band1{fill:#f6f8fa}.box{fill:#fff;stroke:#0072b2;stroke-width:1.2}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN - 6}" role="img">'
        f"<title>Layers of handful; a module imports only from the bands below it</title><style>{style}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _bands(layers: list[list[str]], y: int) -> tuple[list[str], int]:
    """Return the layers of a package from this height down, and where they end."""
    parts = []
    for number, modules in enumerate(layers):
        rows = [modules[start : start + ACROSS] for start in range(0, len(modules), ACROSS)]
        widths = [(WIDTH - 2 * MARGIN - GAP * (len(row) + 1)) / len(row) for row in rows]
        said = [[_lines(module, width) for module in row] for row, width in zip(rows, widths, strict=True)]
        heights = [NAME + LINE * max(map(len, row)) for row in said]
        height = sum(heights) + GAP * (len(rows) + 1)
        parts.append(
            f'<rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="8" '
            f'class="band{number % 2}"/>'
        )
        top = y + GAP
        for row, width, texts, box in zip(rows, widths, said, heights, strict=True):
            for c, (module, text) in enumerate(zip(row, texts, strict=True)):
                parts.append(_box(MARGIN + GAP + c * (width + GAP), top, width, box, module, text))
            top += box + GAP
        y += height + 6
    return parts, y


def _lines(module: str, width: float) -> list[str]:
    """Return what a module says about itself, in lines that its box has room for."""
    letters = int((width - 20) / LETTER)
    return textwrap.wrap(purpose(module).replace("`", ""), letters, max_lines=MOST_LINES, placeholder=" …")


def _box(x: float, y: float, width: float, height: float, module: str, said: list[str]) -> str:
    """Return one module: its name and what it says about itself."""
    name = module.removeprefix("handful.").replace(".", "/")
    return (
        f'<g><rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" class="box"/>'
        f'<text x="{x + 12:g}" y="{y + 23:g}" class="name">{escape(name)}</text>'
        + "".join(
            f'<text x="{x + 12:g}" y="{y + 43 + LINE * line:g}" class="says">{escape(words)}</text>'
            for line, words in enumerate(said)
        )
        + "</g>"
    )


def draw_architecture(place: Path = PLACE) -> Path:
    """Write the drawing and return where it is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(drawing(), encoding="utf-8")
    return place


if __name__ == "__main__":
    print(draw_architecture())
