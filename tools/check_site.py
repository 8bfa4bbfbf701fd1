"""Check the built site: python tools/check_site.py FOLDER.

Every local link, picture and anchor must lead somewhere, and every page must be reachable from the front page. Works
offline: links to other sites are not checked. Exits with 1 and names what is wrong.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


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


def dead_links(site: Path) -> list[str]:
    """Return `page: link` of every link that leads nowhere."""
    dead = []
    for file in sorted(site.rglob("*.html")):
        if "_static" in file.relative_to(site).parts:  # the theme's own
            continue
        for link in read(file).links:
            address = urlsplit(link)
            if address.scheme or address.netloc or link == "#":
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file.resolve()
            lost = not target.is_file()
            if not lost and address.fragment and target.suffix == ".html":
                lost = unquote(address.fragment) not in read(target).anchors
            if lost:
                dead.append(f"{file.relative_to(site)}: {link}")
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
    pages = (file for file in sorted(site.rglob("*.html")) if "_static" not in file.relative_to(site).parts)
    return [f"{file.relative_to(site)}: no page leads to it" for file in pages if file.resolve() not in reached]


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1])) + unreachable_pages(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
