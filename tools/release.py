"""What a release needs to know about itself: python tools/release.py check|notes vX.Y.Z.

`check` exits with 1 unless the tag is the version of pyproject.toml, of the package and of CITATION.cff, the changelog
has a section about it, and no fragment of a change is left. `notes` prints that section.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^# handful (\S+)[^\n]*\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)


def sections(changelog: str) -> dict[str, str]:
    """Return what a changelog says, by version."""
    return {version: text.strip() for version, text in SECTION.findall(changelog)}


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version as each file that states it does."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = re.search(r'^__version__ = "(.+)"$', (root / "src/handful/__init__.py").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    return {
        "pyproject.toml": project,
        "src/handful/__init__.py": package[1] if package else "none",
        "CITATION.cff": citation[1] if citation else "none",
    }


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what stands in the way of releasing this tag."""
    wanted = tag.removeprefix("v")
    found = [
        f"{file} says {version}, the tag {wanted}" for file, version in versions(root).items() if version != wanted
    ]
    changelog = root / "CHANGELOG.md"
    if wanted not in sections(changelog.read_text(encoding="utf-8") if changelog.is_file() else ""):
        found.append(f"CHANGELOG.md has no section about {wanted}; run: towncrier build --version {wanted}")
    left = sorted(path.name for path in (root / "changes").glob("*.md") if path.name != "README.md")
    if left:
        found.append(f"{len(left)} fragments of changes are left, for example {left[0]}")
    return found


def main() -> None:
    """Do what was asked."""
    what, tag = sys.argv[1:]
    if what == "notes":
        print(sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[tag.removeprefix("v")])
        return
    found = problems(tag)
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
