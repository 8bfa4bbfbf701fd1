"""The page of all numbers that an answer can depend on: python tools/numbers_page.py. A test compares it.

Imports are followed from the doors, and modules of the packages that an answer can pass through are read. A number of
them is a field of `Settings`, or a constant in capitals with a comment; what else there is, `strays` finds. A comment
ends with unit and origin, `# Items of a sheet. [items; convention]`, and holds for the constants right below it.
"""

from __future__ import annotations

import ast
import csv
import importlib
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "understand" / "numbers.md"
RESULTS = ROOT / "studies" / "results"
MEASURED = ROOT / "docs" / "measured" / "sensitivity.csv"

# The package of the model.
MODEL = "model"
SETTINGS = f"handful.{MODEL}.settings"
DOORS = ("estimators", "session", "fitted", "scale")
# Packages whose numbers are listed, and what they do.
WALKED = {
    MODEL: "the model",
    "fitted": "examples, and what is fitted to them",
    "estimators": "what goes into the model, and what comes out",
    "session": "what a person is asked, and when to stop",
    "scale": "tables of many batches, for any engine, and runs over them",
}
# Modules of these packages that are not walked, and why.
LEFT_OUT = {
    "scale.cost": "says what a run will cost",
    "estimators.other_methods": "turns the answers of other methods into answers of this one",
}
# All other parts of the package, and why their numbers are not listed.
OTHERS = {
    "__main__": "starts the command",
    "arguments": "checks arguments",
    "banks": "keeps vectors in files",
    "catalogue": "keeps what people have and said",
    "classification": "reads a batch, asks the estimators, and writes tables and pages",
    "cli": "turns the words of a command into arguments",
    "datasets": "loads the examples of the documentation",
    "errors": "has the names of errors",
    "extensions": "finds other packages",
    "extraction": "runs encoders, with the numbers of those who published them",
    "fields": "reads and writes the files of a field",
    "items": "reads what is in a batch, and embeds what is new",
    "machine": "reads and writes files",
    "plots": "draws",
    "progress": "shows how far the work is",
    "reading": "reads files, or refuses them",
    "review": "shows a session in a browser, and keeps answers",
    "shapes": "has the names of types",
    "version": "has the version",
    "workers": "shares the work among processes",
}
# Halves and doubles, first and last, axes.
PLAIN = (0, 1, 2, 0.5)
# Arguments that no answer depends on: `stacklevel` says which line of code a warning names.
NO_ANSWER = ("stacklevel",)
ORIGINS = ("tuned", "measured", "convention", "work")


class Number(NamedTuple):
    """A number with a name.

    Attributes
    ----------
    name, value, unit, meaning, origin : str
        What the page says of it.
    module : str
        Where it is, without `handful.`.
    """

    name: str
    value: str
    unit: str
    meaning: str
    origin: str
    module: str


# -- which modules --------------------------------------------------------------------------------------------------


def file_of(module: str, source: Path = SOURCE) -> Path | None:
    """Return the file of a module or package; None if there is none."""
    place = source.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file imports anywhere, and the packages that they are in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def reached(doors: Iterable[str], source: Path = SOURCE) -> set[str]:
    """Return the modules below `source` that some modules import, directly or through others, and these themselves."""
    found = set[str]()
    left = list(doors)
    while left:
        module = left.pop()
        file = file_of(module, source)
        if file is not None and module not in found:
            found.add(module)
            left += imported(ast.parse(file.read_text(encoding="utf-8")))
    return found


def walked() -> list[str]:
    """Return the modules that an answer can pass through, without `handful.`, in the order of the page."""
    modules = {module.removeprefix("handful.") for module in reached(f"handful.{door}" for door in DOORS)}
    order = list(WALKED)
    some = [module for module in modules - set(LEFT_OUT) if module.partition(".")[0] in WALKED]
    return sorted(some, key=lambda module: (order.index(module.partition(".")[0]), module))


# -- which numbers --------------------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """Whether a constant is a number; `True` is none."""
    return type(value) in (int, float, complex)


def in_text(node: ast.AST) -> float | None:
    """Return the number of a call such as `float("0.3")`; None if it is none, or not finite."""
    if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    text = node.args[0].value
    if name not in {"float", "int", "Decimal", "Fraction", "float32", "float64"} or not isinstance(text, str):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def below(node: ast.AST, skipped: Iterable[ast.AST] = ()) -> Iterator[ast.AST]:
    """Yield a node and all below it but for some, and for arguments that no answer depends on."""
    if any(node is one for one in skipped) or (isinstance(node, ast.keyword) and node.arg in NO_ANSWER):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from below(child, skipped)


def numbers_of(node: ast.AST, skipped: Iterable[ast.AST] = ()) -> Iterator[tuple[int, Any]]:
    """Yield lines and values of all numbers below a node, but for some nodes."""
    for one in below(node, list(skipped)):
        if isinstance(one, ast.Constant) and is_number(one.value):
            yield one.lineno, one.value
        elif (value := in_text(one)) is not None and isinstance(one, ast.Call):
            yield one.lineno, value


