"""The house keeps its shape: every source file has its test, every method its page, imports stay light."""

import subprocess
import sys
from pathlib import Path

import pytest

import handful
from handful import fewshot
from handful.fewshot.gathering import gather

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "handful"
# Files without behaviour of their own: names, annotations, exceptions.
WITHOUT_TEST = {"__init__.py", "shapes.py", "errors.py"}


def test_every_source_file_has_its_test():
    sources = sorted(p.relative_to(SOURCE) for p in SOURCE.rglob("*.py") if p.name not in WITHOUT_TEST)
    assert len(sources) > 100
    assert [str(p) for p in sources if not (ROOT / "tests" / p.parent / f"test_{p.name}").is_file()] == []


def test_every_method_has_its_file_its_page_and_its_row_in_the_table():
    table = (ROOT / "docs" / "methods" / "table.md").read_text(encoding="utf-8")
    for name in fewshot.METHODS:
        assert (SOURCE / "fewshot" / "methods" / f"{name}.py").is_file(), name
        assert (ROOT / "docs" / "methods" / f"{name}.md").is_file(), name
        assert f"\n| {name} | " in table, f"docs/methods/table.md leaves out {name}"


def test_import_is_light():
    heavy = [
        "torch",
        "numpy",
        "ray",
        "matplotlib",
        "pandas",
        "pyarrow",
        "timm",
        "transformers",
        "open_clip",
        "lightning",
        "typer",
        "fsspec",
        "s3fs",
        "sklearn",
    ]
    program = f"import sys, handful; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("house", [handful, fewshot])
def test_every_name_of_a_house_and_every_part_is_found_when_asked_for(house):
    for name in house.__all__:
        assert getattr(house, name) is not None
    folder = Path(house.__file__).parent
    parts = {path.name.removesuffix(".py") for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    private = {"__init__", "__main__", "__pycache__"}
    private |= {"arguments", "cli", "engine", "machine", "rows", "shapes", "solvers"}
    assert {name for name in parts - private if name not in dir(house)} == set()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        house.nonsense  # noqa: B018


def test_a_name_of_a_house_is_that_of_its_room():
    assert fewshot.gather is gather
    assert handful.fewshot is fewshot


def test_the_three_updates_of_paddle_fit_on_one_screen():
    lines = (SOURCE / "fewshot" / "methods" / "paddle.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("def assign("))
    last = next(i for i, line in enumerate(lines) if line.startswith("def init("))
    for name in ("update_dual", "update_prototypes", "step"):
        assert any(line.startswith(f"def {name}(") for line in lines[first:last])
    assert last - first <= 50


def test_method_files_stay_short():
    lengths = {path.name: len(path.read_text().splitlines()) for path in (SOURCE / "fewshot" / "methods").glob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 230} == {}


# What reads whole files: the guard against pipes, files of the package itself, and `run.json` of a streamed run.
READERS = {
    "machine/untrusted.py",
    "fewshot/benchmark/versions.py",
    "classification/page.py",
    "large/run_file.py",
    "fewshot/reports/published.py",
}


def test_files_of_others_are_read_through_one_guard():
    found = set()
    for path in SOURCE.rglob("*.py"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if ">>> " not in line]
        if any(".read_text(" in line or ".read_bytes(" in line for line in lines):
            found.add(path.relative_to(SOURCE).as_posix())
    assert found <= READERS
