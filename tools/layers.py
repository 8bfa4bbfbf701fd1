"""Write the tables of layers into CONTRIBUTING.md: python tools/layers.py.

The text between its two markers is made here from the contracts of import-linter in pyproject.toml and the first line
of each module's docstring. A test renders it again and compares.
"""

from __future__ import annotations

from pathlib import Path

from draw_architecture import ROOT, packages, purpose

DOCUMENTS = (ROOT / "CONTRIBUTING.md",)
BEGIN, END = "<!-- layers: python tools/layers.py -->\n", "<!-- end of layers -->\n"


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


def with_layers(text: str, name: str) -> str:
    """Return the text of a document with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"{name} must have the lines {BEGIN.strip()!r} and {END.strip()!r}, one after the other")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def write(documents: tuple[Path, ...] = DOCUMENTS) -> None:
    """Write the table into the documents."""
    for document in documents:
        text = document.read_text(encoding="utf-8")
        document.write_text(with_layers(text, document.name), encoding="utf-8")


if __name__ == "__main__":
    write()