def constants(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the statements of a module that give a name in capitals to one or several numbers."""
    found = dict[str, ast.stmt]()
    for statement in tree.body:
        name = name_of(statement)
        if name and isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            nodes = list(ast.walk(statement.value))
            places = [one.slice for one in nodes if isinstance(one, ast.Subscript)]
            if any(numbers_of(statement.value, places)) and not any(isinstance(one, ast.Lambda) for one in nodes):
                found[name] = statement
    return found


def name_of(statement: ast.stmt) -> str:
    """Return the name in capitals that a statement sets; empty if it sets none."""
    target: ast.AST | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    return target.id if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", target.id) else ""


def settings_fields(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the fields of the class `Settings` of a module, each set by a call with unit, origin and meaning."""
    return {
        one.target.id: one
        for owner in tree.body
        if isinstance(owner, ast.ClassDef) and owner.name == "Settings"
        for one in owner.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(one.value, ast.Call)
    }


def strays(source: str, *, has_settings: bool = False) -> list[tuple[int, Any]]:
    """Return lines and values of all numbers of a module that have no name and are not plain."""
    tree = ast.parse(source)
    named = [*constants(tree).values(), *(settings_fields(tree).values() if has_settings else ())]
    return [(line, value) for line, value in numbers_of(tree, named) if value not in PLAIN]


# -- what is said about them ----------------------------------------------------------------------------------------


def comments(source: str) -> dict[int, tuple[str, bool]]:
    """Return the comment of each line, and whether it has the line for itself."""
    return {
        token.start[0]: (token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }


def said(source: str) -> dict[str, tuple[str, str]]:
    """Return what comments say about each constant in capitals, and whose comment it is.

    A comment stands on the line, or above it. Where there is none, that of the constant right above holds.
    """
    found = dict[str, tuple[str, str]]()
    beside = comments(source)
    before = ("", 0)
    for statement in ast.parse(source).body:
        name = name_of(statement)
        if not name:
            continue
        end = statement.end_lineno or statement.lineno
        lines = [text for line in range(statement.lineno, end + 1) for text, alone in [beside.get(line, ("", True))]]
        line = statement.lineno - 1
        above = list[str]()
        while line in beside and beside[line][1]:
            above.insert(0, beside[line][0])
            line -= 1
        text = " ".join(part for part in [*above, *lines] if part)
        if text:
            found[name] = (text, name)
        elif before[0] in found and before[1] == statement.lineno - 1:
            found[name] = found[before[0]]
        before = (name, end)
    return found


def parts_of(comment: str) -> tuple[str, str, str]:
    """Return meaning, unit and origin of a comment that ends with `[unit; origin]`; empty where it does not."""
    match = re.fullmatch(r"(.*?)\s*\[([^];]+); ([^]]+)\]", comment)
    return (match[1], match[2], match[3]) if match else (comment, "", "")


def named_numbers(source: str, module: str) -> list[Number]:
    """Return the constants of a module that are numbers."""
    found = list[Number]()
    what = said(source)
    for name, statement in constants(ast.parse(source)).items():
        assert isinstance(statement, ast.Assign | ast.AnnAssign)
        assert statement.value is not None
        value = re.sub(r"\s+", " ", ast.get_source_segment(source, statement.value) or "").replace("np.", "")
        comment, of = what.get(name, ("", name))
        meaning, unit, origin = parts_of(comment)
        found.append(Number(name, value, unit, meaning if of == name else f"see `{of}`", origin, module))
    return found


def settings_numbers() -> list[Number]:
    """Return the fields of `Settings`."""
    study = sensitivity()
    module = SETTINGS.removeprefix("handful.")
    source = source_of(module)
    statements = settings_fields(ast.parse(source))
    found = list[Number]()
    for one in fields(importlib.import_module(SETTINGS).Settings):
        call = getattr(statements[one.name], "value", None)
        assert isinstance(call, ast.Call)
        written = ast.get_source_segment(source, call.args[0]) or ""
        # A list that is computed is told by its ends.
        value = study.value_of(one.name) if "(" in written[1:] else written
        about = one.metadata
        found.append(Number(one.name, value, about["unit"], about["meaning"], about["origin"], module))
    return found


def source_of(module: str) -> str:
    """Return the source of a module of handful."""
    file = file_of(f"handful.{module}")
    assert file is not None, module
    return file.read_text(encoding="utf-8")


@cache
def all_numbers() -> dict[str, list[Number]]:
    """Return all numbers with a name, by module; modules without any are left out."""
    found = dict[str, list[Number]]()
    for module in walked():
        own = settings_numbers() if f"handful.{module}" == SETTINGS else []
        found[module] = [*own, *named_numbers(source_of(module), module)]
    return {module: numbers for module, numbers in found.items() if numbers}


def all_strays() -> list[str]:
    """Return the numbers without a name of all modules that an answer can pass through."""
    return [
        f"{module}:{line}: {value}"
        for module in walked()
        for line, value in strays(source_of(module), has_settings=f"handful.{module}" == SETTINGS)
    ]


# -- the page -------------------------------------------------------------------------------------------------------


@cache
def sensitivity() -> Any:
    """Return the study of sensitivity."""
    sys.path[:0] = [str(ROOT / "studies")] if str(ROOT / "studies") not in sys.path else []
    return importlib.import_module("sensitivity")


def effect(change: Mapping[str, float] | None) -> str:
    """Return what a change of a number did: the figure that changed most, in points."""
    if change is None:
        return "not measured"
    study = sensitivity()
    most = max(study.FIGURES, key=lambda name: abs(change[name]))
    if change[most]:
        return f"{change[most]:+.1f} {study.FIGURES[most]}"
    moved = change[study.MOVED]
    return "nothing" if moved < study.NOTHING else f"no figure; a probability by {moved:.2g}"


def measured_values() -> dict[str, str]:
    """Return the value that each number had when the study of sensitivity was made."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return {row["number"]: row["value"] for row in csv.DictReader(file)}


def measured_changes() -> dict[str, Any]:
    """Return what half and twice a number changed; numbers that have another value since are left out."""
    found = json.loads((RESULTS / "sensitivity.json").read_text(encoding="utf-8"))
    values = measured_values()
    return {name: found[name] for name, value in values.items() if name in found and _is_now(name, value)}


def _is_now(name: str, value: str) -> bool:
    study = sensitivity()
    return name in study.NUMBERS and study.value_of(name) == value


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the first row is its head."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines.insert(1, ["-"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(module: str, numbers: Iterable[Number]) -> str:
    """Return the table of a module."""
    first = (ast.get_docstring(ast.parse(source_of(module))) or "").partition("\n\n")[0].replace("\n", " ")
    columns = ["name", "value", "unit", "meaning", "origin"]
    of_settings = f"handful.{module}" == SETTINGS
    changes = measured_changes() if of_settings else {}
    rows = [columns + ["at half", "at double"] * of_settings]
    for one in numbers:
        row = [f"`{one.name}`", f"`{one.value}`", one.unit, one.meaning, one.origin]
        if of_settings and one.name in settings_names():
            row += [effect(changes.get(one.name, {}).get(factor)) for factor in ("0.5", "2.0")]
        rows.append(row)
    return f"### {module}\n\n{first}\n\n{table(rows)}"


@cache
def settings_names() -> frozenset[str]:
    """Return the names of the fields of `Settings`."""
    return frozenset(one.name for one in fields(importlib.import_module(SETTINGS).Settings))


def text() -> str:
    """Return the page."""
    found = all_numbers()
    known = json.loads((RESULTS / "measured.json").read_text(encoding="utf-8"))["sensitivity"]
    with_changes = len(measured_changes())
    n_settings = len(settings_names())
    packages = {
        package: {module: some for module, some in found.items() if module.partition(".")[0] == package}
        for package in WALKED
    }
    counts = table(
        [
            ["package", "what it does", "numbers"],
            *(
                [f"`{package}`", WALKED[package], str(sum(map(len, some.values())))]
                for package, some in packages.items()
            ),
        ]
    )
    parts = [
        "# All numbers",
        "This page lists every number of the code that an answer can pass through. Each has a name, a value, a unit, a "
        "meaning and an origin. It is made from the code by `python tools/numbers_page.py`. A test fails if a number "
        "of this code has no name, or if this page is behind the code.",
        f"There are {sum(map(len, found.values()))} numbers. {n_settings} are fields of `{SETTINGS}.Settings`: these "
        "are what the labels and chances of a batch depend on. The others are limits of rounding and memory, defaults "
        "of arguments, thresholds of warnings, and the rules of a review.",
        counts,
        "## How to read the tables",
        "**Origin.** *tuned*: chosen on the tuning banks of the studies. *measured*: read off data, with the figure "
        "where there is one. *convention*: another value would serve as well. *work*: a larger value would take longer "
        "and change little.",
        "**At half, at double.** One setting is changed at a time. The cell has the figure that changes most, in "
        "points. [Sensitivity](../measured/sensitivity.md) says what the figures are; its file of all rows has the "
        "others. Of a chance the odds are changed. Of a list every second value is left out, or the middles are added. "
        "*nothing*: no probability changed but for rounding. *not measured*: the setting is new, or had another value "
        f"then. {with_changes} of {n_settings} settings were measured, with the model of handful "
        f"{known['version']}. The constants of other modules were not changed.",
        "**Not listed** are plain numbers without a name: 0, 1, 2, one half, and their negatives. They count, halve, "
        "double, and choose an axis; a chance is compared with one half to say which of two is likelier. The argument "
        "`stacklevel` of a warning is left out too.",
        "**Not walked** are these modules:",
        "\n".join(f"- `handful.{module}` {reason}." for module, reason in (LEFT_OUT | OTHERS).items()),
    ]
    for package, some in packages.items():
        parts.append(f"## {package}: {WALKED[package]}")
        parts += [section(module, numbers) for module, numbers in some.items()]
    return "\n\n".join(parts) + "\n"


def is_behind() -> bool:
    """Whether the page is not as it should be."""
    return not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text()


def write() -> None:
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
