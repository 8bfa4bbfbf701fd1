"""Check that every link leads somewhere and every page can be found: python tools/check_site.py FOLDER.

FOLDER is the built site. Local links, pictures and anchors of its pages must exist, and every page must be reachable
from the index by links. Links of README.md are checked against the repository. Links to the project's own site and
repository on the web, here and there, are checked against FOLDER and the repository. Works offline: links to
elsewhere are not checked. Exits with 1 and names page and link if a link is dead, and each page that nothing leads to.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
# Where the project lives on the web.
SITE, REPOSITORY = "https://handful.readthedocs.io/en/stable/", "https://github.com/handful-dev/handful"
MARKDOWN_LINK = re.compile(r"\]\(([^()\s]+)\)")


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and names."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


@cache
def read(file: Path) -> Page:
    """Parse a page once, however many link to it."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path, root: Path = ROOT) -> list[str]:
    """Return `page: link` of every link that leads nowhere."""
    links = ((file, link) for file in pages_of(site) for link in read(file).links)
    return [f"{file.relative_to(site)}: {link}" for file, link in links if _is_dead(link, file, site, root)]


def dead_links_of_readme(site: Path, root: Path = ROOT) -> list[str]:
    """Return `README.md: link` of every link that leads nowhere, here or, rewritten, from a page elsewhere."""
    readme = root / "README.md"
    dead = []
    for link in MARKDOWN_LINK.findall(readme.read_text(encoding="utf-8")):
        if link.startswith("#"):
            continue
        lost = _is_dead(link, readme, site, root)
        if not lost and link.startswith("docs/") and ".md" in link:  # what PyPI shows leads to the site
            lost = _is_dead(SITE + re.sub(r"^docs/(.+)\.md", r"\1.html", link), readme, site, root)
        if lost:
            dead.append(f"README.md: {link}")
    return dead


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


def _is_dead(link: str, file: Path, site: Path, root: Path) -> bool:
    """Tell whether a link of a file leads nowhere; one to elsewhere on the web counts as alive."""
    if link.startswith(REPOSITORY):
        kind, _, place = urlsplit(link).path.removeprefix(urlsplit(REPOSITORY).path).strip("/").partition("/main/")
        return kind in ("blob", "tree") and not (root / unquote(place)).exists()
    if link.startswith(SITE):
        address, above = urlsplit(link.removeprefix(SITE)), site
        address = address._replace(path=address.path or "index.html")
    else:
        address, above = urlsplit(link), file.parent
    if address.scheme or address.netloc or link == "#":
        return False
    target = (above / unquote(address.path)).resolve() if address.path else file.resolve()
    if not target.is_file():
        return not (target.is_dir() and file.suffix == ".md")
    return bool(address.fragment) and target.suffix == ".html" and unquote(address.fragment) not in read(target).anchors


if __name__ == "__main__":
    built = Path(sys.argv[1])
    found = [*dead_links(built), *dead_links_of_readme(built), *unreachable_pages(built)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
