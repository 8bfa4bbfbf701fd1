"""Data of others and dependencies that are not permissive are named, with their licences."""

import re
import subprocess
import tomllib
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "project" / "licences.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DATA = ("src", "tests", "docs", "studies", "perf", "examples")
WRITTEN_HERE = {".py", ".md", ".rst", ".html", ".css", ".js", ".ipynb", ".toml", ".typed"}
NOT_CHECKED = {"timm", "open-clip"}


def test_every_data_file_is_named_with_its_licence():
    listed = subprocess.run(["git", "ls-files", *DATA], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no repository")
    patterns = [
        pattern for row in re.findall(r"^\| (`.+?`) \|", PAGE, re.MULTILINE) for pattern in row.split("`")[1::2]
    ]
    files = [name for name in listed.stdout.split() if Path(name).suffix not in WRITTEN_HERE and "LICENSE" not in name]
    assert [name for name in files if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    for pattern in patterns:
        assert "*" not in pattern or "/" not in pattern or any(fnmatch(name, pattern) for name in files), pattern


def test_the_package_contains_the_licence_of_its_data():
    texts = {path for path in (ROOT / "src").rglob("*.md") if path.name != "README.md"}
    licences = set((ROOT / "src").rglob("LICENSE.*"))
    listed = {"LICENSE", *(path.relative_to(ROOT).as_posix() for path in texts | licences)}
    assert set(PROJECT["project"]["license-files"]) == listed
    said = "".join(path.read_text(encoding="utf-8") for path in texts)
    data = [file for file in (ROOT / "src" / "handful").rglob("*") if file.suffix in (".npz", ".txt", ".onnx")]
    assert len(data) == 3
    assert [file.name for file in [*data, *licences] if file.name not in said] == []
    assert {path.name.removeprefix("LICENSE.") for path in licences} <= set(
        PROJECT["project"]["license"].split(" AND ")
    )
    # The repository's other data stay outside: each entry is one path from the root.
    assert all(name.startswith("/") for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])


def installed_by(requirements):
    """Return what these requirements install here, by name."""
    found, waiting = {}, [(line, "") for line in requirements]
    while waiting:
        line, extra = waiting.pop()
        one = Requirement(line)
        key = (canonicalize_name(one.name), *sorted(one.extras))
        if key in found or not (one.marker is None or one.marker.evaluate({"extra": extra})):
            continue
        try:
            found[key] = distribution(one.name)
        except PackageNotFoundError:
            pytest.skip(f"{one.name} is not installed")
        waiting += [(needed, of) for needed in found[key].requires or [] for of in ("", *one.extras)]
    return {key[0]: package for key, package in found.items()}


def licence(package):
    """Return what the metadata say: an expression, classifiers or free text."""
    about = package.metadata
    classified = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    return about.get("License-Expression") or " ".join(classified) or about.get("License") or "UNKNOWN"


@pytest.mark.parametrize("extra", ["", *sorted(set(PROJECT["project"]["optional-dependencies"]) - NOT_CHECKED)])
def test_dependencies_that_are_not_permissive_are_named(extra):
    project = PROJECT["project"]
    packages = installed_by(project["optional-dependencies"][extra] if extra else project["dependencies"])
    rows = [line for line in PAGE.splitlines() if f"| `{extra}`" in line or f", `{extra}`" in line]
    strict = re.compile(r"GPL|\bMPL|Mozilla|Eclipse|\bEPL|CDDL|EUPL|CC-BY-(SA|NC)|Proprietary|UNKNOWN")
    unnamed = {name for name, package in packages.items() if strict.search(licence(package))}
    assert {name for name in unnamed if not any(name in row for row in rows)} == set()
    permissive = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation")
    assert {name for name in set(packages) - unnamed if not permissive.search(licence(packages[name]))} == set()
