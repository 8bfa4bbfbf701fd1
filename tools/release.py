"""What a release needs to know about itself.

    python tools/release.py check|notes vX.Y.Z
    python tools/release.py publish

`check` exits with 1 unless the tag is the version of pyproject.toml, of the package and of CITATION.cff, the changelog
has a section about it, no fragment of a change is left, `tools/measure.py --check` finds nothing, and handful is
published: `[tool.handful] published` in pyproject.toml names its repository and its site, and documents install it from
the registry. `publish` rewrites README, docs, notebooks and CITATION.cff accordingly, once that setting is made.
`notes` prints the section of the changelog.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import measure

ROOT = Path(__file__).resolve().parents[1]
# A command that installs from the repository; in notebooks, which lie deeper, with another path.
FROM_HERE = re.compile(r"(pip install (?:--quiet )?(?:\\?\")?)(?:\.\./\.\./\.\.|\.)(?=[\[\s`\"]|$)", re.MULTILINE)
WHERE = "  # in the folder of the repository"
UNTIL_PUBLISHED = re.compile(r"^<!-- until published -->\n.*?^<!-- published -->\n+", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^# handful (\S+)[^\n]*\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)


def sections(changelog: str) -> dict[str, str]:
    """Return what a changelog says, by version."""
    return {version: text.strip() for version, text in SECTION.findall(changelog)}


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version as each file that states it does."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = re.search(r'^__version__ = "(.+)"$', (root / "src/handful/version.py").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    return {
        "pyproject.toml": project,
        "src/handful/version.py": package[1] if package else "none",
        "CITATION.cff": citation[1] if citation else "none",
    }


def published(root: Path = ROOT) -> dict[str, str]:
    """Return the addresses of repository and site; empty before publication."""
    return dict(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["handful"]["published"])


def documents(root: Path = ROOT) -> list[Path]:
    """Return the files that tell readers how to install handful."""
    built = {"_build", "auto_gallery", "api", "changelog.md"}
    inside = [path for kind in ("*.md", "*.ipynb") for path in sorted((root / "docs").rglob(kind))]
    return [root / "README.md", *(path for path in inside if not built & set(path.parts))]


def as_published(text: str) -> str:
    """Return a document that installs from the registry instead of the repository."""
    return FROM_HERE.sub(r"\1handful", UNTIL_PUBLISHED.sub("", text).replace(WHERE, ""))


def cited_as_published(text: str, addresses: dict[str, str]) -> str:
    """Return CITATION.cff with the addresses."""
    text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
    lines = f"repository-code: {addresses['repository']}\nurl: {addresses['site']}\n"
    return re.sub(r"^authors:$", f"{lines}authors:", text, count=1, flags=re.MULTILINE)


def rewritten(root: Path = ROOT) -> dict[Path, str]:
    """Return the files that publication changes and has not changed yet, with their new texts."""
    citation, addresses = root / "CITATION.cff", published(root)
    texts = {path: path.read_text(encoding="utf-8") for path in [*documents(root), citation]}
    new = {path: as_published(text) for path, text in texts.items()}
    new[citation] = cited_as_published(texts[citation], addresses)
    return {path: text for path, text in new.items() if text != texts[path]}


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
    found += measure.problems(wanted, root / "studies" / "results")
    if set(published(root)) != {"repository", "site"}:
        found.append("pyproject.toml: [tool.handful] published must name the repository and the site")
    else:
        behind = sorted(str(path.relative_to(root)) for path in rewritten(root))
        found += [f"{name} is as before publication; run: python tools/release.py publish" for name in behind]
    return found


def main() -> None:
    """Do what was asked."""
    if sys.argv[1:] == ["publish"]:
        if not published():
            sys.exit("nothing is published; write the addresses into [tool.handful] of pyproject.toml first")
        for path, text in rewritten().items():
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
        return
    what, tag = sys.argv[1:]
    if what == "notes":
        print(sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[tag.removeprefix("v")])
        return
    found = problems(tag)
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
