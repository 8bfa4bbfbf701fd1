"""Check that every link leads somewhere and every page can be found: python tools/check_site.py FOLDER.

FOLDER is the built site. Local links, pictures and anchors of its pages must exist, and every page must be reachable
from the index by links. Links of README.md are checked against the repository. Works offline: a link to elsewhere on
the web must begin with one of `tools/addresses.txt`, or with an address of `[tool.handful] published` in
pyproject.toml. Text of a page must not have links as Markdown writes them: they were not translated. Exits with 1 and
names page and link if a link is dead or was not translated, and each page that nothing leads to.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
ADDRESSES = Path(__file__).with_name("addresses.txt")
ON_THE_WEB = re.compile(r"https?://")
MARKDOWN_LINK = re.compile(r"\]\(([^()\s]+)\)")
RAW_LINK = re.compile(r"\S*\]\(\S*")
# Text within these is not read as sentences.
NOT_SENTENCES = frozenset({"code", "pre", "script", "style", "math"})


class Page(HTMLParser):
    """What a page links to, the places in it that can be linked to, and its sentences."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.sentences = ""
        self._depth = 0  # of elements whose text is not read as sentences

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and names."""
        self._depth += tag in NOT_SENTENCES
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        """Read sentences again after code."""
        self._depth -= tag in NOT_SENTENCES

    def handle_data(self, data: str) -> None:
        """Keep what a person reads as sentences."""
        if not self._depth:
            self.sentences += data


@cache
def read(file: Path) -> Page:
    """Parse a page once, however many link to it."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path) -> list[str]:
    """Return `page: link` of every link that leads nowhere."""
    links = ((file, link) for file in pages_of(site) for link in read(file).links)
    return [f"{file.relative_to(site)}: {link}" for file, link in links if _is_dead(link, file)]


def raw_markdown(site: Path) -> list[str]:
    """Return `page: text` of every link that stands in a page as Markdown writes it."""
    found = ((file, read(file).sentences) for file in pages_of(site))
    return [
        f"{file.relative_to(site)}: Markdown that was not translated: {text}"
        for file, sentences in found
        for text in RAW_LINK.findall(sentences)
    ]


def dead_links_of_readme(root: Path = ROOT) -> list[str]:
    """Return `README.md: link` of every link that leads nowhere."""
    readme = root / "README.md"
    links = MARKDOWN_LINK.findall(readme.read_text(encoding="utf-8"))
    return [f"README.md: {link}" for link in links if not link.startswith("#") and _is_dead(link, readme)]


@cache
def addresses() -> tuple[str, ...]:
    """Return the addresses that exist, as somebody has checked."""
    lines = ADDRESSES.read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ours = project["tool"]["handful"]["published"].values()
    return (*(line for line in lines if ON_THE_WEB.match(line)), *ours)


def is_real(address: str) -> bool:
    """Tell whether an address is one of these, or lies below one."""
    return any(re.match(re.escape(known.rstrip("/")) + r"(?![\w-])", address) for known in addresses())


def unreachable_pages(site: Path) -> list[str]:
    """Return the pages that no chain of links from `index.html` leads to."""
    reached, waiting = set[Path](), [(site / "index.html").resolve()]
    while waiting:
        file = waiting.pop()
        if file not in reached and file.suffix == ".html" and file.is_file():
            reached.add(file)
            addresses = [address for link in read(file).links if not (address := urlsplit(link)).scheme]
            waiting += [(file.parent / unquote(address.path)).resolve() for address in addresses if address.path]
    lost = (file for file in pages_of(site) if file.resolve() not in reached)
    return [f"{file.relative_to(site)}: no page leads to it" for file in lost]


def pages_of(site: Path) -> list[Path]:
    """Return the pages of the site, without those of the theme."""
    return [file for file in sorted(site.rglob("*.html")) if "_static" not in file.relative_to(site).parts]


def _is_dead(link: str, file: Path) -> bool:
    """Tell whether a link of a file leads nowhere, or to an address that nobody has checked."""
    if ON_THE_WEB.match(link):
        return not is_real(link)
    address = urlsplit(link)
    if address.scheme or address.netloc or link == "#":
        return False
    target = (file.parent / unquote(address.path)).resolve() if address.path else file.resolve()
    if not target.is_file():
        return not (target.is_dir() and file.suffix == ".md")
    return bool(address.fragment) and target.suffix == ".html" and unquote(address.fragment) not in read(target).anchors


if __name__ == "__main__":
    built = Path(sys.argv[1])
    found = [*dead_links(built), *raw_markdown(built), *dead_links_of_readme(), *unreachable_pages(built)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
