"""Write requirements-lock.txt, which CI installs from: python tools/lock.py [--check].

All packages that tests, site and product need, with versions and hashes, for Linux, macOS and Windows and every Python
that handful supports. PyTorch is left out: its builds differ by machine, so it is installed apart. `uv` resolves them;
no address of an index gets into the file. `--check` exits with 1 if the file lacks a requirement.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-lock.txt"
SOURCES = ("requirements-dev.txt", "requirements-docs.txt")
HEADER = "# Written by: python tools/lock.py\n"
# Resolved like the others, but built for each kind of machine; what only they need is left out with them.
APART = "torch"
REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", re.MULTILINE)
LOCKED = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)


def required() -> dict[str, str]:
    """Return the lowest version of every package that the project names, without PyTorch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    text = "\n".join([*lines, *((ROOT / name).read_text(encoding="utf-8") for name in SOURCES)])
    return {_key(name): lowest for name, lowest in REQUIREMENT.findall(text) if name != APART}


def locked() -> dict[str, str]:
    """Return the versions in the file."""
    return {_key(name): version for name, version in LOCKED.findall(LOCK.read_text(encoding="utf-8"))}


def unmet() -> list[str]:
    """Return what the project requires and the file does not have."""
    versions = locked()
    return [
        f"{name}>={lowest}"
        for name, lowest in required().items()
        if name not in versions or _numbers(versions[name]) < _numbers(lowest)
    ]


def write() -> None:
    """Resolve all requirements again, to the newest versions."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as overrides:
        overrides.write(f"{APART} ; sys_platform == 'never'\n")
        overrides.flush()
        command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--upgrade"]
        options = ["--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
        files = ["pyproject.toml", "requirements-dev.txt", "requirements-docs.txt", "--quiet"]
        apart = ["--override", overrides.name, "--no-emit-package", APART]
        made = subprocess.run(
            [*command, *options, *apart, *files], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    LOCK.write_text(HEADER + _without_the_never_installed(made), encoding="utf-8")


def _without_the_never_installed(text: str) -> str:
    """Leave out what only PyTorch needs, which no platform installs by this file."""
    packages = re.split(r"\n(?=\S)", text.strip("\n"))
    kept = [package for package in packages if "sys_platform == 'never'" not in package.partition("\n")[0]]
    return "\n".join(package for package in kept if not package.startswith("#")) + "\n"


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        write()
    missing = unmet()
    print(*missing, sep="\n", end="\n" if missing else "")
    sys.exit(bool(missing))
